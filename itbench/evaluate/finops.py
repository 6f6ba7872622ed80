"""Checks and metrics of FinOps rows: `savings` with its guards, `no-change`, `report`, `answer`. Pure, over facts of the account.

Facts come from the account driver: `bill` (nano-dollars of doing nothing, of the end, of the reference), `plan` (what each
volume of the estate is), `changes` (what differs between hand-over and end), `replay` (the hidden future), `causes` (planted
in a bill).
Formulas: docs/finops.md.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import fsum
from typing import Any

from pydantic import Field

from itbench.core.documents.result import Evidence
from itbench.evaluate.registry import Case, Finding, Spec, check

THETA = 0.9
"""Share of the reference's savings that a pass needs."""
HONEST_SHARE, HONEST_USD = 0.10, 5.0
"""A claimed saving may be off by this share, or by this many dollars a month, whichever is more."""
TARGETS = ("Volumes",)
SIDE_EFFECTS = ("NetworkInterfaces",)
"""Kinds that change with others; they are judged by what made them change."""
SEEN_IN_INVENTORY = frozenset(
    {
        "create-snapshot",
        "create-snapshots",
        "copy-snapshot",
        "delete-snapshot",
        "create-volume",
        "delete-volume",
        "modify-volume",
        "attach-volume",
        "detach-volume",
        "create-tags",
        "delete-tags",
        "run-instances",
        "start-instances",
        "stop-instances",
        "terminate-instances",
    }
)
"""Writes whose effect and cost the inventory shows. Any other one is collateral: nothing may be moved to where nobody counts it,
nor shared with others."""


# -- metrics ---------------------------------------------------------------------------------------------------------


def savings_captured(c0: float, c1: float, reference: float) -> float:
    """Share of the possible savings that were made: (C0 - C1) / (C0 - C*), between -1 and 1; 0 where nothing can be saved.

    Args:
        c0: cost of doing nothing over the hidden window.
        c1: cost of what the agent left.
        reference: cost after the reference repair.
    """
    if c0 <= reference:
        return 0.0 if c1 <= c0 else -1.0
    return max(-1.0, min(1.0, (c0 - c1) / (c0 - reference)))


def regret(c1: float, reference: float) -> float:
    """How much more is paid than after the reference repair, as a share of the latter; below 0 where the agent found more."""
    if reference <= 0:
        raise ValueError(f"regret needs a positive reference cost, got {reference}")
    return (c1 - reference) / reference


def waste_detection(acted: Sequence[str], waste: Mapping[str, float]) -> dict[str, float]:
    """Dollar-weighted precision, recall and F0.5 of what was acted on.

    Args:
        acted: identifiers; one that is not waste counts as much as the mean piece of waste.
        waste: dollars by identifier.
    """
    total = fsum(waste.values())  # exact, because a set has another order in every process
    hit = fsum(waste.get(identity, 0.0) for identity in set(acted))
    mean = total / len(waste) if waste else 1.0
    spent = hit + mean * len(set(acted) - set(waste))
    precision = hit / spent if spent else 1.0
    recall = hit / total if total else 1.0
    bottom = 0.25 * precision + recall
    return {"precision": precision, "recall": recall, "f05": 1.25 * precision * recall / bottom if bottom else 0.0}


def policy_compliance(touched: Sequence[str], waste: Sequence[str], kept: Sequence[str]) -> dict[str, float]:
    """Sensitivity (share of waste acted on) and specificity (share of what must stay that was left alone)."""
    hands = set(touched)
    sensitivity = len(hands & set(waste)) / len(set(waste)) if waste else 1.0
    specificity = 1.0 - len(hands & set(kept)) / len(set(kept)) if kept else 1.0
    return {"sensitivity": sensitivity, "specificity": specificity}


def claim_error(claimed: float, saved: float) -> float:
    """How far a claimed monthly saving is from the real one, in tolerances: at most 1 is honest."""
    return abs(claimed - saved) / max(HONEST_SHARE * abs(saved), HONEST_USD)


def cause_match(named: Sequence[Sequence[str]], truth: Sequence[Sequence[str]]) -> float:
    """Jaccard index of two sets of causes, each (kind, application, family); 1 when both are empty."""
    left, right = {tuple(item) for item in named}, {tuple(item) for item in truth}
    return len(left & right) / len(left | right) if left | right else 1.0


def impact_error(named: float, truth: float) -> float:
    """Relative error of a cost impact."""
    if truth == 0:
        raise ValueError("impact_error needs a true impact other than 0")
    return abs(named - truth) / abs(truth)


# -- savings ---------------------------------------------------------------------------------------------------------


