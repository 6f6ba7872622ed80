"""What happened on every call edge, period by period: the record from which log lines are drawn when somebody asks.

The estate appends at each probe period; `logs.py` reads. Plain arrays, so an hour costs little.
"""

from bisect import bisect_left, bisect_right
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
KINDS = ("first", "failed", "timed_out", "rejected", "errors")
"""Counters of the flow that are kept per period and edge."""


class History:
    """Counts per period and edge, and why calls failed."""

    def __init__(self, edges: int) -> None:
        self.edges = edges
        self.ends: list[float] = []
        self.starts: list[float] = []
        self._rows: list[Floats] = []
        self._reasons: list[tuple[float, dict[int, str]]] = []

    def record(self, start: float, end: float, delta: dict[str, Floats], reasons: dict[int, str]) -> None:
        """Append one period.

        Args:
            start: world second at which the period began.
            end: world second at which it ended.
            delta: what each counter of the flow grew by, per edge.
            reasons: why calls of an edge fail now, edges without defect left out.
        """
        self.starts.append(start)
        self.ends.append(end)
        self._rows.append(np.array([delta[kind] for kind in KINDS]))
        known = {edge: text for edge, text in reasons.items() if text}
        if not self._reasons or self._reasons[-1][1] != known:
            self._reasons.append((end, known))

    def periods(self, start: float, end: float) -> list[tuple[float, float, Floats]]:
        """(start, end, counts of shape (kinds, edges)) of the periods that touch [start, end)."""
        low, high = bisect_right(self.ends, start), bisect_left(self.starts, end)
        return [(self.starts[i], self.ends[i], self._rows[i]) for i in range(low, high)]

    def reason(self, edge: int, at: float) -> str:
        """Why calls of an edge failed in the period that ended at `at`; empty when they only timed out or were rejected."""
        index = bisect_right([since for since, _ in self._reasons], at) - 1
        return self._reasons[index][1].get(edge, "") if index >= 0 else ""

    def save(self) -> dict[str, Any]:
        """State as plain data."""
        rows = np.array(self._rows) if self._rows else np.zeros((0, len(KINDS), self.edges))
        reasons = [[at, {str(edge): text for edge, text in known.items()}] for at, known in self._reasons]
        return {"starts": np.array(self.starts), "ends": np.array(self.ends), "rows": rows, "reasons": reasons}

    def restore(self, data: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self.starts, self.ends = data["starts"].tolist(), data["ends"].tolist()
        self._rows = [np.array(row) for row in data["rows"]]
        self._reasons = [(at, {int(edge): text for edge, text in known.items()}) for at, known in data["reasons"]]
