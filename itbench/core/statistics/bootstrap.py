"""Cluster bootstrap for what has no simple standard error: ratios of sums, medians, restricted means.

Whole families are drawn with replacement. The percentile interval covers too little below twenty families, so the
bias-corrected and accelerated one is the default. Called by summaries of cost and savings and by comparisons of times.
"""

import random
from bisect import bisect_left
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from itbench.core.statistics.clusters import families
from itbench.core.statistics.estimate import Estimate, undefined
from itbench.core.statistics.headline import FEW_FAMILIES, OTHERS
from itbench.core.statistics.quantiles import normal_cdf, normal_quantile

K = TypeVar("K", bound=Hashable)
Statistic = Callable[[Sequence[Any]], float | None]
"""From units (in any order) to a number; None where it is undefined on them."""
DRAWS = 2000


def cluster_bootstrap(
    units: Mapping[K, Any],
    family_of: Mapping[K, str],
    statistic: Statistic,
    *,
    level: float = 0.95,
    method: Literal["bca", "percentile"] = "bca",
    seed: int = 0,
    draws: int = DRAWS,
) -> Estimate:
    """Interval of a statistic by drawing families.

    Args:
        units: scenario -> whatever the statistic takes, such as (cost, successes).
        family_of: family of every scenario.
        statistic: what is estimated.
        level: of the interval.
        method: `bca` (Efron 1987) or `percentile`.
        seed: of the draws.
        draws: how many.

    Returns:
        Undefined without a value, with fewer than two families, or where every draw gives the same.
    """
    groups = [[units[name] for name in members] for members in families(list(units), family_of).values()]
    value = statistic([unit for group in groups for unit in group]) if groups else None
    if value is None:
        return undefined("undefined on these trials", n_units=len(groups), question=OTHERS)
    if len(groups) < 2:
        return undefined("one family only: nothing to draw from", value=value, n_units=len(groups), question=OTHERS)
    drawn = _draw(groups, statistic, seed, draws)
    if not drawn or drawn[0] == drawn[-1]:
        return undefined("every draw gives the same", value=value, n_units=len(groups), question=OTHERS)
    tails = ((1 - level) / 2, (1 + level) / 2)
    if method == "bca":
        tails = _corrected(groups, statistic, value, drawn, tails)
    low, high = (_quantile(drawn, tail) for tail in tails)
    name = f"cluster bootstrap, {'BCa' if method == 'bca' else method}"
    # The corrected ends may miss the value itself when it is an extreme of its draws.
    found = Estimate(value, min(low, value), max(high, value), level, None, name, len(groups), OTHERS)
    return found.noted("few families; the interval is rough") if len(groups) < FEW_FAMILIES else found


def _draw(groups: list[list[Any]], statistic: Statistic, seed: int, draws: int) -> list[float]:
    """The statistic on `draws` sets of families, sorted; draws on which it is undefined are left out."""
    generator, found = random.Random(seed), []
    for _ in range(draws):
        drawn = statistic([unit for group in generator.choices(groups, k=len(groups)) for unit in group])
        if drawn is not None:
            found.append(drawn)
    return sorted(found)


def _corrected(
    groups: list[list[Any]], statistic: Statistic, value: float, drawn: list[float], tails: tuple[float, float]
) -> tuple[float, float]:
    """The tails of the BCa interval: shifted for bias, stretched for skewness (jackknife over families)."""
    below = (bisect_left(drawn, value) + 0.5 * (drawn.count(value))) / len(drawn)
    below = min(max(below, 0.5 / len(drawn)), 1 - 0.5 / len(drawn))
    bias = normal_quantile(below)
    left_out = [
        statistic([unit for other, group in enumerate(groups) if other != index for unit in group])
        for index in range(len(groups))
    ]
    known = [each for each in left_out if each is not None]
    centre = sum(known) / len(known) if known else 0.0
    cubes = sum((centre - each) ** 3 for each in known)
    squares = sum((centre - each) ** 2 for each in known)
    skew = cubes / (6 * squares**1.5) if squares > 0 else 0.0

    def moved(tail: float) -> float:
        z = bias + normal_quantile(tail)
        return normal_cdf(bias + z / max(1 - skew * z, 1e-9))

    return moved(tails[0]), moved(tails[1])


def _quantile(ordered: list[float], p: float) -> float:
    """Linear interpolation between order statistics."""
    place = min(max(p, 0.0), 1.0) * (len(ordered) - 1)
    index = min(int(place), len(ordered) - 2)
    return ordered[index] + (place - index) * (ordered[index + 1] - ordered[index])


def ratio_of_sums(pairs: Sequence[tuple[float, float]]) -> float | None:
    """sum of numerators / sum of denominators; None where the latter is 0. The statistic of cost per success."""
    below = sum(pair[1] for pair in pairs)
    return sum(pair[0] for pair in pairs) / below if below else None
