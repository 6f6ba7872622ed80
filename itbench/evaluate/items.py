"""Trials grouped into items, the rows that every statistic averages over. Called by `standing` and `contest`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from itbench.core.documents.result import Result
from itbench.core.statistics.survival import Time, at_risk_to

LIMIT_S = 1800.0
"""Times are restricted to this many world seconds after hand-over: the limit of a scenario that names none."""


@dataclass(frozen=True)
class Item:
    """One scenario of one seed under one agent; a scenario and its twin are one item, which passes only if both do.

    Args:
        name: scenario, with its seed where a run has several.
        family: the unit of independence; the scenario itself where it has none.
        domain: sre, ciso or finops.
        outcomes: `pass`, `fail` or `invalid` of every trial.
        times_s: of every valid trial that measured it, world seconds to mitigation; None for never.
        clocks: on which its trials ran.
        after: (diagnosis right, mitigated) of every valid trial that asked for both.
    """

    name: str
    family: str
    domain: str
    outcomes: tuple[str, ...]
    times_s: tuple[float | None, ...] = ()
    clocks: frozenset[str] = frozenset()
    after: tuple[tuple[bool, bool], ...] = ()

    @property
    def scores(self) -> list[float]:
        """1 or 0 of every valid trial."""
        return [float(outcome == "pass") for outcome in self.outcomes if outcome != "invalid"]


def items(results: Iterable[Result]) -> dict[str, Item]:
    """The items of one agent, by name, in order.

    Args:
        results: of one agent, of one or several seeds.
    """
    grouped: dict[tuple[str, int], dict[int, list[Result]]] = {}
    for result in results:
        trials = grouped.setdefault((result.scenario.removesuffix("@twin"), result.seed), {})
        trials.setdefault(result.trial, []).append(result)
    several = len({seed for _, seed in grouped}) > 1
    found = {}
    for (scenario, seed), trials in grouped.items():
        name = f"{scenario} seed {seed}" if several else scenario
        found[name] = _item(name, scenario, [trials[number] for number in sorted(trials)])
    return found


def _item(name: str, scenario: str, trials: Sequence[Sequence[Result]]) -> Item:
    flat = [result for trial in trials for result in trial]
    valid = [result for result in flat if result.outcome != "invalid"]
    times = [result.metrics["time_to_mitigate_s"] for result in valid if "time_to_mitigate_s" in result.metrics]
    both = [result.answers for result in valid if {"diagnosis", "mitigation"} <= set(result.answers)]
    return Item(
        name=name,
        family=next((result.family for result in flat if result.family), scenario),
        domain=next((result.domain for result in flat if result.domain), scenario.partition("-")[0]),
        outcomes=tuple(_joint([str(result.outcome) for result in trial]) for trial in trials),
        times_s=tuple(float(time) if isinstance(time, int | float) else None for time in times),
        clocks=frozenset(result.clock for result in flat if result.clock),
        after=tuple((answers["diagnosis"], answers["mitigation"]) for answers in both),
    )


def _joint(outcomes: Sequence[str]) -> str:
    """One outcome of a scenario and its twin."""
    return next((outcome for outcome in ("fail", "invalid") if outcome in outcomes), "pass")


def times_of(found: dict[str, Item], limit_s: float = LIMIT_S) -> dict[str, list[Time]]:
    """Times to mitigation of the items that measure it, censored at the limit."""
    return {name: at_risk_to(limit_s, item.times_s) for name, item in found.items() if item.times_s}
