"""Checks of rows about policies: `detect`, `permit`, `fail-closed`, `collect`, `posture`, `unchanged`.

Pure over the matrix that `itbench.run.clusters` made in settling: what the delivered policy said of every hidden fixture, and
what delivered script and policy said together of every cluster.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from itbench.core.documents.result import CheckResult
from itbench.evaluate.diagnosis import submission
from itbench.evaluate.registry import Case, Finding, Spec, check

Row = dict[str, Any]
NAMES = {"detect": "sensitivity", "permit": "specificity", "exposure": "sensitivity", "flows": "specificity"}
"""Check -> the metric that its score is."""


class MatrixSpec(Spec):
    """Every row of this kind must be right."""


class PostureSpec(Spec):
    """State and violations of the visible cluster, as typed in `answer`."""


class UnchangedSpec(Spec):
    """The delivered files are those that lay in the workspace, byte for byte."""


def sensitivity(rows: list[Row]) -> float | None:
    """Share of violating fixtures that were flagged for the right subjects; None when there are none."""
    return _share([row for row in rows if row["expected"] == "not_satisfied"])


def specificity(rows: list[Row]) -> float | None:
    """Share of compliant fixtures that were accepted; None when there are none."""
    return _share([row for row in rows if row["expected"] == "satisfied"])


def policy_compliance(states: list[str]) -> float | None:
    """Share of subjects that comply: satisfied / (satisfied + not_satisfied + accepted); None when nothing was assessed."""
    counted = [state for state in states if state in ("satisfied", "not_satisfied", "accepted")]
    return counted.count("satisfied") / len(counted) if counted else None


def policy_metrics(checks: Iterable[CheckResult]) -> dict[str, float | int | str | None]:
    """Sensitivity and specificity of a trial: of a policy on fixtures, or of what was closed and what went on working."""
    return {NAMES[each.kind]: each.score for each in checks if each.kind in NAMES and each.score is not None}


def _share(rows: list[Row]) -> float | None:
    return sum(bool(row["right"]) for row in rows) / len(rows) if rows else None


def _matrix(case: Case) -> dict[str, Any]:
    found: dict[str, Any] = case.evidence.facts.get("matrix") or {}
    return found


def _shown(row: Row) -> str:
    why = f" ({row['detail']})" if row.get("detail") else ""
    return f"{row['id']}: wanted {row['expected']}, came {row['state']}{why}"


def _all_right(rows: list[Row], what: str, score: float | None) -> Finding:
    wrong = [_shown(row) for row in rows if not row["right"]]
    seen = "; ".join(wrong[:4]) + (f" and {len(wrong) - 4} more" if len(wrong) > 4 else "")
    passed = bool(rows) and not wrong
    return Finding(passed, what, seen or ("all right" if rows else "nothing was judged"), "facts.matrix", score or 0.0)


def _fixtures(case: Case, expected: str) -> list[Row]:
    return [row for row in _matrix(case).get("fixtures", ()) if row["expected"] == expected]


@check("detect", MatrixSpec, answer="mitigation")
def grade_detect(spec: MatrixSpec, case: Case) -> Finding:
    """Every violating fixture is flagged, for the right subject."""
    rows = _fixtures(case, "not_satisfied")
    return _all_right(rows, "every violating fixture flagged for the right subject", sensitivity(rows))


@check("permit", MatrixSpec, answer="mitigation")
def grade_permit(spec: MatrixSpec, case: Case) -> Finding:
    """Every compliant fixture is accepted, the empty population too."""
    rows = _fixtures(case, "satisfied")
    return _all_right(rows, "every compliant fixture accepted", specificity(rows))


@check("fail-closed", MatrixSpec, answer="mitigation")
def grade_fail_closed(spec: MatrixSpec, case: Case) -> Finding:
    """What cannot be judged is not assessed: malformed inputs, a cluster that does not answer, rights that do not suffice."""
    rows = _fixtures(case, "not_assessed")
    rows += [row for row in _matrix(case).get("runs", ()) if row["expected"] == "not_assessed"]
    return _all_right(rows, "missing facts come out as not_assessed", _share(rows))


@check("collect", MatrixSpec, answer="mitigation")
def grade_collect(spec: MatrixSpec, case: Case) -> Iterator[Finding]:
    """Script and policy together are complete and right on the visible and on the hidden cluster."""
    for row in _matrix(case).get("runs", ()):
        if row["expected"] == "not_assessed":
            continue
        missing = [" ".join(each) for each in row["missing"][:3]]
        seen = _shown(row) + (f"; not collected: {', '.join(missing)}" if missing else "")
        wanted = f"all objects collected, {row['expected']} with {len(row['violations'])} violations"
        where = "facts.matrix.runs"
        yield Finding(row["right"], wanted, "all right" if row["right"] else seen, where, label=row["id"])
    if not _matrix(case).get("runs"):
        yield Finding(False, "script and policy run on two clusters", "nothing was run", "facts.matrix.runs")


@check("posture", PostureSpec, answer="answer")
def grade_posture(spec: PostureSpec, case: Case) -> Finding:
    """The stated posture equals that of the baseline, worked out by our own controls."""
    shot, given = case.evidence.snapshots.get("baseline"), submission(case)
    if shot is None or given is None:
        return Finding(False, "a stated posture", "no baseline" if shot is None else "no submission", "submission")
    from itbench.policy.fixtures import truth  # heavy, and rows about clusters alone need it

    right = truth(shot.objects)
    wanted = ("not_satisfied" if right else "satisfied", right)
    seen = (given.answer.get("state"), _subjects(given.answer.get("violations")))
    return Finding(seen == wanted, _posture(*wanted), _posture(*seen), "submission.answer")


def _subjects(listed: Any) -> tuple[tuple[str, str, str], ...]:
    entries = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    return tuple(sorted((str(e.get("kind")), str(e.get("namespace", "")), str(e.get("name"))) for e in entries))


def _posture(state: object, subjects: tuple[tuple[str, str, str], ...]) -> str:
    return f"{state}: " + (", ".join("/".join(each) for each in subjects) or "no violation")


@check("unchanged", UnchangedSpec, answer="mitigation")
def grade_unchanged(spec: UnchangedSpec, case: Case) -> Finding:
    """What was right is left as it was."""
    matrix = _matrix(case)
    given, delivered = matrix.get("given", {}), matrix.get("delivered", {})
    changed = sorted(name for name, digest in delivered.items() if digest != given.get(name))
    seen = "changed: " + ", ".join(changed) if changed else "as they lay there" if delivered else "nothing was recorded"
    return Finding(bool(delivered) and not changed, "files as they lay there", seen, "facts.matrix.delivered")
