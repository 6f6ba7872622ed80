"""Looking early without fooling oneself: intervals that hold at every moment, and a rule that spends alpha.

The number of scenarios and trials is fixed before a run; these are for futility and cost, where a run is stopped early.
"""

from math import log, sqrt

from itbench.core.statistics.estimate import Estimate, undefined
from itbench.core.statistics.quantiles import normal_cdf, normal_quantile


def confidence_sequence(value: float, units: int, level: float = 0.95, best_at: int = 40) -> Estimate:
    """An interval for a mean of independent scores in [0, 1] that holds at all numbers of units at once.

    Args:
        value: mean so far.
        units: independent units so far (families).
        level: chance that the true mean never leaves the intervals.
        best_at: number of units at which it is narrowest.

    Source: Howard et al. 2021, two-sided normal mixture (arXiv 1810.08240), scores sub-Gaussian with variance 1/4.
    """
    if units < 1:
        return undefined("no units yet")
    alpha = 1 - level
    scale = sqrt((-2 * log(alpha) + log(-2 * log(alpha) + 1)) / best_at)
    spread = units * scale * scale
    half = 0.5 * sqrt(2 * (spread + 1) / (units * units * scale * scale) * log(sqrt(spread + 1) / alpha))
    return Estimate(
        value, value - half, value + half, level, None, "confidence sequence, normal mixture", units, "at every look"
    )


def spent_alpha(fraction: float, alpha: float = 0.05) -> float:
    """Two-sided alpha that may have been spent when this fraction of the planned information is in.

    2 (1 - Phi(z_{1-alpha/2} / sqrt(fraction))): hardly anything early. Source: Lan and DeMets 1983, O'Brien-Fleming type.
    """
    if not 0 <= fraction <= 1:
        raise ValueError(f"the fraction of information lies in [0, 1], got {fraction}")
    return 2 * (1 - normal_cdf(normal_quantile(1 - alpha / 2) / sqrt(fraction))) if fraction > 0 else 0.0
