"""A scrape target whose series come and go: maps label sets to the columns of one block. Called by the exporters."""

from collections.abc import Iterable

import numpy as np

from itbench.telemetry.labels import Labels
from itbench.telemetry.metrics import Block, MetricStore

Row = tuple[Labels, float]


class Sheet:
    """One block of a store, addressed by label sets."""

    def __init__(self, store: MetricStore, name: str) -> None:
        self._store, self._name = store, name
        self._block: Block | None = next((each for each in store.blocks() if each.name == name), None)
        self._columns: dict[Labels, int] = {}
        if self._block is not None:
            self._columns = {labels: column for column, labels in enumerate(self._block.labels)}
        self._last: list[Row] | None = None
        self._cached: np.ndarray[tuple[int], np.dtype[np.float64]] | None = None

    def write(self, now: float, rows: Iterable[Row]) -> None:
        """One scrape: series that are not in `rows` have no sample."""
        found = list(rows)
        new = [labels for labels, _ in found if labels not in self._columns]
        if new:
            self._add(list(dict.fromkeys(new)))
        if self._block is None:
            return
        values = np.full(len(self._columns), np.nan)
        for labels, value in found:
            values[self._columns[labels]] = value
        self._block.append(now, values)

    def _add(self, new: list[Labels]) -> None:
        plain = [dict(labels) for labels in new]
        if self._block is None:
            self._block, first = self._store.block(self._name, plain), 0
        else:
            first = self._block.extend(plain)
        self._columns.update({labels: first + index for index, labels in enumerate(new)})
