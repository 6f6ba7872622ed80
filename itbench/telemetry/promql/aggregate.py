"""Aggregation operators: many series -> one per group, or (topk, bottomk) some of the series."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isnan

import numpy as np

from itbench.telemetry.labels import RESERVED, LabelList, Labels, freeze
from itbench.telemetry.metrics import Bools, Floats
from itbench.telemetry.promql import compensated
from itbench.telemetry.promql.gotext import is_utf8, quote, show_g
from itbench.telemetry.promql.over_time import quantile_of
from itbench.telemetry.promql.samples import Ints
from itbench.telemetry.promql.values import QueryError, Vector, empty, format_plain, somewhere


@dataclass(frozen=True, slots=True)
class Groups:
    """Rows by group, in the order in which the groups first occur.

    Attributes:
        labels: of the groups.
        rows: of each group.
        order: all rows, group by group.
        starts: where each group begins in `order`.
    """

    labels: LabelList
    rows: tuple[list[int], ...]
    order: Ints
    starts: Ints


def group_key(labels: Labels, names: frozenset[str], *, without: bool) -> Labels:
    """The labels of the group that a series belongs to."""
    if without:
        return tuple(pair for pair in labels if pair[0] not in names and pair[0] not in RESERVED)
    return tuple(pair for pair in labels if pair[0] in names)


def groups_of(vector: Vector, names: Sequence[str], *, without: bool) -> Groups:
    """The groups that a `by` or `without` clause makes."""
    wanted = frozenset(names)
    return vector.labels.remember(("groups", wanted, without), lambda: _group_rows(vector.labels, wanted, without))


def _group_rows(labels: LabelList, names: frozenset[str], without: bool) -> Groups:
    found: dict[Labels, list[int]] = {}
    for row, each in enumerate(labels):
        found.setdefault(group_key(each, names, without=without), []).append(row)
    rows = tuple(found.values())
    sizes = np.array([len(each) for each in rows], dtype=np.int64)
    order = np.array([row for each in rows for row in each], dtype=np.int64)
    return Groups(LabelList(found), rows, order, np.cumsum(sizes) - sizes)


def fold(operation: str, vector: Vector, groups: Groups) -> Vector:
    """Aggregations that need no parameter, all groups at once."""
    if not groups.labels:
        return empty(vector.values.shape[1])
    values, present = vector.values[groups.order], vector.present[groups.order]
    count = np.add.reduceat(present.astype(float), groups.starts, axis=0)
    return Vector(groups.labels, SIMPLE[operation](values, present, count, groups), count > 0)


def _added(values: Floats, present: Bools, count: Floats, groups: Groups, exact: Callable[..., Floats]) -> Floats:
    """Sums; those that cancel or overflow are what `exact` gives."""
    there = np.where(present, values, 0.0)
    sums = np.asarray(np.add.reduceat(there, groups.starts, axis=0) + 0.0)  # no negative zero
    if exact is compensated.mean:
        sums = sums / count
    doubtful = compensated.doubtful(sums, there, lambda sizes: np.add.reduceat(sizes, groups.starts, axis=0))
    ends = np.append(groups.starts, len(groups.order))
    for group, step in np.argwhere(doubtful).tolist() if doubtful is not None else ():
        members = slice(ends[group], ends[group + 1])
        sums[group, step] = exact(values[members, step], present[members, step])
    return sums


def _sum(values: Floats, present: Bools, count: Floats, groups: Groups) -> Floats:
    return _added(values, present, count, groups, compensated.total)


def _avg(values: Floats, present: Bools, count: Floats, groups: Groups) -> Floats:
    return _added(values, present, count, groups, compensated.mean)


def _min(values: Floats, present: Bools, count: Floats, groups: Groups) -> Floats:
    return np.asarray(np.fmin.reduceat(np.where(present, values, np.nan), groups.starts, axis=0))


def _max(values: Floats, present: Bools, count: Floats, groups: Groups) -> Floats:
    return np.asarray(np.fmax.reduceat(np.where(present, values, np.nan), groups.starts, axis=0))


def _stdvar(values: Floats, present: Bools, count: Floats, groups: Groups) -> Floats:
    ends = np.append(groups.starts, len(groups.order))
    mean = np.add.reduceat(np.where(present, values, 0.0), groups.starts, axis=0) / count
    apart = np.where(present, (values - np.repeat(mean, np.diff(ends), axis=0)) ** 2, 0.0)
    found = np.asarray(np.add.reduceat(apart, groups.starts, axis=0) / count)
    for group, step in np.argwhere(
        (found < compensated.TIGHT * mean * mean) | ~np.isfinite(found) & ~np.isnan(mean)
    ).tolist():
        members = slice(ends[group], ends[group + 1])
        found[group, step] = compensated.variance(values[members, step], present[members, step], carry=False)
    return found


Folding = Callable[[Floats, Bools, Floats, Groups], Floats]
"""(values, present, how many are present per group, groups): the first two in the order of the groups."""

SIMPLE: dict[str, Folding] = {
    "avg": _avg,
    "count": lambda values, present, count, groups: count,
    "group": lambda values, present, count, groups: np.ones(count.shape),
    "max": _max,
    "min": _min,
    "stddev": lambda values, present, count, groups: np.sqrt(_stdvar(values, present, count, groups)),
    "stdvar": _stdvar,
    "sum": _sum,
}


def outliers(q: Floats) -> list[float]:
    """What Prometheus looks at to see whether all of `q` are quantiles: NaN, the greatest, and the least."""
    if np.isnan(q).any():
        return [np.nan]
    most, least = float(q.max()), float(q.min())
    return [*([most] if most > 1 else []), *([least] if least < 0 else [])]


def quantile(vector: Vector, groups: Groups, q: Floats) -> Vector:
    """The q-quantile over the series of each group; q has shape (T,)."""
    shape = (len(groups.labels), vector.values.shape[1])
    values, present = np.empty(shape), np.empty(shape, dtype=bool)
    for target, rows in enumerate(groups.rows):
        there = vector.present[rows]
        values[target] = quantile_of(vector.values[rows].T, there.T, q)
        present[target] = somewhere(there)
    return Vector(groups.labels, values, present)


def count_values(vector: Vector, groups: Groups, label: str) -> Vector:
    """How many series of each group have each value; the value becomes a label."""
    if not label or not is_utf8(label):
        raise QueryError(f"invalid label name {quote(label)}")
    steps = vector.values.shape[1]
    counts: dict[Labels, Floats] = {}
    for key, rows in zip(groups.labels, groups.rows, strict=True):
        others = [pair for pair in key if pair[0] != label]
        for row in rows:
            for step in np.flatnonzero(vector.present[row]):
                labels = freeze([*others, (label, format_plain(float(vector.values[row, step])))])
                counts.setdefault(labels, np.zeros(steps))[step] += 1
    if not counts:
        return empty(steps)
    values = np.array(list(counts.values()))
    return Vector(LabelList(counts), values, values > 0)


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
    for last in range(1, len(heap)):  # an insertion sort, whose order of equals Prometheus shows
        place = last
        while place and _worse(heap[place - 1][0], heap[place][0]):
            heap[place - 1], heap[place] = heap[place], heap[place - 1]
            place -= 1
    return [row for _, row in heap]


def _best(values: Floats, count: int, sign: float) -> list[int]:
    """Places of the `count` greatest of sign * values, best first; NaN is the worst."""
    keys = sign * values
    ranked = np.sort(np.where(np.isnan(keys), -np.inf, keys))[::-1][: count + 1]
    if (ranked[1:] == ranked[:-1]).any():
        return _best_of_ties(keys.tolist(), count)
    order = np.lexsort((-keys, np.isnan(keys)))
    return [int(place) for place in order[:count]]


def _clearly_best(keys: Floats, present: Bools, count: Floats) -> tuple[Bools, list[int]]:
    """The best at each step where no equals compete for the last place, and the steps where they do; shapes (S, T)."""
    if np.isnan(keys[present]).any():
        return np.zeros(present.shape, dtype=bool), list(range(len(count)))
    level = np.where(present, keys, -np.inf)
    ranked = -np.sort(-level, axis=0)
    there = present.sum(axis=0)
    wanted = np.minimum(np.trunc(count), there).astype(np.int64)
    last = np.take_along_axis(ranked, np.maximum(wanted - 1, 0)[None, :], axis=0)[0]
    beyond = np.take_along_axis(ranked, np.minimum(wanted, len(ranked) - 1)[None, :], axis=0)[0]
    tied = (wanted > 0) & (wanted < there) & (last == beyond)
    return present & (level >= last) & (wanted > 0) & ~tied, np.flatnonzero(tied).tolist()


def select_best(vector: Vector, groups: Groups, count: Floats, *, largest: bool) -> Vector:
    """`topk` and `bottomk`: the best series of each group at each step; count has shape (T,).

    At a single step the series come out best first, group by group.
    """
    if count.max() < 1:
        return empty(vector.values.shape[1])
    _check_count(count)
    chosen = np.zeros(vector.present.shape, dtype=bool)
    order: list[int] = []
    sign = 1.0 if largest else -1.0
    for rows in groups.rows:
        members = np.array(rows)
        steps: Sequence[int] = range(vector.values.shape[1])
        if len(steps) > 1:
            chosen[members], steps = _clearly_best(vector.values[members] * sign, vector.present[members], count)
        for step in steps:
            there = members[vector.present[members, step]]
            wanted = min(int(count[step]), len(there))
            if wanted > 0:
                places = _best(vector.values[there, step], wanted, sign)
                chosen[there[places], step] = True
                order.extend(int(row) for row in there[places])
    if vector.values.shape[1] > 1:
        order = np.flatnonzero(chosen.any(axis=1)).tolist()
    return vector.keep(chosen).rows(list(dict.fromkeys(order)))


def _check_count(count: Floats) -> None:
    if np.isnan(count).any():
        raise QueryError("Parameter value is NaN")
    for value, side in ((float(count.min()), "under"), (float(count.max()), "over")):
        if value <= -(2.0**63) if side == "under" else value >= 2.0**63:
            raise QueryError(f"Scalar value {show_g(value)} {side}flows int64")
