"""Quantiles of classic histograms: series that differ only in `le` are the cumulative buckets of one distribution."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from itbench.telemetry.labels import NAME, LabelList, Labels
from itbench.telemetry.metrics import Bools, Floats
from itbench.telemetry.promql.samples import Ints
from itbench.telemetry.promql.values import Vector, join_equal

SMALL_DELTA = 1e-12
"""Buckets whose counts differ relatively by less are equal: sums of floats in different orders."""


def parse_bound(text: str) -> float | None:
    """The upper bound of a bucket, None where the label is not a number."""
    try:
        return float(text)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class _Histograms:
    """The histograms among the series of a vector.

    Attributes:
        labels: that identify each histogram.
        buckets: (upper bound, row) of each.
        bounds, rows: the bounds (B,), ascending, and the rows (G, B), where all histograms have the same different bounds.
    """

    labels: LabelList
    buckets: tuple[list[tuple[float, int]], ...]
    bounds: Floats | None = None
    rows: Ints | None = None


def _find(labels: LabelList) -> _Histograms:
    groups: dict[Labels, list[tuple[float, int]]] = {}
    for row, each in enumerate(labels):
        bound = parse_bound(dict(each).get("le", ""))
        if bound is not None:
            key = tuple(pair for pair in each if pair[0] not in ("le", NAME))
            groups.setdefault(key, []).append((bound, row))
    buckets = tuple(sorted(each) for each in groups.values())
    bounds = {tuple(bound for bound, _ in each) for each in buckets}
    if len(bounds) == 1 and len(set(common := bounds.pop())) == len(common):
        rows = np.array([[row for _, row in each] for each in buckets])
        return _Histograms(LabelList(groups), buckets, np.array(common), rows)
    return _Histograms(LabelList(groups), buckets)


def _patterns(present: Bools) -> Iterator[tuple[Bools, Bools]]:
    """Distinct columns of `present` that have any bucket: (which buckets, at which steps)."""
    columns, inverse = np.unique(present, axis=1, return_inverse=True)
    for number in range(columns.shape[1]):
        if columns[:, number].any():
            yield columns[:, number], inverse.ravel() == number


def _coalesce(bounds: list[float], counts: Floats) -> tuple[Floats, Floats]:
    """Sorted buckets, equal bounds added up."""
    upper, inverse = np.unique(np.array(bounds), return_inverse=True)
    added = np.zeros((len(upper), counts.shape[1]))
    np.add.at(added, inverse, counts)
    return upper, added


def _monotonic(counts: Floats) -> Floats:
    """Counts that never fall; tiny differences are no difference."""
    fixed = counts.copy()
    last = fixed[0].copy()
    for row in fixed[1:]:
        near = np.abs(row - last) / (np.abs(row) + np.abs(last)) < SMALL_DELTA
        hold = near | (row < last)
        row[hold] = last[hold]
        last = row.copy()
    return fixed


def bucket_quantile(q: Floats, upper: Floats, counts: Floats) -> Floats:
    """Quantiles by linear interpolation within the bucket.

    Args:
        q: shape (T,).
        upper: bounds, ascending, the last one infinite (else the answer is NaN), shape (B,).
        counts: cumulative, shape (B, T).
    """
    if len(upper) < 2 or not (np.isinf(upper[-1]) and upper[-1] > 0):
        inside = np.full(len(q), np.nan)
    else:
        inside = _interpolate(q, upper, _monotonic(counts))
    answer = np.where(q < 0, -np.inf, np.where(q > 1, np.inf, inside))
    return np.where(np.isnan(q), np.nan, answer)


def _interpolate(q: Floats, upper: Floats, counts: Floats) -> Floats:
    total = counts[-1]
    rank = q * total
    finite = len(upper) - 1
    bucket = np.argmax(np.vstack([counts[:finite] >= rank, np.ones((1, len(q)), dtype=bool)]), axis=0)
    steps = np.arange(len(q))
    before = np.maximum(bucket - 1, 0)
    low = np.where(bucket > 0, upper[before], 0.0)
    below = np.where(bucket > 0, counts[before, steps], 0.0)
    high = upper[bucket]
    share = (rank - below) / (counts[bucket, steps] - below)
    answer = low + (high - low) * share
    answer = np.where((bucket == 0) & (upper[0] <= 0), upper[0], answer)
    answer = np.where(bucket == finite, upper[finite - 1], answer)
    return np.where(total == 0, np.nan, answer)


def bucket_fraction(low: Floats, high: Floats, upper: Floats, counts: Floats) -> Floats:
    """The share of observations between two values, by linear interpolation within buckets; shapes as above."""
    total = counts[-1]
    if not (np.isinf(upper[-1]) and upper[-1] > 0):
        return np.full(len(low), np.nan)
    bounds = np.concatenate([[0.0 if upper[0] > 0 else -np.inf], upper])
    ranks = np.vstack([np.zeros((1, counts.shape[1])), counts])
    share = (_rank(high, bounds, ranks) - _rank(low, bounds, ranks)) / total
    return np.where((total == 0) | np.isnan(low) | np.isnan(high), np.nan, np.where(low >= high, 0.0, share))


def _rank(value: Floats, bounds: Floats, ranks: Floats) -> Floats:
    """How many observations are at most `value` (T,): bounds (B + 1,), ranks (B + 1, T)."""
    bucket = np.clip(np.searchsorted(bounds, value, side="right"), 1, len(bounds) - 1)
    steps = np.arange(len(value))
    below, above = ranks[bucket - 1, steps], ranks[bucket, steps]
    left, right = bounds[bucket - 1], bounds[bucket]
    inside = below + (above - below) * np.where(np.isinf(right), 0.0, (value - left) / (right - left))
    return np.where(value <= bounds[0], 0.0, np.where(value == np.inf, ranks[-1], inside))


Measure = Callable[[Ints, Floats, Floats], Floats]
"""(steps (N,), bounds (B,), cumulative counts (B, N)) -> values (N,)."""


def histogram_quantile(q: Floats, vector: Vector) -> Vector:
    """One series per histogram in the vector; q has shape (T,)."""
    return _per_histogram(vector, lambda at, upper, counts: bucket_quantile(q[at], upper, counts))


def histogram_fraction(low: Floats, high: Floats, vector: Vector) -> Vector:
    """One series per histogram in the vector; the bounds have shape (T,)."""
    return _per_histogram(vector, lambda at, upper, counts: bucket_fraction(low[at], high[at], upper, counts))


def _per_histogram(vector: Vector, measure: Measure) -> Vector:
    """`measure` for every histogram and set of its buckets that occurs."""
    found = vector.labels.remember("histograms", lambda: _find(vector.labels))
    steps = vector.values.shape[1]
    if found.rows is not None and found.bounds is not None and vector.present[found.rows].all():
        counts = vector.values[found.rows].transpose(1, 0, 2).reshape(len(found.bounds), -1)
        at = np.tile(np.arange(steps), len(found.labels))
        values = measure(at, found.bounds, counts).reshape(-1, steps)
        return join_equal(Vector(found.labels, values, np.ones(values.shape, dtype=bool)))
    values = np.full((len(found.labels), steps), np.nan)
    present = np.zeros(values.shape, dtype=bool)
    for target, buckets in enumerate(found.buckets):
        rows = np.array([row for _, row in buckets])
        for which, there in _patterns(vector.present[rows]):
            bounds = [bound for (bound, _), taken in zip(buckets, which.tolist(), strict=True) if taken]
            upper, counts = _coalesce(bounds, vector.values[rows[which]][:, there])
            values[target, there] = measure(np.flatnonzero(there), upper, counts)
            present[target, there] = True
    return join_equal(Vector(found.labels, values, present))
