"""The one work queue of a control plane: who is to be reconciled next, and when.

First in, first out, without duplicates; timers in world seconds; failures retried with growing delays. Called by
`controllers.manager`; everything in it is plain data, so a saved control plane goes on with the same order of work.
"""

import heapq
from collections import deque
from math import inf
from typing import Any

Item = tuple[str, str, str]
"""(controller, namespace, name)."""

RETRY_BASE_S = 0.005
RETRY_MAX_S = 1000.0


class WorkQueue:
    """Ready items in order, timers, and how often each item failed in a row."""

    def __init__(self) -> None:
        self._ready: deque[Item] = deque()
        self._waiting: set[Item] = set()
        self._timers: dict[Item, float] = {}
        self._heap: list[tuple[float, int, Item]] = []
        self._sequence = 0
        self._failures: dict[Item, int] = {}

    def __len__(self) -> int:
        return len(self._ready)

    def add(self, item: Item) -> None:
        """Put an item at the end, unless it waits already."""
        if item not in self._waiting:
            self._waiting.add(item)
            self._ready.append(item)

    def pop(self) -> Item:
        """The oldest item; its timer is dropped, since reconciling sets a new one when it needs one."""
        item = self._ready.popleft()
        self._waiting.discard(item)
        self._timers.pop(item, None)
        return item

    def add_at(self, item: Item, at: float) -> None:
        """Add the item at world second `at`; of several times the earliest counts."""
        if at < self._timers.get(item, inf):
            self._timers[item] = at
            self._sequence += 1
            heapq.heappush(self._heap, (at, self._sequence, item))

    def fail(self, item: Item, now: float) -> None:
        """Retry later: 5 ms, doubling with each failure in a row, at most 1,000 s."""
        count = self._failures.get(item, 0)
        self._failures[item] = count + 1
        self.add_at(item, now + min(RETRY_BASE_S * 2.0 ** min(count, 30), RETRY_MAX_S))

    def succeed(self, item: Item) -> None:
        """Forget earlier failures."""
        self._failures.pop(item, None)

    def failures(self, item: Item) -> int:
        """Failures in a row so far."""
        return self._failures.get(item, 0)

    def due(self) -> float:
        """World second of the next timer; inf without one."""
        while self._heap and self._timers.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else inf

    def release(self, now: float) -> None:
        """Add all items whose time has come, in order of time."""
        while self.due() <= now:
            item = heapq.heappop(self._heap)[2]
            del self._timers[item]
            self.add(item)

    def save(self) -> dict[str, Any]:
        """State as plain data."""
        timers = {item: at for at, _, item in sorted(self._heap, reverse=True) if self._timers.get(item) == at}
        return {
            "ready": [list(item) for item in self._ready],
            "timers": [[at, list(item)] for item, at in reversed(timers.items())],
            "failures": [[list(item), count] for item, count in sorted(self._failures.items())],
        }

    @classmethod
    def load(cls, data: dict[str, Any]) -> "WorkQueue":
        """The inverse of `save`."""
        queue = cls()
        for item in data["ready"]:
            queue.add(_item(item))
        for at, item in data["timers"]:
            queue.add_at(_item(item), at)
        queue._failures = {_item(item): count for item, count in data["failures"]}
        return queue


def _item(parts: list[str]) -> Item:
    controller, namespace, name = parts
    return controller, namespace, name
