"""Aggregation operators: many series -> one per group, or (topk, bottomk) some of the series."""

from collections.abc import Callable, Sequence
from math import isnan

import numpy as np

from itbench.telemetry.labels import Labels, freeze
from itbench.telemetry.metrics import Bools, Floats
from itbench.telemetry.promql.over_time import quantile_of
from itbench.telemetry.promql.values import QueryError, Vector, drop_name, empty, format_plain, somewhere

Rows = list[int]


def group_key(labels: Labels, names: Sequence[str], *, without: bool) -> Labels:
    """The labels of the group that a series belongs to."""
    if without:
        dropped = set(names)
        return tuple(pair for pair in drop_name(labels) if pair[0] not in dropped)
    kept = set(names)
    return tuple(pair for pair in labels if pair[0] in kept)


def groups_of(vector: Vector, names: Sequence[str], *, without: bool) -> dict[Labels, Rows]:
    """Rows by group, in the order in which the groups first occur."""
    groups: dict[Labels, Rows] = {}
    for row, labels in enumerate(vector.labels):
        groups.setdefault(group_key(labels, names, without=without), []).append(row)
    return groups


def _sum(values: Floats, present: Bools) -> Floats:
    return np.asarray(np.where(present, values, 0.0).sum(axis=0))


def _count(values: Floats, present: Bools) -> Floats:
    return np.asarray(present.sum(axis=0), dtype=float)


def _avg(values: Floats, present: Bools) -> Floats:
    return _sum(values, present) / _count(values, present)


def _min(values: Floats, present: Bools) -> Floats:
    return np.asarray(np.fmin.reduce(np.where(present, values, np.nan), axis=0))


def _max(values: Floats, present: Bools) -> Floats:
    return np.asarray(np.fmax.reduce(np.where(present, values, np.nan), axis=0))


def _group(values: Floats, present: Bools) -> Floats:
    return np.ones(values.shape[1])


def _stdvar(values: Floats, present: Bools) -> Floats:
    count = _count(values, present)
    mean = _sum(values, present) / count
    return np.asarray(np.where(present, (values - mean) ** 2, 0.0).sum(axis=0) / count)


def _stddev(values: Floats, present: Bools) -> Floats:
    return np.sqrt(_stdvar(values, present))


SIMPLE: dict[str, Callable[[Floats, Bools], Floats]] = {
    "avg": _avg,
    "count": _count,
    "group": _group,
    "max": _max,
    "min": _min,
    "stddev": _stddev,
    "stdvar": _stdvar,
    "sum": _sum,
}


def fold(operation: str, vector: Vector, groups: dict[Labels, Rows]) -> Vector:
    """Aggregations that need no parameter."""
    function = SIMPLE[operation]
    steps = vector.values.shape[1]
    if not groups:
        return empty(steps)
    values, present = np.empty((len(groups), steps)), np.empty((len(groups), steps), dtype=bool)
    for target, rows in enumerate(groups.values()):
        there = vector.present[rows]
        values[target] = function(vector.values[rows], there)
        present[target] = somewhere(there)
    return Vector(list(groups), values, present)


def quantile(vector: Vector, groups: dict[Labels, Rows], q: Floats) -> Vector:
    """The q-quantile over the series of each group; q has shape (T,)."""
    steps = vector.values.shape[1]
    values, present = np.empty((len(groups), steps)), np.empty((len(groups), steps), dtype=bool)
    for target, rows in enumerate(groups.values()):
        there = vector.present[rows]
        values[target] = quantile_of(vector.values[rows].T, there.T, q)
        present[target] = somewhere(there)
    return Vector(list(groups), values, present)


def count_values(vector: Vector, groups: dict[Labels, Rows], label: str) -> Vector:
    """How many series of each group have each value; the value becomes a label."""
    steps = vector.values.shape[1]
    counts: dict[Labels, Floats] = {}
    for key, rows in groups.items():
        others = [pair for pair in key if pair[0] != label]
        for row in rows:
            for step in np.flatnonzero(vector.present[row]):
                labels = freeze([*others, (label, format_plain(float(vector.values[row, step])))])
                counts.setdefault(labels, np.zeros(steps))[step] += 1
    if not counts:
        return empty(steps)
    values = np.array(list(counts.values()))
    return Vector(list(counts), values, values > 0)


def _worse(left: float, right: float) -> bool:
    return isnan(left) or left < right


def _sink(heap: list[tuple[float, int]]) -> None:
    """Restore the heap after its root was replaced."""
    place = 0
    while (child := 2 * place + 1) < len(heap):
        if child + 1 < len(heap) and _worse(heap[child + 1][0], heap[child][0]):
            child += 1
        if not _worse(heap[child][0], heap[place][0]):
            break
        heap[place], heap[child] = heap[child], heap[place]
        place = child


def _rise(heap: list[tuple[float, int]]) -> None:
    """Restore the heap after an element was put at its end."""
    place = len(heap) - 1
    while place and _worse(heap[place][0], heap[(place - 1) // 2][0]):
        parent = (place - 1) // 2
        heap[place], heap[parent] = heap[parent], heap[place]
        place = parent


def _best_of_ties(keys: list[float], count: int) -> list[int]:
    """The `count` greatest, chosen among equals as a binary heap with the worst at its root chooses that is fed in order."""
    heap: list[tuple[float, int]] = []
    for row, key in enumerate(keys):
        if len(heap) < count:
            heap.append((key, row))
            _rise(heap)
        elif heap[0][0] < key or (isnan(heap[0][0]) and not isnan(key)):
            heap[0] = (key, row)
            _sink(heap)
    return [row for _, row in sorted(heap, key=lambda each: (isnan(each[0]), -each[0], each[1]))]


def _best(values: Floats, count: int, sign: float) -> list[int]:
    """Places of the `count` greatest of sign * values, best first; NaN is the worst."""
    keys = sign * values
    if len(keys) > count:
        ranked = np.sort(np.where(np.isnan(keys), -np.inf, keys))[::-1]
        if ranked[count - 1] == ranked[count]:
            return _best_of_ties(keys.tolist(), count)
    order = np.lexsort((-keys, np.isnan(keys)))
    return [int(place) for place in order[:count]]


def select_best(vector: Vector, groups: dict[Labels, Rows], count: Floats, *, largest: bool) -> Vector:
    """`topk` and `bottomk`: the best series of each group at each step; count has shape (T,).

    At a single step the series come out best first, group by group.
    """
    _check_count(count)
    chosen = np.zeros(vector.present.shape, dtype=bool)
    order: list[int] = []
    for rows in groups.values():
        members = np.array(rows)
        for step in range(vector.values.shape[1]):
            there = members[vector.present[members, step]]
            wanted = min(int(count[step]), len(there))
            if wanted > 0:
                places = _best(vector.values[there, step], wanted, 1.0 if largest else -1.0)
                chosen[there[places], step] = True
                order.extend(int(row) for row in there[places])
    return vector.keep(chosen).rows(list(dict.fromkeys(order)))


def _check_count(count: Floats) -> None:
    for value in count.tolist():
        if np.isnan(value):
            raise QueryError("Parameter value is NaN")
        if abs(value) >= 2**63:
            raise QueryError(f"Scalar value {value:g} {'over' if value > 0 else 'under'}flows int64")
