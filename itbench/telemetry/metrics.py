"""Where samples are kept: blocks of series that are scraped together, and their selection by label matchers.

The world appends one vector of values per scrape of a target; PromQL, the rules and the HTTP API read. All series of a block
share their times, so a scrape costs one copy and a query looks up its steps once per block instead of once per series.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from itbench.core.errors import UsageError
from itbench.telemetry.labels import Index, LabelList, Labels, Matcher, freeze

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

STALE: float = np.array([0x7FF0000000000002], dtype=np.uint64).view(np.float64)[0]
"""The value that ends a series, with the bits that Prometheus gives it."""
NAN: float = np.array([0x7FF8000000000001], dtype=np.uint64).view(np.float64)[0]
"""A sample whose value is not a number (any other NaN in a block means: no sample)."""

SERIES_PER_BLOCK = 1 << 32
MAX_PLANS = 512
"""Selections that a store remembers."""

_STALE_BITS = np.uint64(0x7FF0000000000002)
_NAN_BITS = np.uint64(0x7FF8000000000001)


def is_stale(values: Floats) -> Bools:
    """Where a staleness marker stands."""
    return np.asarray(values.view(np.uint64) == _STALE_BITS)


def is_absent(values: Floats) -> Bools:
    """Where there is neither a sample nor a marker."""
    missing = np.isnan(values)
    if not missing.any():
        return missing
    bits = values.view(np.uint64)
    return np.asarray(missing & (bits != _STALE_BITS) & (bits != _NAN_BITS))


class Block:
    """The series of one scrape target: fixed labels, common times, one row of values per scrape.

    Rows lie in arrays that double when full, so an append costs a copy of one row.
    """

    def __init__(self, name: str, labels: Sequence[Mapping[str, str]], retention_s: float) -> None:
        self.name = name
        self.labels: list[Labels] = [freeze(each) for each in labels]
        self.ended = False
        self._retention_s = retention_s
        self._rows = 0
        self._t: Floats = np.empty(16)
        self._v: Floats = np.empty((16, len(self.labels)))

    @property
    def times(self) -> Floats:
        """World seconds of the rows, increasing: shape (rows,). A view."""
        return self._t[: self._rows]

    @property
    def values(self) -> Floats:
        """Values: shape (rows, series). A view."""
        return self._v[: self._rows, : len(self.labels)]

    @property
    def newest(self) -> float:
        """World second of the last row, -inf when there is none."""
        return float(self._t[self._rows - 1]) if self._rows else -np.inf

    def append(self, t: float, values: Floats, *, mark: bool = True) -> None:
        """One scrape.

        Args:
            t: world seconds, later than the row before.
            values: one per series of the block; NaN = no sample (`NAN` is a sample that is not a number).
            mark: end a series that had a sample in the row before and has none now, as a scrape that lacks it does.

        Raises:
            UsageError: wrong length, or time does not go forward.
        """
        width = len(self.labels)
        if len(values) != width:
            raise UsageError(
                f"append to block {self.name!r}", seen=len(values), expected=f"{width} values, one per series"
            )
        if self._rows and t <= self._t[self._rows - 1]:
            raise UsageError(
                f"append to block {self.name!r} at an old time", seen=t, expected=f"more than {self._t[self._rows - 1]}"
            )
        if self._rows == len(self._t):
            self._grow(t)
        row = self._v[self._rows, :width]
        row[:] = values
        if mark and self._rows:
            missing = is_absent(row)
            if missing.any():
                before = self._v[self._rows - 1, :width]
                row[missing & ~is_absent(before) & ~is_stale(before)] = STALE
        self._t[self._rows] = t
        self._rows += 1
        self.ended = False

    def end(self, t: float) -> None:
        """The target is gone: its living series get a staleness marker at world second `t`."""
        if self._rows and not self.ended:
            self.append(t, np.full(len(self.labels), np.nan))
        self.ended = True

    def extend(self, labels: Sequence[Mapping[str, str]]) -> int:
        """Add series that begin with the next row; returns the column of the first."""
        first = len(self.labels)
        self.labels.extend(freeze(each) for each in labels)
        width = self._v.shape[1]
        if len(self.labels) > width:
            grown = np.full((len(self._t), max(2 * width, len(self.labels))), np.nan)
            grown[: self._rows, :first] = self._v[: self._rows, :first]
            self._v = grown
        self._v[: self._rows, first : len(self.labels)] = np.nan
        return first

    def _grow(self, t: float) -> None:
        """Make room: forget what is older than the retention window, double if that is not enough."""
        kept = int(np.searchsorted(self.times, t - self._retention_s, side="left"))
        rows = self._rows - kept
        size = len(self._t) if rows <= len(self._t) // 2 else 2 * len(self._t)
        times, values = np.empty(size), np.empty((size, self._v.shape[1]))
        times[:rows], values[:rows] = self._t[kept : self._rows], self._v[kept : self._rows]
        self._t, self._v, self._rows = times, values, rows

    def save(self) -> dict[str, Any]:
        """The block as plain data."""
        return {
            "name": self.name,
            "labels": [[text for pair in each for text in pair] for each in self.labels],
            "ended": self.ended,
            "t": self.times.copy(),
            "v": np.ascontiguousarray(self.values).copy(),
        }

    @classmethod
    def load(cls, data: Mapping[str, Any], retention_s: float) -> "Block":
        """The inverse of `save`."""
        block = cls(data["name"], (), retention_s)
        block.labels = [_thawed(each) for each in data["labels"]]
        block.ended = data["ended"]
        block._t, block._v = np.array(data["t"], dtype=float), np.array(data["v"], dtype=float)
        block._rows = len(block._t)
        if not block._rows:
            block._t, block._v = np.empty(16), np.empty((16, len(block.labels)))
        return block


def _thawed(saved: Mapping[str, str] | list[str]) -> Labels:
    """A label set as `save` gave it (names and values in turn), or as people write it."""
    if isinstance(saved, Mapping):
        return freeze(saved)
    texts = iter(saved)
    return tuple(zip(texts, texts, strict=True))


@dataclass(frozen=True, slots=True)
class Chunk:
    """Selected series that share their times.

    Attributes:
        labels: one per series.
        t: world seconds, increasing, shape (n,).
        v: values, shape (n, series); see `is_absent` and `is_stale`.
        ids: one per series; they grow in the order of the blocks, and within a block in that of its series.
    """

    labels: LabelList
    t: Floats
    v: Floats
    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a selection takes from one block; `ids` as in `Chunk`."""

    block: Block
    columns: NDArray[np.intp]
    labels: LabelList
    ids: tuple[int, ...]

    def cut(self, start: float, end: float) -> Chunk:
        """The samples in the closed interval, without series that have none."""
        times, labels, ids = self.block.times, self.labels, self.ids
        low, high = np.searchsorted(times, start, side="left"), np.searchsorted(times, end, side="right")
        values = self.block.values[low:high].take(self.columns, axis=1)
        empty: Bools = np.all(is_absent(values), axis=0)
        if empty.any():
            kept = np.flatnonzero(~empty).tolist()
            labels = labels.remember(empty.tobytes(), lambda: LabelList(self.labels[place] for place in kept))
            ids, values = tuple(ids[place] for place in kept), values[:, kept]
        return Chunk(labels, times[low:high].copy(), values, ids)


