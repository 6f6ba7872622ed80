"""Function calls of PromQL: arguments are evaluated here and handed to the functions themselves."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from itbench.telemetry.labels import NAME, LabelList, Labels, freeze
from itbench.telemetry.metrics import Bools, Floats
from itbench.telemetry.promql import elementwise, extended, histograms, over_time, relabel, tree
from itbench.telemetry.promql.notes import COUNTER_ENDINGS
from itbench.telemetry.promql.values import QueryError, Value, Vector, empty, somewhere

if TYPE_CHECKING:
    from itbench.telemetry.promql.engine import Query

KEEPS_NAME = ("last_over_time", "first_over_time")
_NATIVE = frozenset(["histogram_avg", "histogram_count", "histogram_stddev", "histogram_stdvar", "histogram_sum"])
"""Functions of native histograms: samples that are plain numbers have none."""


def call(query: "Query", node: tree.Call) -> Value:
    """The value of a function call."""
    name, args = node.name, node.args
    for modifier in filter(None, map(tree.modifier_of, args)):
        extended.check(name, modifier)
    if name in over_time.PLAIN:
        return _over_range(query, name, args[0])
    if name in elementwise.MATH:
        return _each(query.vector(args[0]), elementwise.MATH[name])
    if name in elementwise.CALENDAR:
        return _calendar(query, name, args)
    if name in _NATIVE:
        return empty(len(query.steps))
    if name in ("sort", "sort_desc"):
        return _sort(query, node)
    special = _SPECIAL.get(name)
    if special is None:
        raise QueryError(f'function "{name}" is not supported')
    return special(query, args)


def _over_range(query: "Query", name: str, arg: tree.Node) -> Vector:
    window = query.window(arg)
    modifier = tree.modifier_of(arg)
    values, present = extended.evaluate(name, window, modifier) if modifier else over_time.PLAIN[name](window)
    labels = window.samples.labels
    if name in ("rate", "increase"):
        for metric in labels.remember("no counters", lambda: _no_counters(labels)):
            rows = [row for row, each in enumerate(labels) if (NAME, metric) in each]
            if present[rows].any():
                query.notes.no_counter(metric, arg)
    answer = Vector(labels, values, present)
    return answer if name in KEEPS_NAME else answer.unnamed()


def _no_counters(labels: LabelList) -> list[str]:
    """Names that are not those of counters, in order."""
    names = {value for each in labels for name, value in each if name == NAME}
    return sorted(name for name in names if not name.endswith(COUNTER_ENDINGS))


def _each(vector: Vector, function: Callable[[Floats], Floats]) -> Vector:
    return Vector(vector.labels, function(vector.values), vector.present).unnamed()


def _seconds(query: "Query") -> Floats:
    """The steps as Unix seconds that clients see."""
    return query.steps / 1000.0 + query.options.shift_s


def _calendar(query: "Query", name: str, args: list[tree.Node]) -> Vector:
    part = elementwise.CALENDAR[name]
    if args:
        return _each(query.vector(args[0]), lambda values: part(values).astype(float))
    return _lone(part(_seconds(query)).astype(float))


def _lone(values: Floats) -> Vector:
    return Vector(LabelList([()]), values[None, :], np.ones((1, len(values)), dtype=bool))


def _predict_linear(query: "Query", args: list[tree.Node]) -> Vector:
    window = query.window(args[0])
    return Vector(window.samples.labels, *over_time.predict_linear(window, query.scalar(args[1]))).unnamed()


def _quantile_over_time(query: "Query", args: list[tree.Node]) -> Vector:
    q, window = query.scalar(args[0]), query.window(args[1])
    values, present = over_time.quantile_over_time(window, q)
    query.notes.quantile(_wrong_quantiles(q, somewhere(present)), args[0])
    return Vector(window.samples.labels, values, present).unnamed()


def _wrong_quantiles(q: Floats, used: Bools) -> list[float]:
    """The values that are no quantiles, each once, in the order of the steps that use them."""
    wrong = q[used & ~((q >= 0) & (q <= 1))]
    return (
        list(dict.fromkeys(wrong.tolist()))
        if not np.isnan(wrong).any()
        else [np.nan, *dict.fromkeys(wrong[~np.isnan(wrong)].tolist())]
    )


def _clamp(query: "Query", args: list[tree.Node]) -> Vector:
    vector, low, high = query.vector(args[0]), query.scalar(args[1]), query.scalar(args[2])
    kept = np.broadcast_to(~(low > high), vector.present.shape)
    return Vector(vector.labels, elementwise.clamp(vector.values, low, high), vector.present & kept).unnamed()


def _clamp_min(query: "Query", args: list[tree.Node]) -> Vector:
    low = query.scalar(args[1])
    return _each(query.vector(args[0]), lambda values: elementwise.maximum(low, values))


def _clamp_max(query: "Query", args: list[tree.Node]) -> Vector:
    high = query.scalar(args[1])
    return _each(query.vector(args[0]), lambda values: elementwise.minimum(high, values))


def _round(query: "Query", args: list[tree.Node]) -> Vector:
    nearest = query.scalar(args[1]) if len(args) > 1 else np.ones(len(query.steps))
    return _each(query.vector(args[0]), lambda values: elementwise.round_to(values, nearest))


def _timestamp(query: "Query", args: list[tree.Node]) -> Vector:
    node = tree.bare(args[0])
    if isinstance(node, tree.Selector):
        vector, times = query.instant(node)
        times = times / 1000.0 + query.options.shift_s
    else:
        vector = query.vector(node)
        times = np.broadcast_to(_seconds(query), vector.values.shape)
    return Vector(vector.labels, times, vector.present).unnamed()


def _scalar(query: "Query", args: list[tree.Node]) -> Floats:
    vector = query.vector(args[0])
    alone = vector.present.sum(axis=0) == 1
    return np.where(alone, np.where(vector.present, vector.values, 0.0).sum(axis=0), np.nan)


def absent_labels(node: tree.Node) -> Labels:
    """The labels that an absent series would have had: those with exactly one matcher, `=`."""
    node = tree.bare(node)
    if isinstance(node, tree.Range):
        node = node.selector
    if not isinstance(node, tree.Selector):
        return ()
    found: dict[str, list[str]] = {}
    for matcher in node.matchers:
        if matcher.name != NAME:
            found.setdefault(matcher.name, []).append(matcher.value if matcher.op == "=" else "")
    return freeze({name: values[0] for name, values in found.items() if len(values) == 1})


def _absent(query: "Query", args: list[tree.Node]) -> Vector:
    there = somewhere(query.vector(args[0]).present)
    return Vector(LabelList([absent_labels(args[0])]), np.ones((1, len(there))), ~there[None, :])


def _absent_over_time(query: "Query", args: list[tree.Node]) -> Vector:
    there = somewhere(query.window(args[0]).counts > 0)
    return Vector(LabelList([absent_labels(args[0])]), np.ones((1, len(there))), ~there[None, :])


def _sort(query: "Query", node: tree.Call) -> Vector:
    vector = query.vector(node.args[0])
    if query.start != query.end or len(query.steps) > 1:
        query.notes.sort_in_range(node)
        return vector
    if not vector.labels:
        return vector
    keys = (1.0 if node.name == "sort" else -1.0) * vector.values[:, 0]
    return vector.rows([int(row) for row in np.lexsort((keys, np.isnan(keys)))])


def _label_replace(query: "Query", args: list[tree.Node]) -> Vector:
    target, replacement, source, pattern = (query.text(each) for each in args[1:])
    return relabel.label_replace(query.vector(args[0]), target, replacement, source, pattern)


def _label_join(query: "Query", args: list[tree.Node]) -> Vector:
    target, separator, *sources = (query.text(each) for each in args[1:])
    return relabel.label_join(query.vector(args[0]), target, separator, sources)


def _histogram_quantile(query: "Query", args: list[tree.Node]) -> Vector:
    q, vector = query.scalar(args[0]), query.vector(args[1])
    query.notes.quantile(_wrong_quantiles(q, np.ones(q.shape, dtype=bool)), args[0])
    return histograms.histogram_quantile(q, vector, query.notes, args[1], _seconds(query))


_SPECIAL: dict[str, Callable[["Query", list[tree.Node]], Value]] = {
    "absent": _absent,
    "absent_over_time": _absent_over_time,
    "clamp": _clamp,
    "clamp_max": _clamp_max,
    "clamp_min": _clamp_min,
    "histogram_fraction": lambda query, args: histograms.histogram_fraction(
        query.scalar(args[0]), query.scalar(args[1]), query.vector(args[2]), query.notes, args[2]
    ),
    "histogram_quantile": _histogram_quantile,
    "label_join": _label_join,
    "label_replace": _label_replace,
    "pi": lambda query, args: np.full(len(query.steps), np.pi),
    "predict_linear": _predict_linear,
    "quantile_over_time": _quantile_over_time,
    "round": _round,
    "scalar": _scalar,
    "time": lambda query, args: _seconds(query),
    "timestamp": _timestamp,
    "vector": lambda query, args: _lone(query.scalar(args[0])),
}
