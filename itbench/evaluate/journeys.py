"""Reading journeys: whether a service level was held, when it recovered, how many good requests were lost.

Rows are `(t, requests per second, success share, p50 s, p99 s)`; each covers the interval that ends at t. Latencies are None
where nothing was answered.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

Row = tuple[float, float, float, float | None, float | None]
BIN_S = 60.0
"""Service levels are judged minute by minute, so that one bad probe interval does not fail and a bad minute does."""

_BOUND = re.compile(r"^\s*(>=|<=|>|<)\s*(\d+(?:\.\d+)?)\s*(ms|s|%)?\s*$")
_UNITS = {None: 1.0, "": 1.0, "s": 1.0, "ms": 0.001, "%": 0.01}
_HOLDS: dict[str, Callable[[float, float], bool]] = {
    ">=": lambda value, bound: value >= bound,
    "<=": lambda value, bound: value <= bound,
    ">": lambda value, bound: value > bound,
    "<": lambda value, bound: value < bound,
}


@dataclass(frozen=True)
class Bound:
    """`>= 0.99` or `<= 800ms`, in units of one."""

    operator: str
    value: float

    @classmethod
    def parse(cls, text: str) -> "Bound":
        """Raises ValueError when the text is not a bound."""
        match = _BOUND.match(text)
        if match is None:
            raise ValueError("expected a bound such as '>= 0.99' or '<= 800ms'")
        return cls(match[1], float(match[2]) * _UNITS[match[3]])

    def holds(self, value: float) -> bool:
        """Whether a value is within the bound."""
        return _HOLDS[self.operator](value, self.value)


@dataclass(frozen=True)
class Level:
    """A service level of one journey."""

    success: Bound
    p99: Bound | None = None

    def held(self, row: Row) -> bool:
        """Whether a row (or a merged bin) is within the level; no traffic is never within it."""
        _, rate, success, _, p99 = row
        return (
            rate > 0 and self.success.holds(success) and (self.p99 is None or (p99 is not None and self.p99.holds(p99)))
        )

    def __str__(self) -> str:
        text = f"success {self.success.operator} {self.success.value:g}"
        return text + (f", p99 {self.p99.operator} {self.p99.value * 1000:g} ms" if self.p99 else "")


def merge(rows: Sequence[Row]) -> Row:
    """One row for several: rates averaged, success weighted by requests, latencies by answers."""
    if not rows:
        return (0.0, 0.0, 0.0, None, None)
    total = sum(row[1] for row in rows)
    success = sum(row[1] * row[2] for row in rows) / total if total > 0 else 0.0
    return (rows[-1][0], total / len(rows), success, _mean(rows, 3), _mean(rows, 4))


def _mean(rows: Sequence[Row], column: int) -> float | None:
    known = [(row[1] * row[2], value) for row in rows if (value := row[column]) is not None and row[1] * row[2] > 0]
    weight = sum(answers for answers, _ in known)
    return sum(answers * value for answers, value in known) / weight if weight > 0 else None


def window(rows: Sequence[Row], start: float, end: float) -> list[Row]:
    """Rows whose interval ends in (start, end]."""
    return [row for row in rows if start < row[0] <= end + 1e-6]


def bins(rows: Sequence[Row], start: float, end: float, width: float = BIN_S) -> list[Row]:
    """Merged rows of width seconds, counted back from `end`; a bin without rows is a bin without traffic."""
    merged = []
    edge = end
    while edge - width >= start - 1e-6:
        part = window(rows, edge - width, edge)
        merged.append(merge(part) if part else (edge, 0.0, 0.0, None, None))
        edge -= width
    return merged[::-1]


def recovered_at(rows: Sequence[Row], level: Level, start: float, end: float) -> float | None:
    """The first second from `start` on from which every row up to `end` holds the level; None when the last one does not."""
    seen = window(rows, start, end)
    moment: float | None = None
    for row in reversed(seen):
        if not level.held(row):
            return moment
        moment = row[0]
    return start if seen else None


def requests(rows: Sequence[Row], start: float, end: float) -> tuple[float, float]:
    """All requests in (start, end], and those of them that failed."""
    total = failed = 0.0
    for before, row in pairwise(rows):
        if start < row[0] <= end + 1e-6:
            amount = row[1] * (row[0] - before[0])
            total += amount
            failed += amount * (1.0 - row[2])
    return total, failed
