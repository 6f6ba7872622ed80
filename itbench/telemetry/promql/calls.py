"""Function calls of PromQL: arguments are evaluated here and handed to the functions themselves."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import promql_parser as ast

from itbench.telemetry.labels import NAME, LabelList, Labels, freeze
from itbench.telemetry.metrics import Floats
from itbench.telemetry.promql import elementwise, histograms, over_time, relabel
from itbench.telemetry.promql.values import QueryError, Value, Vector, empty, somewhere

if TYPE_CHECKING:
    from itbench.telemetry.promql.engine import Query

KEEPS_NAME = ("last_over_time",)
_NATIVE = frozenset(["histogram_avg", "histogram_count", "histogram_stddev", "histogram_stdvar", "histogram_sum"])
"""Functions of native histograms: samples that are plain numbers have none."""


def call(query: "Query", node: Any) -> Value:
    """The value of a function call."""
    name, args = node.func.name, list(node.args)
    if name in over_time.PLAIN:
        window = query.window(args[0])
        values, present = over_time.PLAIN[name](window)
        answer = Vector(window.samples.labels, values, present)
        return answer if name in KEEPS_NAME else answer.unnamed()
    if name in elementwise.MATH:
        return _each(query.vector(args[0]), elementwise.MATH[name])
    if name in elementwise.CALENDAR:
        return _calendar(query, name, args)
    if name in _NATIVE:
        return empty(len(query.steps))
    special = _SPECIAL.get(name)
    if special is None:
        raise QueryError(f'function "{name}" is not supported')
    return special(query, args)


def _each(vector: Vector, function: Callable[[Floats], Floats]) -> Vector:
    return Vector(vector.labels, function(vector.values), vector.present).unnamed()


def _seconds(query: "Query") -> Floats:
    """The steps as Unix seconds that clients see."""
    return query.steps / 1000.0 + query.options.shift_s


def _calendar(query: "Query", name: str, args: list[Any]) -> Vector:
    part = elementwise.CALENDAR[name]
    if args:
        return _each(query.vector(args[0]), lambda values: part(values).astype(float))
    return _lone(part(_seconds(query)).astype(float))


def _lone(values: Floats) -> Vector:
    return Vector(LabelList([()]), values[None, :], np.ones((1, len(values)), dtype=bool))


def _predict_linear(query: "Query", args: list[Any]) -> Vector:
    window = query.window(args[0])
    return Vector(window.samples.labels, *over_time.predict_linear(window, query.scalar(args[1]))).unnamed()


def _quantile_over_time(query: "Query", args: list[Any]) -> Vector:
    window = query.window(args[1])
    return Vector(window.samples.labels, *over_time.quantile_over_time(window, query.scalar(args[0]))).unnamed()


def _clamp(query: "Query", args: list[Any]) -> Vector:
    vector, low, high = query.vector(args[0]), query.scalar(args[1]), query.scalar(args[2])
    kept = np.broadcast_to(~(low > high), vector.present.shape)
    return Vector(vector.labels, elementwise.clamp(vector.values, low, high), vector.present & kept).unnamed()


def _clamp_min(query: "Query", args: list[Any]) -> Vector:
    low = query.scalar(args[1])
    return _each(query.vector(args[0]), lambda values: np.maximum(values, low))


def _clamp_max(query: "Query", args: list[Any]) -> Vector:
    high = query.scalar(args[1])
    return _each(query.vector(args[0]), lambda values: np.minimum(values, high))


def _round(query: "Query", args: list[Any]) -> Vector:
    nearest = query.scalar(args[1]) if len(args) > 1 else np.ones(len(query.steps))
    return _each(query.vector(args[0]), lambda values: elementwise.round_to(values, nearest))


def _timestamp(query: "Query", args: list[Any]) -> Vector:
    node = args[0]
    while isinstance(node, ast.ParenExpr):
        node = node.expr
    if isinstance(node, ast.VectorSelector):
        vector, times = query.instant(node)
        times = times / 1000.0 + query.options.shift_s
    else:
        vector = query.vector(node)
        times = np.broadcast_to(_seconds(query), vector.values.shape)
    return Vector(vector.labels, times, vector.present).unnamed()


def _scalar(query: "Query", args: list[Any]) -> Floats:
    vector = query.vector(args[0])
    alone = vector.present.sum(axis=0) == 1
    return np.where(alone, np.where(vector.present, vector.values, 0.0).sum(axis=0), np.nan)


def absent_labels(node: Any) -> Labels:
    """The labels that an absent series would have had: those with exactly one matcher, `=`."""
    while isinstance(node, ast.ParenExpr):
        node = node.expr
    if isinstance(node, ast.MatrixSelector):
        node = node.vector_selector
    if not isinstance(node, ast.VectorSelector):
        return ()
    found: dict[str, list[str]] = {}
    for matcher in node.matchers.matchers:
        if matcher.name != NAME:
            equal = str(matcher.op).endswith("Equal") and not str(matcher.op).endswith("NotEqual")
            found.setdefault(matcher.name, []).append(matcher.value if equal else "")
    return freeze({name: values[0] for name, values in found.items() if len(values) == 1})


def _absent(query: "Query", args: list[Any]) -> Vector:
    there = somewhere(query.vector(args[0]).present)
    return Vector(LabelList([absent_labels(args[0])]), np.ones((1, len(there))), ~there[None, :])


def _absent_over_time(query: "Query", args: list[Any]) -> Vector:
    there = somewhere(query.window(args[0]).counts > 0)
    return Vector(LabelList([absent_labels(args[0])]), np.ones((1, len(there))), ~there[None, :])


def _sort(query: "Query", args: list[Any], sign: float) -> Vector:
    vector = query.vector(args[0])
    if vector.values.shape[1] != 1 or not vector.labels:
        return vector
    keys = sign * vector.values[:, 0]
    return vector.rows([int(row) for row in np.lexsort((keys, np.isnan(keys)))])


def _label_replace(query: "Query", args: list[Any]) -> Vector:
    target, replacement, source, pattern = (query.text(each) for each in args[1:])
    return relabel.label_replace(query.vector(args[0]), target, replacement, source, pattern)


def _label_join(query: "Query", args: list[Any]) -> Vector:
    target, separator, *sources = (query.text(each) for each in args[1:])
    return relabel.label_join(query.vector(args[0]), target, separator, sources)


_SPECIAL: dict[str, Callable[["Query", list[Any]], Value]] = {
    "absent": _absent,
    "absent_over_time": _absent_over_time,
    "clamp": _clamp,
    "clamp_max": _clamp_max,
    "clamp_min": _clamp_min,
    "histogram_fraction": lambda query, args: histograms.histogram_fraction(
        query.scalar(args[0]), query.scalar(args[1]), query.vector(args[2])
    ),
    "histogram_quantile": lambda query, args: histograms.histogram_quantile(
        query.scalar(args[0]), query.vector(args[1])
    ),
    "label_join": _label_join,
    "label_replace": _label_replace,
    "pi": lambda query, args: np.full(len(query.steps), np.pi),
    "predict_linear": _predict_linear,
    "quantile_over_time": _quantile_over_time,
    "round": _round,
    "scalar": _scalar,
    "sort": lambda query, args: _sort(query, args, 1.0),
    "sort_desc": lambda query, args: _sort(query, args, -1.0),
    "time": lambda query, args: _seconds(query),
    "timestamp": _timestamp,
    "vector": lambda query, args: _lone(query.scalar(args[0])),
}
