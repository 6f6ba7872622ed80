"""The one partition into families, and every standard error that rests on it. Called by `headline`, `paired`, `bootstrap`.

The unit of independence is the family of a scenario: its scenarios share a cause of success, so they are one draw, not several.
A scenario without a family is a family of its own; that is said by the caller, never guessed here.
"""

from collections.abc import Hashable, Mapping, Sequence
from math import fsum, sqrt
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean, exact to the last bit that summation allows; raises ValueError for no values."""
    if not values:
        raise ValueError("the mean of no values is undefined")
    return fsum(values) / len(values)


def families(items: Sequence[K], family_of: Mapping[K, str]) -> dict[str, list[K]]:
    """Partition items by family.

    Args:
        items: scenario ids, in any order.
        family_of: family of every item.

    Returns:
        Family -> its items, both in order of first appearance.

    Raises:
        KeyError: an item has no family. It is never put into a common cluster silently.
    """
    found: dict[str, list[K]] = {}
    for item in items:
        if item not in family_of:
            raise KeyError(f"no family given for {item!r}; a scenario of its own is its own family")
        found.setdefault(family_of[item], []).append(item)
    return found


def residual_sums(values: Mapping[K, float], family_of: Mapping[K, str]) -> list[float]:
    """Per family, the sum of deviations from the mean over all items. Shape: (number of families,)."""
    centre = mean(list(values.values()))
    return [fsum(values[item] - centre for item in members) for members in families(list(values), family_of).values()]


def clustered_se(values: Mapping[K, float], family_of: Mapping[K, str]) -> float | None:
    """Cluster-robust standard error of the mean of `values`.

    (1/N) sqrt( C/(C-1) * sum over families of (sum of residuals)^2 ), the CR1-type estimator.

    Args:
        values: item -> value, N of them.
        family_of: family of every item; C families.

    Returns:
        The standard error in the unit of the values; None with fewer than two families.

    Source: Miller 2024 (arXiv 2411.00640), section 2.2; Cameron and Miller 2015.
    """
    sums = residual_sums(values, family_of)
    if len(sums) < 2:
        return None
    c = len(sums)
    return sqrt(c / (c - 1) * fsum(each * each for each in sums)) / len(values)


def scenario_se(values: Sequence[float]) -> float | None:
    """Standard error of the mean of unrelated scenarios: sqrt( sum (s - p)^2 / (N (N-1)) ); None with fewer than two.

    It contains the noise within a scenario already; nothing is to be added. Source: Miller 2024, section 2.1.
    """
    if len(values) < 2:
        return None
    centre, n = mean(values), len(values)
    return sqrt(fsum((value - centre) ** 2 for value in values) / (n * (n - 1)))


def fixed_suite_se(trials: Mapping[K, Sequence[float]]) -> float | None:
    """Standard error for another run of exactly these scenarios: only the noise within scenarios counts.

    (1/N) sqrt( sum over scenarios of (sample variance of its trials) / n_i ), which for passes and fails is
    (1/N) sqrt( sum s_i (1 - s_i) / (n_i - 1) ).

    Args:
        trials: scenario -> scores of its trials; at least two each.

    Returns:
        The standard error; None when a scenario has fewer than two trials.
    """
    if not trials or any(len(scores) < 2 for scores in trials.values()):
        return None
    total = 0.0
    for scores in trials.values():
        centre = mean(scores)
        total += fsum((score - centre) ** 2 for score in scores) / (len(scores) * (len(scores) - 1))
    return sqrt(total) / len(trials)