class MetricStore:
    """All blocks of a world. Deterministic; its state is plain data.

    Args:
        retention_s: samples older than this, counted from the newest, are no longer seen.
    """

    def __init__(self, retention_s: float = 15 * 86400.0) -> None:
        self.retention_s = retention_s
        self.metadata: dict[str, dict[str, str]] = {}
        self.settle: Callable[[], None] | None = None
        """Called before samples are read or saved, by whoever writes some of them late (the rules)."""
        self._blocks: dict[str, Block] = {}
        self._index = Index()
        self._where: list[tuple[Block, int]] = []
        self._indexed: dict[str, int] = {}
        self._first: dict[Labels, int] = {}
        self._twice: set[int] = set()
        self._plans: dict[tuple[Matcher, ...], tuple[list[_Plan], bool]] = {}

    def block(self, name: str, labels: Sequence[Mapping[str, str]]) -> Block:
        """The block of one scrape target, created when it is new.

        Args:
            name: unique; by convention `job/instance`.
            labels: one mapping per series, each with `__name__`.

        Raises:
            UsageError: the name stands for other series already, or a series has no name.
        """
        known = self._blocks.get(name)
        if known is not None:
            if known.labels != [freeze(each) for each in labels]:
                raise UsageError(f"block {name!r} exists with other series", hint="use Block.extend or another name")
            return known
        for each in labels:
            if not each.get("__name__"):
                raise UsageError(f"series of block {name!r} without __name__", seen=dict(each))
        created = self._blocks[name] = Block(name, labels, self.retention_s)
        return created

    def find(self, name: str) -> Block | None:
        """The block of this name, if there is one."""
        return self._blocks.get(name)

    def blocks(self) -> Iterator[Block]:
        """All blocks, in the order of their creation."""
        return iter(self._blocks.values())

    def describe(self, name: str, kind: str, text: str, unit: str = "") -> None:
        """Metadata of a metric: `counter`, `gauge`, `histogram`, `summary` or `unknown`, and its help text."""
        self.metadata[name] = {"type": kind, "help": text, "unit": unit}

    @property
    def newest(self) -> float:
        """World second of the newest sample, -inf when there is none."""
        return max((block.newest for block in self._blocks.values()), default=-np.inf)

    def select(self, matchers: Iterable[Matcher], start: float, end: float) -> list[Chunk]:
        """Series that match and have a sample (or a marker) in the closed interval [start, end].

        Series with equal labels in several blocks (a target that came back) are one series.
        """
        if self.settle is not None:
            self.settle()
        self._update_index()
        start = max(start, self.newest - self.retention_s)
        plans, equal = self._plan(tuple(matchers))
        chunks = [chunk for chunk in (plan.cut(start, end) for plan in plans) if chunk.labels]
        return _merge_equal(chunks) if equal else chunks

    def _plan(self, matchers: tuple[Matcher, ...]) -> tuple[list[_Plan], bool]:
        """What matches, by block, and whether equal label sets may be among it."""
        known = self._plans.get(matchers)
        if known is not None:
            return known
        found = self._index.match(matchers)
        picked: dict[str, list[int]] = {}
        for ident in found:
            picked.setdefault(self._where[ident][0].name, []).append(self._where[ident][1])
        plans = []
        for place, (name, block) in enumerate(self._blocks.items()):
            if name in picked:
                columns = np.array(sorted(picked[name]), dtype=np.intp)
                labels = LabelList(block.labels[column] for column in columns)
                ids = tuple(place * SERIES_PER_BLOCK + column for column in columns.tolist())
                plans.append(_Plan(block, columns, labels, ids))
        if len(self._plans) >= MAX_PLANS:
            self._plans.clear()
        self._plans[matchers] = plans, not self._twice.isdisjoint(found)
        return self._plans[matchers]

    def series(self, matchers: Iterable[Matcher], start: float = -np.inf, end: float = np.inf) -> list[Labels]:
        """Label sets that match and have a sample in the interval, sorted."""
        return sorted(labels for chunk in self.select(matchers, start, end) for labels in chunk.labels)

    def _update_index(self) -> None:
        for block in self._blocks.values():
            known = self._indexed.get(block.name, 0)
            for column in range(known, len(block.labels)):
                ident = self._index.add(block.labels[column])
                self._where.append((block, column))
                first = self._first.setdefault(block.labels[column], ident)
                if first != ident:
                    self._twice |= {first, ident}
            if known != len(block.labels):
                self._indexed[block.name] = len(block.labels)
                self._plans.clear()

    def save(self) -> dict[str, Any]:
        """Everything as plain data."""
        if self.settle is not None:
            self.settle()
        blocks = [block.save() for block in self._blocks.values()]
        return {
            "retention_s": self.retention_s,
            "metadata": {k: dict(v) for k, v in self.metadata.items()},
            "blocks": blocks,
        }

    @classmethod
    def load(cls, data: Mapping[str, Any]) -> "MetricStore":
        """The inverse of `save`."""
        store = cls(data["retention_s"])
        store.metadata = {name: dict(value) for name, value in data["metadata"].items()}
        for saved in data["blocks"]:
            store._blocks[saved["name"]] = Block.load(saved, store.retention_s)
        return store


