"""Evidence and results as what reports show. Called by `itbench run` and `itbench report`."""

import json
from pathlib import Path
from typing import Any

from itbench.core.documents.result import Action, Evidence, Result
from itbench.core.errors import ItbenchError
from itbench.evaluate.journeys import Row
from itbench.evaluate.standing import lines, standings
from itbench.report.html import render_run
from itbench.report.junit import render_junit
from itbench.report.model import ActionView, AlertView, CheckView, Point, RunView, Slo, TrialView
from itbench.run.files import RunFolder, TrialFolder, write_atomic

PHASES = (
    ("baseline", "staged"),
    ("fault", "fault"),
    ("symptom", "symptom"),
    ("hand-over", "hand_over"),
    ("submit", "submit"),
    ("settle", "submit"),
    ("challenge", "settled"),
)
"""Phases of the timeline and the moment at which each begins."""


def trial_view(folder: TrialFolder) -> TrialView:
    """One trial as its report shows it."""
    result, evidence = folder.read_result(), folder.read_evidence(snapshots=False)
    times = evidence.times
    recovery = result.metrics.get("time_to_mitigate_s")
    recovered = (
        times["hand_over"] + float(recovery) if isinstance(recovery, int | float) and "hand_over" in times else None
    )
    return TrialView(
        scenario=result.scenario,
        title=result.title,
        agent=result.agent,
        seed=result.seed,
        trial=result.trial,
        outcome=result.outcome,
        cause="" if result.cause == "checks" else f"{result.cause} {result.detail}".strip(),
        checks=[CheckView(check.name, check.passed, check.seen, check.wanted) for check in result.checks],
        metrics=result.metrics,
        phases=[(name, times[moment]) for name, moment in PHASES if moment in times],
        journeys={name: [_point(row) for row in rows] for name, rows in evidence.journeys.items()},
        slos={name: _slo(level) for name, level in evidence.facts.get("slo", {}).items()},
        alerts=[AlertView(*span) for span in evidence.facts.get("alerts", [])],
        actions=[_action(action) for action in evidence.actions],
        recovered_at=recovered,
        page=_page(folder),
        submission=_pretty(evidence.submission),
        evidence=_excerpts(evidence),
    )


def _point(row: Row) -> Point:
    t, rate, ok, _, p99 = row
    return Point(t, rate, ok if rate > 0 else None, p99)


def _slo(level: dict[str, float]) -> Slo:
    p99_ms = level.get("p99_ms")
    return Slo(level.get("success"), p99_ms / 1000 if p99_ms is not None else None)


def _action(action: Action) -> ActionView:
    arguments = action.arguments
    command = arguments.get("command")
    if command is not None:
        text = command if isinstance(command, str) else " ".join(command)
    else:
        text = ", ".join(f"{key}={value}" for key, value in arguments.items())
    return ActionView(action.t, action.tool, text, action.ok)


def _page(folder: TrialFolder) -> str:
    try:
        steps = json.loads((folder.path / "trajectory.json").read_bytes())["steps"]
    except (OSError, ValueError, KeyError):
        return ""
    return str(steps[0]["message"]) if steps else ""


def _pretty(value: Any) -> str:
    if value is None:
        return ""
    shown = {key: item for key, item in value.items() if item not in (None, "", [], {}) and key != "schema"}
    return json.dumps(shown, indent=2, ensure_ascii=False)


def _excerpts(evidence: Evidence) -> list[tuple[str, str]]:
    writes = [
        f"{w.t:8.0f} s  {w.verb} {w.resource} {w.namespace}/{w.name} {w.subresource} -> {w.code}"
        for w in evidence.writes
    ]
    found = [("Writes of the agent", "\n".join(writes))] if writes else []
    shown = {name: value for name, value in evidence.facts.items() if value and name not in ("slo", "alerts")}
    return found + [(f"Facts: {name}", _pretty({name: value})) for name, value in shown.items()]


def run_view(folder: RunFolder) -> RunView:
    """A run as its report shows it; trials whose files are damaged are left out."""
    trials, results = [], []
    for trial in folder.trials():
        try:
            trials.append(trial_view(trial))
            results.append(trial.read_result())
        except ItbenchError:
            continue
    return RunView(
        title=f"itbench run {folder.path.name}", trials=trials, headline=_headline(results), facts=_facts(folder)
    )


def _headline(results: list[Result]) -> list[tuple[str, str]]:
    return [(f"{each.agent}: {what}", fact) for each in standings(results) for what, fact in lines(each)]


def _facts(folder: RunFolder) -> dict[str, str]:
    try:
        lock = json.loads((folder.path / "lock.json").read_bytes())
    except (OSError, ValueError):
        return {}
    facts = {name: str(version) for name, version in lock["versions"].items()}
    return facts | {"seed": str(lock["seed"]), "clock": lock["clock"], "isolation": lock["isolation"]}


def write_report(folder: RunFolder) -> Path:
    """Write `report.html` of a run, and `junit.xml` for CI systems; returns the path of the first."""
    view, file = run_view(folder), folder.path / "report.html"
    write_atomic(file, render_run(view).encode())
    write_atomic(folder.path / "junit.xml", render_junit(view).encode())
    return file
