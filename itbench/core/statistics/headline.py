"""The headline of a run: the mean of scenario means, with the interval that says how it would come out on other scenarios.

Averages go over scenarios, never over trials, so that an uneven number of trials re-weights nothing. Called by the summaries of
`itbench run`, the report and `itbench compare`. Source: Miller 2024 (arXiv 2411.00640), `docs/statistics.md`.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

from itbench.core.statistics.clusters import clustered_se, families, fixed_suite_se, mean, scenario_se
from itbench.core.statistics.estimate import Estimate, undefined
from itbench.core.statistics.proportions import one_sided_bound
from itbench.core.statistics.quantiles import t_quantile

OTHERS = "other scenarios like these"
SAME = "another run of exactly these scenarios"
FEW_FAMILIES = 6
"""Below this number the interval is honest and wide; the reader is told so."""

NOTHING = 1e-12
"""A standard error below this is rounding."""

K = TypeVar("K", bound=Hashable)


def scenario_means(trials: Mapping[K, Sequence[float]]) -> dict[K, float]:
    """Mean score of each scenario that has a valid trial; the others are left out.

    Args:
        trials: scenario -> scores of its valid trials, each 0 or 1, or in [0, 1].
    """
    return {name: mean(scores) for name, scores in trials.items() if scores}


def clustered_mean(values: Mapping[K, float], family_of: Mapping[K, str], level: float = 0.95) -> Estimate:
    """Mean over scenarios, families drawn at random: p +- t(C-1) * clustered SE.

    Args:
        values: scenario -> its value.
        family_of: family of every scenario.
        level: of the interval.

    Returns:
        The value with a raw interval. With one family there is none. Where all values are 0 or all are 1, the standard error
        says nothing, and the interval is the one-sided bound on as many units as there are families.

    Raises:
        KeyError: a scenario without a family.
    """
    if not values:
        return undefined("no valid trial", question=OTHERS)
    centre, count = mean(list(values.values())), len(families(list(values), family_of))
    if count >= 2 and set(values.values()) in ({0.0}, {1.0}):
        return _extreme(centre, count, level)
    return clustered_t(values, family_of, level)


def clustered_t(values: Mapping[K, float], family_of: Mapping[K, str], level: float = 0.95) -> Estimate:
    """The clustered t interval of a mean of any values, such as differences; arguments as `clustered_mean`.

    Where the families balance so exactly that the clustered standard error is 0, it says nothing; then the one over scenarios
    is used, and said. Where all values are equal there is no interval.
    """
    if not values:
        return undefined("no valid trial", question=OTHERS)
    centre, count = mean(list(values.values())), len(families(list(values), family_of))
    if count < 2:
        return undefined("one family only", value=centre, n_units=count, question=OTHERS)
    se, notes = clustered_se(values, family_of) or 0.0, []
    if se < NOTHING:
        se = scenario_se(list(values.values())) or 0.0
        notes.append("families balance exactly; the standard error over scenarios is used")
    if se < NOTHING:
        return undefined("all scenarios alike", value=centre, n_units=count, question=OTHERS)
    if count < FEW_FAMILIES:
        notes.append("few families; the interval is wide by design")
    half = t_quantile((1 + level) / 2, count - 1) * se
    low, high = centre - half, centre + half
    return Estimate(centre, low, high, level, count - 1, "clustered t", count, OTHERS, se=se, notes=tuple(notes))


def _extreme(value: float, count: int, level: float) -> Estimate:
    bound = one_sided_bound(count, level)
    low, high = (1 - bound, 1.0) if value == 1.0 else (0.0, bound)
    return Estimate(value, low, high, level, None, "one-sided bound, all scenarios alike", count, OTHERS)


def plain_mean(values: Sequence[float], level: float = 0.95) -> Estimate:
    """Mean over scenarios that are known to be unrelated: p +- t(N-1) * scenario SE."""
    if not values:
        return undefined("no valid trial", question=OTHERS)
    se = scenario_se(values)
    if se is None:
        return undefined("one scenario only", value=values[0], n_units=1, question=OTHERS)
    centre, half = mean(values), t_quantile((1 + level) / 2, len(values) - 1) * se
    return Estimate(
        centre, centre - half, centre + half, level, len(values) - 1, "t over scenarios", len(values), OTHERS, se=se
    )


def fixed_suite(trials: Mapping[K, Sequence[float]], level: float = 0.95) -> Estimate:
    """The same mean as an estimate of what another run of exactly these scenarios gives: for regression gates.

    Args:
        trials: scenario -> scores of its valid trials; two or more each.
        level: of the interval; degrees of freedom are the trials minus the scenarios.
    """
    values = scenario_means(trials)
    if not values:
        return undefined("no valid trial", question=SAME)
    centre, kept = mean(list(values.values())), {name: trials[name] for name in values}
    se = fixed_suite_se(kept)
    if se is None:
        return undefined("needs two valid trials of each scenario", value=centre, n_units=len(values), question=SAME)
    df = sum(len(scores) for scores in kept.values()) - len(kept)
    half = t_quantile((1 + level) / 2, df) * se
    return Estimate(centre, centre - half, centre + half, level, df, "t within scenarios", len(values), SAME, se=se)