def _merge_equal(chunks: list[Chunk]) -> list[Chunk]:
    """Join series that occur in several chunks; the later block wins where times are equal."""
    seen: dict[Labels, int] = {}
    for chunk in chunks:
        for labels in chunk.labels:
            seen[labels] = seen.get(labels, 0) + 1
    if len(seen) == sum(len(chunk.labels) for chunk in chunks):
        return chunks
    kept: list[Chunk] = []
    parts: dict[Labels, dict[float, float]] = {}
    idents: dict[Labels, int] = {}
    for chunk in chunks:
        single = [column for column, labels in enumerate(chunk.labels) if seen[labels] == 1]
        alone = LabelList(chunk.labels[column] for column in single), tuple(chunk.ids[column] for column in single)
        kept.append(Chunk(alone[0], chunk.t, chunk.v[:, single], alone[1]))
        for column, labels in enumerate(chunk.labels):
            if seen[labels] > 1:
                idents.setdefault(labels, chunk.ids[column])
                there = ~is_absent(np.ascontiguousarray(chunk.v[:, column]))
                rows = np.flatnonzero(there)
                parts.setdefault(labels, {}).update((float(chunk.t[row]), chunk.v[row, column]) for row in rows)
    for labels, samples in parts.items():
        times = sorted(samples)
        kept.append(
            Chunk(LabelList((labels,)), np.array(times), np.array([[samples[t]] for t in times]), (idents[labels],))
        )
    return [chunk for chunk in kept if chunk.labels]
