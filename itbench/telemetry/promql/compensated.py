"""Sums and means as exact as those of Prometheus, which carries along what each addition loses (Neumaier's summation).

Plain sums are as good unless terms cancel or the sum overflows; only those are worked out again.
"""

from collections.abc import Callable

import numpy as np

from itbench.telemetry.metrics import Bools, Floats

CANCELLED = 1e-5
"""A sum this much smaller than the sum of its sizes has lost digits that matter."""
TIGHT = 1e-10
"""A variance this much smaller than the square of the mean shows by which steps it was worked out."""
_LARGEST = np.finfo(np.float64).max


def doubtful(sums: Floats, terms: Floats, fold: Callable[[Floats], Floats]) -> Bools | None:
    """Which sums (or means) plain addition may have got wrong; None for none of them.

    Args:
        sums: as plain addition gave them.
        terms: what was added, 0 where nothing was.
        fold: adds up terms in the same way.
    """
    finite = np.isfinite(sums)
    if not terms.size or (finite.all() and terms.min() >= 0):
        return None
    sizes = fold(np.abs(terms))
    found = (np.abs(sums) <= CANCELLED * sizes) & (sizes > 0) | ~finite & ~np.isnan(sizes)
    return np.asarray(found) if found.any() else None


def _increase(term: Floats, total: Floats, lost: Floats) -> tuple[Floats, Floats]:
    """One addition: the new sum, and what has been lost so far."""
    after = total + term
    larger = np.abs(total) >= np.abs(term)
    missing = np.where(larger, (total - after) + term, (term - after) + total)
    return after, np.where(np.abs(after) > _LARGEST, 0.0, lost + missing)


def total(values: Floats, there: Bools) -> Floats:
    """Sums over the last axis of what is there."""
    added, lost = np.zeros(values.shape[:-1]), np.zeros(values.shape[:-1])
    for place in range(values.shape[-1]):
        here = there[..., place]
        after, missing = _increase(values[..., place], added, lost)
        added, lost = np.where(here, after, added), np.where(here, missing, lost)
    return np.where(np.isinf(added), added, added + lost) + 0.0


def mean(values: Floats, there: Bools) -> Floats:
    """Means over the last axis of what is there; where the sum would overflow, the mean is carried along instead."""
    shape = values.shape[:-1]
    level, lost, count, carried = np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=bool)
    for place in range(values.shape[-1]):
        here, term = there[..., place], values[..., place]
        count = count + here
        after, missing = _increase(term, level, lost)
        over = here & ~carried & np.isinf(after) & (count > 1)
        before = np.maximum(count - 1, 1)
        level, lost = np.where(over, level / before, level), np.where(over, lost / before, lost)
        carried = carried | over
        share = (count - 1) / count
        next_mean, next_lost = _increase(term / count, share * level, share * lost)
        level = np.where(here, np.where(carried, next_mean, after), level)
        lost = np.where(here, np.where(carried, next_lost, missing), lost)
    return np.where(carried, level + lost, level / count + lost / count)


def variance(values: Floats, there: Bools, *, carry: bool) -> Floats:
    """Population variances over the last axis of what is there, by Welford's steps.

    Args:
        values, there: shape (..., n).
        carry: what additions lose is carried along, as in ranges; aggregations of series do without.
    """
    shape = values.shape[:-1]
    count, level, lost, spread, missing = (np.zeros(shape) for _ in range(5))
    for place in range(values.shape[-1]):
        here, value = there[..., place], values[..., place]
        count = count + here
        apart = value - (level + lost)
        next_level, next_lost = _increase(apart / count, level, lost) if carry else (level + apart / count, lost)
        term = apart * (value - (next_level + next_lost))
        next_spread, next_missing = _increase(term, spread, missing) if carry else (spread + term, missing)
        level, lost = np.where(here, next_level, level), np.where(here, next_lost, lost)
        spread, missing = np.where(here, next_spread, spread), np.where(here, next_missing, missing)
    return (spread + missing) / count
