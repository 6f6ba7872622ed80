"""How many scenarios and trials it takes to see a difference, and what a given number sees. Used by `itbench plan`.

Source: Miller 2024 (arXiv 2411.00640), section 5; design effect of Kish 1965. Differences are in shares, 0.1 is ten points.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf, sqrt
from typing import TypeVar

from itbench.core.statistics.clusters import families, mean
from itbench.core.statistics.quantiles import t_quantile

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Spread:
    """Where the variance of a difference comes from.

    Args:
        between: variance over scenarios of the true difference (omega^2).
        within_a: mean over scenarios of p(1-p) of A (sigma^2 of one trial).
        within_b: the same of B.
        correlation: intra-family correlation of the differences (rho), 0 to 1.
    """

    between: float
    within_a: float
    within_b: float
    correlation: float = 0.0

    def one(self, trials_a: int, trials_b: int) -> float:
        """Variance of one scenario's measured difference."""
        return self.between + self.within_a / trials_a + self.within_b / trials_b


PAIRED = Spread(0.041, 0.1364, 0.1364)
"""Typical suites: pass chances Beta(0.6, 0.6), two agents correlated by 0.85 (latent)."""
UNPAIRED = Spread(2 * 0.1136, 0.1364, 0.1364)
"""The same for two sets of scenarios that have nothing to do with each other."""


@dataclass(frozen=True, slots=True)
class Design:
    """A test that is planned.

    Args:
        trials_a: trials of A per scenario.
        trials_b: trials of B per scenario.
        per_family: scenarios in a family, on average.
        alpha: two-sided error rate.
        power: chance of seeing a difference that is there.
    """

    trials_a: int = 3
    trials_b: int = 3
    per_family: float = 1.0
    alpha: float = 0.05
    power: float = 0.8

    def __post_init__(self) -> None:
        if min(self.trials_a, self.trials_b) < 1 or self.per_family < 1:
            raise ValueError(f"a design needs at least one trial and one scenario in a family, got {self}")
        if not 0 < self.alpha < 1 or not 0 < self.power < 1:
            raise ValueError(f"alpha and power lie strictly between 0 and 1, got {self}")


def _variance(spread: Spread, design: Design) -> float:
    """Of one scenario's difference, blown up by the likeness within families."""
    return spread.one(design.trials_a, design.trials_b) * (1 + (design.per_family - 1) * spread.correlation)


def _reach(design: Design, df: float) -> float:
    """How many standard errors a difference must have."""
    return t_quantile(1 - design.alpha / 2, df) + t_quantile(design.power, df)


def scenarios_needed(difference: float, spread: Spread, design: Design) -> float:
    """Scenarios for a true difference by the closed form with normal quantiles, not rounded.

    N = (z + z)^2 (omega^2 + sigma_A^2/K_A + sigma_B^2/K_B) (1 + (m-1) rho) / delta^2.

    Args:
        difference: > 0, as a share.
    """
    if difference <= 0:
        raise ValueError(f"the difference to be seen is a positive share, got {difference}")
    return float(_reach(design, inf) ** 2 * _variance(spread, design) / difference**2)


def detectable(scenarios: float, spread: Spread, design: Design) -> float:
    """The smallest true difference that so many scenarios see, closed form with normal quantiles: the inverse of the above."""
    if scenarios <= 0:
        raise ValueError(f"the number of scenarios is positive, got {scenarios}")
    return float(_reach(design, inf) * sqrt(_variance(spread, design) / scenarios))


def detectable_clustered(scenarios: int, spread: Spread, design: Design) -> float | None:
    """The same with Student quantiles, C - 1 degrees of freedom, C = scenarios / per_family; None below two families."""
    count = scenarios / design.per_family
    if count < 2:
        return None
    return float(_reach(design, count - 1) * sqrt(_variance(spread, design) / scenarios))


