"""Quantiles of classic histograms: series that differ only in `le` are the cumulative buckets of one distribution."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from itbench.telemetry.labels import LabelList, Labels
from itbench.telemetry.metrics import Bools, Floats
from itbench.telemetry.promql.notes import Forced, Notes, tally
from itbench.telemetry.promql.samples import Ints
from itbench.telemetry.promql.tree import Node
from itbench.telemetry.promql.values import Vector, drop_name, join_equal

SMALL_DELTA = 1e-12
"""Buckets whose counts differ relatively by less are equal: sums of floats in different orders."""


def parse_bound(text: str) -> float | None:
    """The upper bound of a bucket, None where the label is not a number."""
    try:
        bound = float("" if "_" in text or text != text.strip() else text)
    except ValueError:
        return None
    return None if np.isnan(bound) else bound


@dataclass(frozen=True, slots=True)
class _Histograms:
    """The histograms among the series of a vector.

    Attributes:
        labels: that identify each histogram.
        buckets: (upper bound, row) of each.
        strays: rows of series that are no buckets, by what stands where the bound should.
        bounds, rows: the bounds (B,), ascending, and the rows (G, B), where all histograms have the same different bounds.
    """

    labels: LabelList
    buckets: tuple[list[tuple[float, int]], ...]
    strays: dict[str, list[int]]
    bounds: Floats | None = None
    rows: Ints | None = None


def _find(labels: LabelList) -> _Histograms:
    groups: dict[Labels, list[tuple[float, int]]] = {}
    strays: dict[str, list[int]] = {}
    for row, each in enumerate(labels):
        text = dict(each).get("le", "")
        bound = parse_bound(text)
        if bound is None:
            strays.setdefault(text, []).append(row)
        else:
            groups.setdefault(tuple(pair for pair in each if pair[0] != "le"), []).append((bound, row))
    named = LabelList(drop_name(each) for each in groups)
    buckets = tuple(sorted(each) for each in groups.values())
    bounds = {tuple(bound for bound, _ in each) for each in buckets}
    if len(bounds) == 1 and len(set(common := bounds.pop())) == len(common):
        rows = np.array([[row for _, row in each] for each in buckets])
        return _Histograms(named, buckets, strays, np.array(common), rows)
    return _Histograms(named, buckets, strays)


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


def _monotonic(counts: Floats) -> tuple[Floats, Floats]:
    """Counts that never fall, and by how much each had fallen; tiny differences are no difference."""
    fixed, fallen = counts.copy(), np.zeros(counts.shape)
    last = fixed[0].copy()
    for place, row in enumerate(fixed):
        if not place:
            continue
        near = np.abs(row - last) / (np.abs(row) + np.abs(last)) < SMALL_DELTA
        down = row < last
        fallen[place] = np.where(down & ~near, last - row, 0.0)
        row[near | down] = last[near | down]
        last = row.copy()
    return fixed, fallen


def bucket_quantile(q: Floats, upper: Floats, counts: Floats) -> tuple[Floats, Floats]:
    """Quantiles by linear interpolation within the bucket, and by how much counts had fallen that must not fall (B, T).

    Args:
        q: shape (T,).
        upper: bounds, ascending, the last one infinite (else the answer is NaN), shape (B,).
        counts: cumulative, shape (B, T).
    """
    inside, fallen = np.full(len(q), np.nan), np.zeros(counts.shape)
    if np.isinf(upper[-1]) and upper[-1] > 0:
        fixed, fallen = _monotonic(counts)
        fallen = np.where((q >= 0) & (q <= 1), fallen, 0.0)
        if len(upper) > 1:
            inside = _interpolate(q, upper, fixed)
    answer = np.where(q < 0, -np.inf, np.where(q > 1, np.inf, inside))
    return np.where(np.isnan(q), np.nan, answer), fallen


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
    inside = np.minimum(np.where(np.isneginf(left), above, inside), ranks[-1])
    return np.where(value <= bounds[0], 0.0, np.where(value == np.inf, ranks[-1], inside))


Measure = Callable[[Ints, Floats, Floats], Floats]
"""(steps (N,), bounds (B,), cumulative counts (B, N)) -> values (N,)."""


def histogram_quantile(q: Floats, vector: Vector, notes: Notes, node: Node, seconds: Floats) -> Vector:
    """One series per histogram in the vector.

    Args:
        q: shape (T,).
        vector: the buckets.
        notes, node: where is told what had to be put right, and about what.
        seconds: Unix seconds of the steps, shape (T,).
    """

    falls: list[tuple[Ints, Floats, float]] = []

    def measure(at: Ints, upper: Floats, counts: Floats) -> Floats:
        values, fallen = bucket_quantile(q[at], upper, counts)
        if fallen.any():
            falls.append((at[fallen.any(axis=0)], upper[fallen.any(axis=1)], float(fallen.max())))
        return values

    _note_strays(vector, notes, node)
    answer = _per_histogram(vector, measure)
    if falls:
        steps, bounds = (np.concatenate([each[part] for each in falls]) for part in (0, 1))
        ends = float(seconds[steps.min()]), float(seconds[steps.max()]), float(bounds.min()), float(bounds.max())
        per_step = np.bincount(steps, minlength=len(seconds)).tolist()
        notes.forced(Forced(*ends, max(most for _, _, most in falls), tally(per_step)), node)
    return answer


def histogram_fraction(low: Floats, high: Floats, vector: Vector, notes: Notes, node: Node) -> Vector:
    """One series per histogram in the vector; the bounds have shape (T,)."""
    _note_strays(vector, notes, node)
    return _per_histogram(vector, lambda at, upper, counts: bucket_fraction(low[at], high[at], upper, counts))


def _found(vector: Vector) -> _Histograms:
    return vector.labels.remember("histograms", lambda: _find(vector.labels))


def _note_strays(vector: Vector, notes: Notes, node: Node) -> None:
    for text, rows in _found(vector).strays.items():
        if vector.present[rows].any():
            notes.bad_bucket(text, node)


def _per_histogram(vector: Vector, measure: Measure) -> Vector:
    """`measure` for every histogram and set of its buckets that occurs."""
    found = _found(vector)
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
