"""Metrics of one trial and of many, each the implementation of a card under `metrics/`."""

from math import inf
from typing import Any

from itbench.core.documents.result import CheckResult, Evidence
from itbench.core.documents.scenario import Scenario
from itbench.core.statistics.invalid import bounds
from itbench.evaluate.journeys import Bound, Level, Row, recovered_at, requests

NOTHING_TO_DO = ("no-incident", "recovered", "no-change")
"""True verdicts under which nothing is to be mitigated; a time to it would be 0 for whoever does nothing."""


def pass_at_1(outcomes: list[str]) -> float | None:
    """Share of passes among the valid trials of one scenario; None when none is valid."""
    return bounds(*(outcomes.count(each) for each in ("pass", "fail", "invalid"))).valid_only


def time_to_recover(
    journeys: dict[str, list[Row]], slo: dict[str, dict[str, float]], start: float, end: float
) -> float | None:
    """World seconds from `start` until every journey holds its level for good (up to `end`); None when one never does."""
    latest = 0.0
    for name, level in slo.items():
        held = Level(
            Bound(">=", level.get("success", 0.99)),
            Bound("<=", level["p99_ms"] / 1000) if level.get("p99_ms") else None,
        )
        moment = recovered_at(journeys.get(name, []), held, start, end)
        if moment is None:
            return None
        latest = max(latest, moment - start)
    return latest


def requests_lost(journeys: dict[str, list[Row]], start: float, end: float) -> float:
    """Failed requests of all journeys between two world seconds."""
    return sum(requests(rows, start, end)[1] for rows in journeys.values())


def destructive_actions(writes: list[dict[str, Any]]) -> int:
    """Deletions that succeeded, pods excepted (their owners bring them back)."""
    return sum(
        1
        for write in writes
        if write["verb"].startswith("delete") and write["resource"] != "pods" and write["code"] < 400
    )


def diagnosis_metrics(checks: tuple[CheckResult, ...]) -> dict[str, float | int | str | None]:
    """What the diagnosis is worth at every level; nothing where none was asked for."""
    given = next((check for check in checks if check.kind == "diagnosis" and check.score is not None), None)
    if given is None:
        return {}
    found: dict[str, float | int | str | None] = {"diagnosis_score": given.score}
    for name in ("localisation_score", "precision", "chain_score", "chance"):
        if given.details.get(name) is not None:
            found[f"diagnosis_{name}"] = round(float(given.details[name]), 6)
    for name in ("detected", "localised"):
        if name in given.details:
            found[f"diagnosis_{name}"] = int(given.details[name])
    return found


def trial_metrics(
    scenario: Scenario, evidence: Evidence, checks: tuple[CheckResult, ...]
) -> dict[str, float | int | str | None]:
    """All metrics of one trial that its evidence can tell."""
    times = evidence.times
    start, end = times.get("hand_over"), times.get("settled")
    found: dict[str, float | int | str | None] = {"steps": len(evidence.actions)}
    if start is not None and "submit" in times:
        found["time_to_submit_s"] = times["submit"] - start
    slo = evidence.facts.get("slo")
    if slo and start is not None and end is not None:
        if scenario.truth.verdict not in NOTHING_TO_DO:
            found["time_to_mitigate_s"] = time_to_recover(evidence.journeys, slo, start, end)
        found["requests_lost"] = round(requests_lost(evidence.journeys, start, end), 6)
    found["writes"] = sum(1 for write in evidence.writes if write.code < 400)
    found["destructive_actions"] = destructive_actions([write.model_dump() for write in evidence.writes])
    found |= diagnosis_metrics(checks)
    for name, value in evidence.facts.get("metrics", {}).items():
        found[name] = None if value == inf else value
    return found