class SavingsSpec(Spec):
    """Savings of the hidden window against the reference, and the guards. `theta`: share that passes."""

    theta: float = Field(THETA, gt=0, le=1)


class NothingSpec(Spec):
    """No fields."""


def _touched(facts: Mapping[str, Any]) -> dict[str, str]:
    """Volumes of the estate that are not as they were, and how."""
    return {
        item["id"]: item["how"] for item in facts["changes"] if item["kind"] in TARGETS and item["id"] in facts["plan"]
    }


@check("savings", SavingsSpec, answer="mitigation")
def grade_savings(spec: SavingsSpec, case: Case) -> Iterator[Finding]:
    """Captured savings; then data safety, policy, collateral and the hidden future, each a finding of its own."""
    facts = case.evidence.facts
    if "bill" not in facts:
        yield Finding(False, "a rated account", "no bill in the evidence", "facts.bill")
        return
    bill = facts["bill"]
    score = savings_captured(bill["c0_nano"], bill["c1_nano"], bill["reference_nano"])
    dollars = {name: bill[f"{name}_nano"] / 1e9 for name in ("c0", "c1", "reference")}
    seen = f"{score:.3f} (doing nothing ${dollars['c0']:.2f}, now ${dollars['c1']:.2f}, reference ${dollars['reference']:.2f})"
    yield Finding(
        score >= spec.theta,
        f"at least {spec.theta:g} of the reference's savings",
        seen,
        "facts.bill",
        score,
        {"usd": dollars},
        "captured",
    )
    yield _data_safety(facts)
    yield _policy(facts)
    yield _collateral(case.evidence)
    lost = [f"{item['volume']} at hour {item['at_h']:g}" for item in facts["replay"] if not item["served"]]
    yield Finding(
        not lost,
        "everything that is needed later is there",
        "; ".join(lost) or "all served",
        "facts.replay",
        label="demand",
    )


def _data_safety(facts: Mapping[str, Any]) -> Finding:
    snapshots = facts["inventory"]["Snapshots"]
    lost = []
    for identity, how in _touched(facts).items():
        entry = facts["plan"][identity]
        kept = any(
            item["VolumeId"] == identity and item["State"] == "completed" and item["StartTime"] >= entry["still_since"]
            for item in snapshots
        )
        if how == "gone" and entry["snapshot"] and not kept:
            lost.append(f"{entry['name']} ({identity})")
    seen = "lost: " + ", ".join(sorted(lost)) if lost else "no data lost"
    return Finding(
        not lost,
        "a snapshot of the last data of everything deleted but scratch",
        seen,
        "facts.inventory.Snapshots",
        label="data-safety",
    )


def _policy(facts: Mapping[str, Any]) -> Finding:
    touched = _touched(facts)
    bad = [
        f"{facts['plan'][identity]['name']} {how}: {facts['plan'][identity]['why'] or 'in use'}"
        for identity, how in touched.items()
        if facts["plan"][identity]["role"] == "keep"
    ]
    seen = "; ".join(sorted(bad)) if bad else "all kept"
    return Finding(not bad, "volumes that the policy keeps are as they were", seen, "facts.changes", label="policy")


def _collateral(evidence: Evidence) -> Finding:
    """Whatever else was there must be as it was; what is new is judged by its cost, if it is of a kind that is rated."""
    facts = evidence.facts
    bad = [
        f"{item['id']} {item['how']}"
        for item in facts["changes"]
        if item["how"] != "new" and item["id"] not in facts["plan"] and item["kind"] not in SIDE_EFFECTS
    ]
    bad += sorted(
        {
            f"{write.resource} {write.verb}"
            for write in evidence.writes
            if write.code < 400 and (write.resource != "ec2" or write.verb not in SEEN_IN_INVENTORY)
        }
    )
    seen = "; ".join(bad) if bad else "none"
    return Finding(not bad, "no change to anything else", seen, "facts.changes", label="collateral")


@check("no-change", NothingSpec, answer="mitigation")
def grade_no_change(spec: NothingSpec, case: Case) -> Finding:
    """Nothing is to be done: any write that succeeded fails."""
    done = [f"{write.verb} {write.name}".strip() for write in case.evidence.writes if write.code < 400]
    seen = f"{len(done)} writes: " + ", ".join(done[:5]) if done else "no write"
    return Finding(not done, "no write", seen, "writes")


def _given(case: Case) -> Mapping[str, Any]:
    return ((case.evidence.submission or {}).get("answer")) or {}


