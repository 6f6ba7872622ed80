"""Raw samples behind selectors and subqueries, flat in memory, and where the window of each step begins and ends in them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from itbench.core.clock import EPOCH
from itbench.telemetry.labels import LabelList, Labels
from itbench.telemetry.metrics import Bools, Chunk, Floats, is_absent, is_stale
from itbench.telemetry.promql.values import Vector

Ints = NDArray[np.int64]

EPOCH_MS = EPOCH.timestamp() * 1000.0


def to_ms(seconds: float) -> float:
    """World seconds -> whole milliseconds of the world's own calendar, which is what Prometheus computes with."""
    return float(round(seconds * 1000.0)) + EPOCH_MS


def to_seconds(ms: Floats) -> Floats:
    """The inverse of `to_ms`, for arrays."""
    return (ms - EPOCH_MS) / 1000.0


@dataclass(frozen=True, slots=True)
class Grid:
    """k series that share n sample times; `counts` maps rows to samples where some series lack some rows.

    Attributes:
        t: milliseconds, shape (n,).
        first: place of each series' first sample in the flat arrays, shape (k,).
        counts: samples of each series before each row, shape (n + 1, k); None where no sample is missing.
    """

    t: Floats
    first: Ints
    counts: Ints | None

    def places(self, times: Floats) -> Ints:
        """For each series and time the flat place after its last sample at or before that time: shape (k, T)."""
        rows = np.searchsorted(self.t, times, side="right")
        if self.counts is None:
            return self.first[:, None] + rows[None, :]
        return self.first[:, None] + self.counts[rows].T


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples of S series, one series after the other.

    Attributes:
        labels: in the order in which the series were created.
        t, v: milliseconds and values, shape (N + 1,): the last one is a sentinel.
        grids: the series, grouped by common times.
        order: from the order of the grids to that of the labels, shape (S,).
    """

    labels: LabelList
    t: Floats
    v: Floats
    grids: tuple[Grid, ...]
    order: Ints

    def places(self, times: Floats) -> Ints:
        """As `Grid.places`, for all series, shape (S, T)."""
        if len(self.grids) == 1:
            return self.grids[0].places(times)[self.order]
        if not self.grids:
            return np.empty((0, len(times)), dtype=np.int64)
        return np.concatenate([grid.places(times) for grid in self.grids])[self.order]


Part = tuple[Sequence[Labels], Floats, Floats, Bools]
"""Labels of k series, times in milliseconds (n,), values (n, k), present (n, k)."""


def _flat(parts: Sequence[Part], ids: Sequence[int], joined: LabelList) -> Samples:
    """Samples ordered by their ids; `joined` are the labels in that order."""
    grids: list[Grid] = []
    times: list[Floats] = []
    values: list[Floats] = []
    place = 0
    for names, t, v, present in parts:
        width = len(names)
        counts: Ints | None = None
        if present.all():
            sizes = np.full(width, len(t))
            times.append(np.tile(t, width))
            values.append(v.T.ravel())
        else:
            counts = np.zeros((len(t) + 1, width), dtype=np.int64)
            np.cumsum(present, axis=0, out=counts[1:])
            sizes = counts[-1]
            times.append(np.broadcast_to(t, (width, len(t)))[present.T])
            values.append(v.T[present.T])
        first = place + np.cumsum(sizes) - sizes
        place += int(sizes.sum())
        grids.append(Grid(t, first, counts))
    order = np.argsort(np.array(ids, dtype=np.int64), kind="stable")
    sentinel = [np.zeros(1)]
    return Samples(
        joined,
        np.concatenate(times + sentinel),
        np.concatenate(values + sentinel),
        tuple(grids),
        order,
    )


def _common(chunks: Sequence[Chunk]) -> list[tuple[list[Labels], Floats, Floats, list[int]]]:
    """Chunks with equal times put side by side."""
    groups: dict[bytes, list[Chunk]] = {}
    for chunk in chunks:
        groups.setdefault(chunk.t.tobytes(), []).append(chunk)
    return [
        (
            [labels for chunk in group for labels in chunk.labels],
            group[0].t,
            np.hstack([chunk.v for chunk in group]) if len(group) > 1 else group[0].v,
            [number for chunk in group for number in chunk.ids],
        )
        for group in groups.values()
    ]


def from_chunks(chunks: Sequence[Chunk], *, stale: bool) -> Samples:
    """Samples of selected chunks.

    Args:
        chunks: what `MetricStore.select` returned.
        stale: keep staleness markers (an instant selector has to see them, a range does not).
    """
    parts = []
    ids: list[int] = []
    for labels, t, v, numbers in _common(chunks):
        ms = np.round(t * 1000.0) + EPOCH_MS
        present = ~is_absent(v)
        if not stale and np.isnan(v).any():
            present &= ~is_stale(v)
        parts.append((labels, ms, v, present))
        ids.extend(numbers)
    return _flat(parts, ids, _joined(chunks))


def _joined(chunks: Sequence[Chunk]) -> LabelList:
    """The labels of all chunks in the order of their ids; equal chunks give the same list."""
    if len(chunks) < 2:
        return chunks[0].labels if chunks else LabelList()
    rest = tuple(chunk.labels for chunk in chunks[1:])

    def join() -> tuple[tuple[LabelList, ...], LabelList]:
        pairs = [pair for chunk in chunks for pair in zip(chunk.ids, chunk.labels, strict=True)]
        return rest, LabelList(labels for _, labels in sorted(pairs, key=lambda pair: pair[0]))

    return chunks[0].labels.remember(("joined", tuple(map(id, rest))), join)[1]


def from_vector(vector: Vector, steps: Floats) -> Samples:
    """Samples of the result of a subquery's expression."""
    if not vector.labels:
        return _flat([], [], LabelList())
    return _flat([(vector.labels, steps, vector.values.T, vector.present.T)], range(len(vector.labels)), vector.labels)


@dataclass(frozen=True, slots=True)
class Window:
    """A range vector over T steps.

    Attributes:
        samples: without staleness markers.
        low, high: the samples of series s at step i are those in [low[s, i], high[s, i]), shape (S, T).
        start, end: the left-open interval of each step in milliseconds, shape (T,).
        at: evaluation times in milliseconds, shape (T,).
    """

    samples: Samples
    low: Ints
    high: Ints
    start: Floats
    end: Floats
    at: Floats

    @property
    def counts(self) -> Ints:
        """Samples per window."""
        return self.high - self.low


def cut_windows(samples: Samples, at: Floats, end: Floats, range_ms: float) -> Window:
    """The windows (end - range, end] of all steps."""
    start = end - range_ms
    return Window(samples, samples.places(start), samples.places(end), start, end, at)
