"""Checks on service levels: `slo` after settling, `challenge` after the challenge, `harm` between hand-over and recovery."""

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field, field_validator

from itbench.core.documents.base import Duration
from itbench.evaluate.journeys import Bound, Level, bins, requests
from itbench.evaluate.registry import Case, Finding, Spec, check


class SloSpec(Spec):
    """Which journeys must hold which level for how long; the app's defaults where nothing is said."""

    journey: str = "all"
    success: str = ""
    p99: str = ""
    hold: Duration = 300.0

    @field_validator("success", "p99")
    @classmethod
    def _bound(cls, value: str) -> str:
        if value:
            Bound.parse(value)
        return value


class ChallengeSpec(SloSpec):
    """Something done to the estate after the agent left; the service levels must hold afterwards.

    `replay`: the trigger again; `delete_pod`: pods of a workload; `roll_node`: a node's pods move.
    """

    replay: Literal["trigger"] | None = None
    delete_pod: str | None = None
    roll_node: str | None = None
    times: int = Field(1, ge=1, le=1000)
    gap: Duration = 60.0
    wait: Duration = 360.0
    """World seconds after the last disturbance before the level is judged."""


class HarmSpec(Spec):
    """Good requests lost between hand-over and the end of settling stay under a bound (share of all requests of that time)."""

    journey: str = "all"
    share: float = Field(gt=0, le=1)


def levels(case: Case, spec: SloSpec) -> dict[str, Level]:
    """The levels that a check asks for, by journey.

    Raises:
        ValueError: the evidence knows no such journey.
    """
    defaults: dict[str, Any] = case.evidence.facts.get("slo", {})
    names = sorted(defaults) if spec.journey == "all" else [spec.journey]
    found = {}
    for name in names:
        default = defaults.get(name, {})
        success = spec.success or f">= {default.get('success', 0.99)}"
        p99_ms = default.get("p99_ms")
        p99 = spec.p99 or (f"<= {p99_ms}ms" if p99_ms else "")
        found[name] = Level(Bound.parse(success), Bound.parse(p99) if p99 else None)
    return found


def _held(case: Case, spec: SloSpec, moment: str) -> Iterator[Finding]:
    end = case.evidence.times.get(moment)
    for name, level in levels(case, spec).items():
        wanted = f"{level} in every minute of the {spec.hold:g} s before {moment}"
        rows = case.evidence.journeys.get(name, [])
        where = f"journeys.{name}"
        if end is None or not rows:
            yield Finding(False, wanted, f"no rows up to {moment}", where, label=name)
            continue
        merged = bins(rows, end - spec.hold, end)
        bad = [row for row in merged if not level.held(row)]
        worst = min(merged, key=lambda row: (level.held(row), row[2], -(row[4] or 0.0)))
        p99 = f"{worst[4] * 1000:.0f} ms" if worst[4] is not None else "unknown"
        seen = f"worst minute: success {worst[2]:.4f}, p99 {p99} at {worst[1]:.2f}/s"
        if bad:
            seen = f"{len(bad)} of {len(merged)} minutes outside; {seen}"
        yield Finding(bool(merged) and not bad, wanted, seen, where, label=name)


@check("slo", SloSpec, answer="mitigation")
def grade_slo(spec: SloSpec, case: Case) -> Iterator[Finding]:
    """Service levels held at the end of settling."""
    return _held(case, spec, "settled")


@check("challenge", ChallengeSpec, answer="mitigation")
def grade_challenge(spec: ChallengeSpec, case: Case) -> Iterator[Finding]:
    """Service levels held after the challenge."""
    return _held(case, spec, "challenged")


@check("harm", HarmSpec, answer="mitigation")
def grade_harm(spec: HarmSpec, case: Case) -> Iterator[Finding]:
    """Requests lost while the agent acted and until the estate had settled."""
    start, end = case.evidence.times.get("hand_over", 0.0), case.evidence.times.get("settled", 0.0)
    for name in levels(case, SloSpec(journey=spec.journey)):
        rows = case.evidence.journeys.get(name, [])
        total, failed = requests(rows, start, end)
        share = failed / total if total else 1.0
        yield Finding(
            share <= spec.share,
            f"at most {spec.share:.2%} of requests lost between hand-over and settling",
            f"{failed:.0f} of {total:.0f} lost ({share:.2%})",
            f"journeys.{name}",
            score=share,
            label=name,
        )