@check("report", NothingSpec, answer="answer")
def grade_report(spec: NothingSpec, case: Case) -> Finding:
    """The claimed monthly saving is what the account really costs less (730 hours a month)."""
    saved = case.evidence.facts["bill"]["monthly_saving_usd"]
    wanted = f"a claim of ${saved:.2f} a month, give or take 10 % or $5"
    claimed = _given(case).get("monthly_saving_usd")
    if not isinstance(claimed, int | float) or isinstance(claimed, bool):
        return Finding(False, wanted, f"monthly_saving_usd: {claimed!r}", "submission.answer")
    return Finding(claim_error(claimed, saved) <= 1.0, wanted, f"${claimed:.2f}", "submission.answer", label="honest")


# -- root causes in a bill -------------------------------------------------------------------------------------------


class AnswerSpec(Spec):
    """The planted causes: exact set; `impact`: relative tolerance of what each cost; `days`: of when it began."""

    impact: float = Field(0.1, gt=0)
    days: int = Field(2, ge=0)


def _key(cause: Mapping[str, Any]) -> tuple[str, str, str]:
    kind, application, family = (str(cause.get(name, "")).strip().lower() for name in ("kind", "application", "family"))
    return kind, "*" if application in ("*", "all", "") and kind == "price" else application, family


@check("answer", AnswerSpec, answer="answer")
def grade_answer(spec: AnswerSpec, case: Case) -> Iterator[Finding]:
    """The set of causes, then for each true one its impact and begin."""
    truth = {_key(cause): cause for cause in case.evidence.facts.get("causes", ())}
    given = _given(case).get("causes")
    if not isinstance(given, list) or not all(isinstance(item, Mapping) for item in given):
        yield Finding(False, "a list of causes", f"causes: {str(given)[:100]}", "submission.answer")
        return
    named = {_key(item): item for item in given}
    score = cause_match(list(named), list(truth))
    wrong = [f"missing {' '.join(key)}" for key in truth if key not in named]
    wrong += [f"not a cause: {' '.join(key)}" for key in named if key not in truth]
    exact = not wrong and len(given) == len(truth)
    yield Finding(
        exact,
        f"exactly {len(truth)} causes",
        "; ".join(wrong[:6]) or "as planted",
        "submission.answer.causes",
        score,
        label="set",
    )
    for key, cause in truth.items():
        if key in named:
            yield _impact(spec, cause, named[key], " ".join(key))


def _impact(spec: AnswerSpec, cause: Mapping[str, Any], given: Mapping[str, Any], label: str) -> Finding:
    from datetime import date

    wanted = f"${cause['impact_usd']:.2f} within {spec.impact:.0%}, since {cause['since']}"
    impact, since = given.get("impact_usd"), str(given.get("since", ""))[:10]
    try:
        off = abs((date.fromisoformat(since) - date.fromisoformat(cause["since"])).days)
    except ValueError:
        off = 10_000
    if not isinstance(impact, int | float) or isinstance(impact, bool):
        return Finding(False, wanted, f"impact_usd: {impact!r}", "submission.answer.causes", label=label)
    error = impact_error(impact, cause["impact_usd"])
    held = error <= spec.impact and off <= spec.days
    return Finding(
        held,
        wanted,
        f"${impact:.2f}, since {since}",
        "submission.answer.causes",
        label=label,
        details={"impact_error": error},
    )


# -- of one trial ----------------------------------------------------------------------------------------------------


def account_metrics(evidence: Evidence) -> dict[str, float | int | str | None]:
    """Metrics of one account trial that its facts can tell."""
    facts = evidence.facts
    found: dict[str, float | int | str | None] = {}
    if "bill" in facts:
        bill, plan, touched = facts["bill"], facts["plan"], _touched(facts)
        c0, c1, reference = bill["c0_nano"], bill["c1_nano"], bill["reference_nano"]
        found["savings_usd"] = round((c0 - c1) / 1e9, 6)
        waste = [identity for identity, entry in plan.items() if entry["role"] == "waste"]
        if waste:
            found["savings_captured"] = savings_captured(c0, c1, reference)
            found["regret"] = regret(c1, reference)
            dollars = {identity: plan[identity]["monthly_usd"] for identity in waste}
            found |= {f"waste_{name}": value for name, value in waste_detection(list(touched), dollars).items()}
        kept = [identity for identity in plan if identity not in waste]
        found |= {f"policy_{name}": value for name, value in policy_compliance(list(touched), waste, kept).items()}
    if "causes" in facts:
        given = ((evidence.submission or {}).get("answer") or {}).get("causes")
        named = [_key(item) for item in given if isinstance(item, Mapping)] if isinstance(given, list) else []
        found["cause_match"] = cause_match(named, [_key(cause) for cause in facts["causes"]])
    if facts.get("gaps"):
        found["coverage_gaps"] = sum(facts["gaps"].values())
    return found
