"""Many comparisons at once: adjusted p-values. Called by `itbench compare` and exploratory tables."""

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment within a declared set: controls the chance of any false finding.

    Returns:
        Adjusted p-values in the given order. Source: Holm 1979.
    """
    adjusted, highest, m = [0.0] * len(p_values), 0.0, len(p_values)
    for rank, index in enumerate(sorted(range(m), key=lambda i: _checked(p_values[i]))):
        highest = max(highest, min(1.0, (m - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """False discovery rate adjustment, for exploratory tables that are labelled so.

    Returns:
        Adjusted p-values in the given order. Source: Benjamini and Hochberg 1995.
    """
    adjusted, lowest, m = [0.0] * len(p_values), 1.0, len(p_values)
    order = sorted(range(m), key=lambda i: _checked(p_values[i]))
    for rank in range(m, 0, -1):
        index = order[rank - 1]
        # Never below the raw value, which rounding alone could bring about.
        lowest = min(lowest, max(p_values[index], min(1.0, p_values[index] * m / rank)))
        adjusted[index] = lowest
    return adjusted


def _checked(p: float) -> float:
    if not 0 <= p <= 1:
        raise ValueError(f"a p-value lies in [0, 1], got {p}")
    return p
