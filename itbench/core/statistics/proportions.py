"""Intervals for one proportion of independent trials, and bounds where nothing or everything passed.

Only for unclustered data with one trial per scenario, and for rates of other things; the headline is in `headline`.
"""

from math import sqrt

from itbench.core.statistics.estimate import Estimate, undefined
from itbench.core.statistics.quantiles import beta_quantile, normal_quantile

QUESTION = "other independent trials like these"


def wilson(passes: int, n: int, level: float = 0.95) -> Estimate:
    """Wilson's score interval of passes/n. Source: Wilson 1927; Bowyer et al. 2025 (arXiv 2503.01747)."""
    if bad := _bad(passes, n):
        return bad
    z, p = normal_quantile((1 + level) / 2), passes / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    low, high = max(0.0, centre - half), min(1.0, centre + half)
    # At the ends the formula gives exactly 0 and 1 but for rounding.
    low, high = 0.0 if passes == 0 else low, 1.0 if passes == n else high
    return Estimate(p, low, high, level, method="Wilson", n_units=n, question=QUESTION)


def jeffreys(passes: int, n: int, level: float = 0.95) -> Estimate:
    """Equal-tailed interval of the posterior under a Beta(1/2, 1/2) prior; 0 and 1 are kept as ends where nothing or all passed.

    Source: Brown, Cai and DasGupta 2001.
    """
    if bad := _bad(passes, n):
        return bad
    a, b, tail = passes + 0.5, n - passes + 0.5, (1 - level) / 2
    low = 0.0 if passes == 0 else beta_quantile(tail, a, b)
    high = 1.0 if passes == n else beta_quantile(1 - tail, a, b)
    return Estimate(passes / n, low, high, level, method="Jeffreys, Beta(1/2, 1/2)", n_units=n, question=QUESTION)


def clopper_pearson(passes: int, n: int, level: float = 0.95) -> Estimate:
    """The exact interval, never below its level, therefore wide. Source: Clopper and Pearson 1934."""
    if bad := _bad(passes, n):
        return bad
    tail = (1 - level) / 2
    low = 0.0 if passes == 0 else beta_quantile(tail, passes, n - passes + 1)
    high = 1.0 if passes == n else beta_quantile(1 - tail, passes + 1, n - passes)
    return Estimate(passes / n, low, high, level, method="Clopper-Pearson", n_units=n, question=QUESTION)


def one_sided_bound(n: int, level: float = 0.95) -> float:
    """The highest failure rate that n passes in a row leave possible: 1 - (1 - level)^(1/n), about 3/n.

    By symmetry also the highest pass rate after n failures. Source: the rule of three, Hanley and Lippman-Hand 1983.
    """
    if n < 1:
        raise ValueError(f"a bound needs at least one unit, got {n}")
    return float(1 - (1 - level) ** (1 / n))


def _bad(passes: int, n: int) -> Estimate | None:
    if not 0 <= passes <= n:
        raise ValueError(f"a proportion needs 0 <= passes <= n, got {passes} of {n}")
    return undefined("no trials", question=QUESTION) if n == 0 else None
