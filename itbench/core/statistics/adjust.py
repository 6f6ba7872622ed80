"""Averages over domains with fixed weights, and control variates. Called by summaries over whole suites."""

from collections.abc import Mapping, Sequence
from math import sqrt

from itbench.core.statistics.clusters import mean
from itbench.core.statistics.estimate import Estimate, undefined
from itbench.core.statistics.headline import OTHERS
from itbench.core.statistics.quantiles import t_quantile

DOMAIN_WEIGHTS: dict[str, float] = {"sre": 1 / 3, "ciso": 1 / 3, "finops": 1 / 3}
"""Published and fixed: a suite with many SRE scenarios does not make the whole an SRE score."""


def macro_average(parts: Mapping[str, Estimate], weights: Mapping[str, float], level: float = 0.95) -> Estimate:
    """Weighted mean of independent estimates, such as one per domain.

    Args:
        parts: name -> estimate; every part needs a weight. Weights are scaled to sum to 1 over the parts there are.
        weights: name -> weight > 0.
        level: of the interval.

    Returns:
        Standard errors combine as sqrt(sum w^2 se^2), degrees of freedom by Welch and Satterthwaite. The interval is undefined
        where a part has no standard error.

    Raises:
        KeyError: a part without a weight.
    """
    known = {name: part.value for name, part in parts.items() if part.value is not None}
    if not known or len(known) < len(parts):
        missing = ", ".join(sorted(set(parts) - set(known))) or "any part"
        return undefined(f"no value of {missing}", question=OTHERS)
    whole = sum(weights[name] for name in known)
    shares = {name: weights[name] / whole for name in known}
    value = sum(shares[name] * known[name] for name in known)
    units = sum(part.n_units for part in parts.values())
    terms = [
        ((shares[name] * part.se) ** 2, part.df) for name, part in parts.items() if part.se and part.df is not None
    ]
    if len(terms) < len(parts):
        return undefined("a part has no standard error", value=value, n_units=units, question=OTHERS)
    variance = sum(term for term, _ in terms)
    df = variance**2 / sum(term**2 / each for term, each in terms)
    se = sqrt(variance)
    half = t_quantile((1 + level) / 2, df) * se
    return Estimate(value, value - half, value + half, level, df, "macro average, Welch t", units, OTHERS, se=se)


def control_variate(scores: Sequence[float], reference: Sequence[float], reference_mean: float) -> float:
    """The mean of scores, corrected by how a reference agent did on the same scenarios.

    p - theta (mean(reference) - reference_mean), theta = Cov / Var; 0 where the reference does not vary.

    Args:
        scores: one per scenario.
        reference: rates of the reference agent on the same scenarios, in the same order.
        reference_mean: its known rate over all scenarios.

    Source: Lavenberg and Welch 1981.
    """
    if len(scores) != len(reference):
        raise ValueError(f"one reference rate per scenario, got {len(reference)} for {len(scores)}")
    centre, middle = mean(scores), mean(reference)
    variance = sum((x - middle) ** 2 for x in reference)
    if variance <= 0:
        return centre
    theta = sum((s - centre) * (x - middle) for s, x in zip(scores, reference, strict=True)) / variance
    return centre - theta * (middle - reference_mean)
