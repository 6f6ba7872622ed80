"""A scrape target whose series come and go: maps label sets to the columns of one block. Called by the exporters."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from itbench.telemetry.labels import Labels
from itbench.telemetry.metrics import Block, MetricStore

Row = tuple[Labels, float]
Floats = NDArray[np.float64]


class Layout:
    """A fixed list of series that an exporter fills as one vector; remembers the columns that they got in a sheet."""

    def __init__(self, labels: Iterable[Labels]) -> None:
        self.labels = list(labels)
        self.columns = np.full(len(self.labels), -1, np.intp)
        self.complete = not self.labels
        """Whether every series has its column."""


class Sheet:
    """One block of a store, addressed by label sets."""

    def __init__(self, store: MetricStore, name: str) -> None:
        self._store, self._name = store, name
        self._block: Block | None = next((each for each in store.blocks() if each.name == name), None)
        self._columns: dict[Labels, int] = {}
        if self._block is not None:
            self._columns = {labels: column for column, labels in enumerate(self._block.labels)}
        self._rows: Iterable[Row] = ()
        self._same: tuple[Layout, Floats] | None = None

    def write(self, now: float, rows: Iterable[Row] = (), *, fixed: Iterable[tuple[Layout, Floats]] = ()) -> None:
        """One scrape: series that are neither in `rows` nor in `fixed` have no sample.

        Args:
            now: world seconds.
            rows: series one by one; a list that is given again must not have changed.
            fixed: whole lists of series with their values; NaN: no sample.
        """
        found, vectors = list(rows), list(fixed)
        if rows is self._rows:
            vectors.append(self._as_vector(found))
            found = []
        else:
            self._rows, self._same = rows, None
        new = [labels for labels, _ in found if labels not in self._columns]
        for layout, values in vectors:
            if not layout.complete:
                new += self._locate(layout, values)
        if new:
            self._add(list(dict.fromkeys(new)))
        if self._block is None:
            return
        row = np.full(len(self._columns), np.nan)
        for layout, values in vectors:
            if not layout.complete:
                self._locate(layout, values)
                layout.complete = bool((layout.columns >= 0).all())
            if layout.complete:
                row[layout.columns] = values
            else:
                there = layout.columns >= 0
                row[layout.columns[there]] = values[there]
        for labels, value in found:
            row[self._columns[labels]] = value
        self._block.append(now, row)

    def _as_vector(self, rows: list[Row]) -> tuple[Layout, Floats]:
        """Rows that came before."""
        if self._same is None:
            self._same = Layout(labels for labels, _ in rows), np.array([value for _, value in rows])
        return self._same

    def _locate(self, layout: Layout, values: Floats) -> list[Labels]:
        """Look up columns of series that have a sample for the first time; returns those that have none yet."""
        missing = []
        for place in np.flatnonzero((layout.columns < 0) & ~np.isnan(values)).tolist():
            labels = layout.labels[place]
            layout.columns[place] = self._columns.get(labels, -1)
            if labels not in self._columns:
                missing.append(labels)
        return missing

    def _add(self, new: list[Labels]) -> None:
        plain = [dict(labels) for labels in new]
        if self._block is None:
            self._block, first = self._store.block(self._name, plain), 0
        else:
            first = self._block.extend(plain)
        self._columns.update({labels: first + index for index, labels in enumerate(new)})