def plan(
    difference: float, spread: Spread, design: Design, least_families: int = 6, most: int = 1_000_000
) -> int | None:
    """The smallest whole number of scenarios that sees a difference by the clustered test.

    Args:
        difference: > 0, as a share.
        spread: of the difference.
        design: trials and families.
        least_families: with fewer no permutation test can be significant.
        most: give up above this.

    Returns:
        None when more than `most` would be needed.
    """
    low = max(2, ceil(least_families * design.per_family), ceil(scenarios_needed(difference, spread, design)))
    high = low
    if low > most:
        return None
    while not _sees(high, difference, spread, design):
        low, high = high + 1, high * 2
        if low > most:
            return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _sees(middle, difference, spread, design) else (middle + 1, high)
    return low


def _sees(scenarios: int, difference: float, spread: Spread, design: Design) -> bool:
    least = detectable_clustered(scenarios, spread, design)
    return least is not None and least <= difference


def detectable_from_se(se: float, df: float, alpha: float = 0.05, power: float = 0.8) -> float:
    """The smallest true difference that a comparison with this standard error would have seen with this power."""
    return float((t_quantile(1 - alpha / 2, df) + t_quantile(power, df)) * se)


def best_trials(setup_cost: float, trial_cost: float, within: float, between: float) -> float:
    """Trials per scenario that give the smallest error for a fixed total cost: sqrt(a/b * E[p(1-p)] / Var(p)), at least 1.

    Args:
        setup_cost: a, of a scenario's environment; any unit.
        trial_cost: b > 0, of one trial, in the same unit.
        within: E[p(1-p)].
        between: Var(p_i) over scenarios; 0 gives infinity: then only trials help.
    """
    if trial_cost <= 0 or setup_cost < 0:
        raise ValueError(f"costs are positive, got {setup_cost} and {trial_cost}")
    return max(1.0, sqrt(setup_cost / trial_cost * within / between)) if between > 0 else inf


def estimated_spread(
    a: Mapping[K, Sequence[float]], b: Mapping[K, Sequence[float]], family_of: Mapping[K, str]
) -> Spread | None:
    """The spread that two agents showed on the same scenarios.

    Args:
        a: scenario -> scores of A's valid trials.
        b: the same of B.
        family_of: family of every scenario.

    Returns:
        None with fewer than two common scenarios. Within variances come from scenarios with two or more trials; without any,
        the typical one of `PAIRED`.
    """
    both = [name for name in a if a[name] and b.get(name)]
    if len(both) < 2:
        return None
    d = {name: mean(a[name]) - mean(b[name]) for name in both}
    centre = mean(list(d.values()))
    total = sum((value - centre) ** 2 for value in d.values()) / (len(d) - 1)
    within = [_within([side[name] for name in both], PAIRED.within_a) for side in (a, b)]
    noise = sum(each * mean([1 / len(side[name]) for name in both]) for each, side in zip(within, (a, b), strict=True))
    return Spread(max(0.0, total - noise), within[0], within[1], intra_family(d, family_of))


def _within(trials: Sequence[Sequence[float]], default: float) -> float:
    found = []
    for scores in trials:
        if len(scores) > 1:
            centre = mean(scores)
            found.append(sum((score - centre) ** 2 for score in scores) / (len(scores) - 1))
    return mean(found) if found else default


def intra_family(values: Mapping[K, float], family_of: Mapping[K, str]) -> float:
    """Intra-family correlation by one-way analysis of variance, cut to [0, 1]; 0 where no family has two scenarios.

    Source: Donner and Koval 1980.
    """
    groups = [[values[name] for name in members] for members in families(list(values), family_of).values()]
    n, count = len(values), len(groups)
    if count < 2 or n == count:
        return 0.0
    centre = mean(list(values.values()))
    between = sum(len(group) * (mean(group) - centre) ** 2 for group in groups) / (count - 1)
    inside = sum((value - mean(group)) ** 2 for group in groups for value in group) / (n - count)
    size = (n - sum(len(group) ** 2 for group in groups) / n) / (count - 1)
    total = between + (size - 1) * inside
    return min(1.0, max(0.0, (between - inside) / total)) if total > 0 else 0.0
