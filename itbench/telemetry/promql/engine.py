"""The evaluator: walks the syntax tree once and computes every node for all steps of the query."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import numpy as np
import promql_parser as ast

from itbench.telemetry import timestamps
from itbench.telemetry.labels import NAME, LabelList, Matcher
from itbench.telemetry.metrics import STALE, Bools, Floats, MetricStore
from itbench.telemetry.promql import aggregate, binary, calls
from itbench.telemetry.promql.samples import (
    EPOCH_MS,
    Samples,
    Window,
    cut_windows,
    from_chunks,
    from_vector,
    to_ms,
    to_seconds,
)
from itbench.telemetry.promql.syntax import parse
from itbench.telemetry.promql.values import QueryError, Result, Series, Value, Vector

_OPS = {"Equal": "=", "NotEqual": "!=", "Re": "=~", "NotRe": "!~"}
TOO_MANY = "query processing would load too many samples into memory in query execution"
_STALE_BITS = np.array([STALE]).view(np.uint64)[0]


@dataclass(frozen=True, slots=True)
class Options:
    """How a query is evaluated.

    Attributes:
        lookback_s: how old the newest sample of an instant selector may be.
        subquery_step_s: the step of subqueries that name none.
        shift_s: added to `time()`, `timestamp()`, `@` and values that are points in time, where clients live in another calendar.
        max_cells: series x steps that one node may have.
        max_window_samples: samples of all windows of one range together.
    """

    lookback_s: float = 300.0
    subquery_step_s: float = 60.0
    shift_s: float = 0.0
    max_cells: int = 5_000_000
    max_window_samples: int = 50_000_000


@dataclass(frozen=True, slots=True)
class Query:
    """One evaluation: the store, its options, and the steps in milliseconds of the world's calendar, shape (T,)."""

    store: MetricStore
    options: Options
    steps: Floats
    start: float
    end: float

    def evaluate(self, node: Any) -> Value:
        """The value of any node but a range."""
        kind = type(node)
        if kind is ast.ParenExpr:
            return self.evaluate(node.expr)
        if kind is ast.NumberLiteral:
            return np.full(len(self.steps), float(node.val))
        if kind is ast.StringLiteral:
            return str(node.val)
        if kind is ast.VectorSelector:
            return self.instant(node)[0]
        if kind is ast.Call:
            return calls.call(self, node)
        if kind is ast.AggregateExpr:
            return self._aggregate(node)
        if kind is ast.BinaryExpr:
            return self._binary(node)
        if kind is ast.UnaryExpr:
            return self._negate(node)
        raise QueryError(f"unhandled expression of type: {kind.__name__}")

    def vector(self, node: Any) -> Vector:
        """The value of a node that is an instant vector."""
        value = self.evaluate(node)
        assert isinstance(value, Vector), type(value)
        return value

    def scalar(self, node: Any) -> Floats:
        """The value of a node that is a scalar, shape (T,)."""
        value = self.evaluate(node)
        assert isinstance(value, np.ndarray), type(value)
        return value

    def text(self, node: Any) -> str:
        """The value of a node that is a string."""
        value = self.evaluate(node)
        assert isinstance(value, str), type(value)
        return value

    def times(self, node: Any) -> Floats:
        """Evaluation times of a selector or subquery after `@` and `offset`, shape (T,)."""
        times = self.steps
        if node.at is not None:
            times = np.full(len(times), self._at(node.at))
        if node.offset is not None:
            times = times - _ms(node.offset)
        return times

    def _at(self, modifier: Any) -> float:
        if modifier.type == ast.AtModifierType.Start:
            return self.start
        if modifier.type == ast.AtModifierType.End:
            return self.end
        return float(round((modifier.at.timestamp() - self.options.shift_s) * 1000.0))

    def _samples(self, selector: Any, low: float, high: float, *, stale: bool) -> Samples:
        chunks = self.store.select(
            matchers_of(selector), (low - EPOCH_MS) / 1000.0 - 0.001, (high - EPOCH_MS) / 1000.0 + 0.001
        )
        if self.options.shift_s:
            chunks = timestamps.shift(chunks, self.options.shift_s)
        series = sum(len(chunk.labels) for chunk in chunks)
        if series * len(self.steps) > self.options.max_cells:
            raise QueryError(TOO_MANY)
        return from_chunks(chunks, stale=stale)

    def instant(self, node: Any) -> tuple[Vector, Floats]:
        """An instant selector: the vector, and the times of its samples in milliseconds (S, T)."""
        times = self.times(node)
        oldest = times - self.options.lookback_s * 1000.0
        samples = self._samples(node, float(oldest.min()), float(times.max()), stale=True)
        high = samples.places(times)
        low = samples.places(oldest)
        last = np.where(high > low, high - 1, len(samples.v) - 1)
        values = samples.v[last]
        present: Bools = (high > low) & (values.view(np.uint64) != _STALE_BITS)
        return Vector(samples.labels, values, present), samples.t[last]

    def window(self, node: Any) -> Window:
        """A range: of a selector or of a subquery."""
        while isinstance(node, ast.ParenExpr):
            node = node.expr
        if isinstance(node, ast.SubqueryExpr):
            return self._subquery(node)
        selector, range_ms = node.vector_selector, _ms(node.range)
        times = self.times(selector)
        samples = self._samples(selector, float(times.min()) - range_ms, float(times.max()), stale=False)
        return self._bounded(cut_windows(samples, self.steps, times, range_ms))

    def _subquery(self, node: Any) -> Window:
        times, range_ms = self.times(node), _ms(node.range)
        step = _ms(node.step) if node.step else self.options.subquery_step_s * 1000.0
        first = (np.floor((times.min() - range_ms) / step) + 1) * step
        if (times.max() + 1 - first) / step > self.options.max_cells:
            raise QueryError(TOO_MANY)
        steps = np.arange(first, times.max() + 1, step)
        if not len(steps):
            return cut_windows(from_chunks([], stale=False), self.steps, times, range_ms)
        inner = replace(self, steps=steps)
        value = inner.evaluate(node.expr)
        if isinstance(value, np.ndarray):
            value = Vector(LabelList([()]), value[None, :], np.ones((1, len(steps)), dtype=bool))
        assert isinstance(value, Vector), type(value)
        if len(value.labels) * len(self.steps) > self.options.max_cells:
            raise QueryError(TOO_MANY)
        return self._bounded(cut_windows(from_vector(value, steps), self.steps, times, range_ms))

    def _bounded(self, window: Window) -> Window:
        """The window, before anything is worked out over it; raises QueryError for more samples than a query may load."""
        if int(window.counts.sum()) > self.options.max_window_samples:
            raise QueryError(TOO_MANY)
        return window

    def _aggregate(self, node: Any) -> Vector:
        vector, op = self.vector(node.expr), str(node.op)
        modifier = node.modifier
        without = modifier is not None and modifier.type == ast.AggModifierType.Without
        names = list(modifier.labels) if modifier is not None else []
        groups = aggregate.groups_of(vector, names, without=without)
        if op in aggregate.SIMPLE:
            return aggregate.fold(op, vector, groups)
        if op == "count_values":
            return aggregate.count_values(vector, groups, self.text(node.param))
        parameter = self.scalar(node.param)
        if op == "quantile":
            return aggregate.quantile(vector, groups, parameter)
        return aggregate.select_best(vector, groups, parameter, largest=op == "topk")

    def _binary(self, node: Any) -> Value:
        op, left, right = str(node.op), self.evaluate(node.lhs), self.evaluate(node.rhs)
        matching = matching_of(node.modifier)
        if isinstance(left, Vector) and isinstance(right, Vector):
            function = binary.sets if op in binary.SETS else binary.vectors
            return function(op, left, right, matching)
        if isinstance(left, Vector):
            assert isinstance(right, np.ndarray)
            return binary.with_scalar(op, left, right, swapped=False, return_bool=matching.return_bool)
        assert isinstance(left, np.ndarray)
        if isinstance(right, Vector):
            return binary.with_scalar(op, right, left, swapped=True, return_bool=matching.return_bool)
        assert isinstance(right, np.ndarray)
        return binary.scalars(op, left, right)

    def _negate(self, node: Any) -> Value:
        value = self.evaluate(node.expr)
        if isinstance(value, Vector):
            return Vector(value.labels, -value.values, value.present).unnamed()
        assert isinstance(value, np.ndarray)
        return -value


def _ms(delta: timedelta) -> float:
    return float(round(delta.total_seconds() * 1000.0))


def matchers_of(selector: Any) -> list[Matcher]:
    """The matchers of a vector selector, its metric name included."""
    found = [
        Matcher(each.name, _OPS[str(each.op).rsplit(".", 1)[-1]], each.value) for each in selector.matchers.matchers
    ]
    return [Matcher(NAME, "=", selector.name), *found] if selector.name else found


def matching_of(modifier: Any) -> binary.Matching:
    """The vector matching that a binary modifier asks for."""
    if modifier is None:
        return binary.Matching()
    labels = modifier.matching
    sides = ((ast.VectorMatchCardinality.ManyToOne, "left"), (ast.VectorMatchCardinality.OneToMany, "right"))
    return binary.Matching(
        on=labels is not None and labels.type == ast.LabelModifierType.Include,
        labels=tuple(labels.labels) if labels is not None else (),
        many=next((side for card, side in sides if card == modifier.card), ""),
        include=tuple(modifier.group_labels or ()),
        return_bool=bool(modifier.return_bool),
    )


def _run(query: Query, expression: Any) -> Value:
    with np.errstate(all="ignore"):
        return query.evaluate(expression)


def query_steps(store: MetricStore, text: str, times: Sequence[float], options: Options | None = None) -> Vector:
    """Evaluate as instant queries at several moments at once; `@ start()` and `@ end()` are those of the whole.

    Args:
        store: the samples.
        text: PromQL of a vector or a scalar (which becomes a series without labels).
        times: world seconds, increasing.

    Raises:
        QueryError: as `query_instant`, if any of the moments fails.
    """
    tree, steps = parse(text), np.array([to_ms(each) for each in times])
    value = _run(Query(store, options or Options(), steps, float(steps[0]), float(steps[-1])), tree)
    if isinstance(value, np.ndarray):
        return Vector(LabelList([()]), value[None, :], np.ones((1, len(steps)), dtype=bool))
    if not isinstance(value, Vector):
        raise QueryError("rule result is not a vector or scalar")
    return value


def query_instant(store: MetricStore, text: str, at: float, options: Options | None = None) -> Result:
    """Evaluate at one moment.

    Args:
        store: the samples.
        text: PromQL.
        at: world seconds.

    Raises:
        QueryError: it cannot be parsed (`bad_data`) or evaluated (`execution`).
    """
    tree, moment = parse(text), to_ms(at)
    query = Query(store, options or Options(), np.array([moment]), moment, moment)
    if isinstance(tree, ast.MatrixSelector | ast.SubqueryExpr):
        with np.errstate(all="ignore"):
            return _raw(query.window(tree), at)
    value = _run(query, tree)
    if isinstance(value, str):
        return Result("string", (), at, value)
    times = np.array([at])
    if isinstance(value, Vector):
        there = np.flatnonzero(value.present[:, 0])
        found = tuple(Series(value.labels[row], times, value.values[row]) for row in there)
        return Result("vector", found, at)
    return Result("scalar", (Series((), times, value),), at)


def _raw(window: Window, at: float) -> Result:
    found = []
    for row, labels in enumerate(window.samples.labels):
        part = slice(int(window.low[row, 0]), int(window.high[row, 0]))
        if part.start < part.stop:
            found.append(Series(labels, to_seconds(window.samples.t[part]), window.samples.v[part]))
    return Result("matrix", tuple(found), at)


def query_range(
    store: MetricStore, text: str, start: float, end: float, step: float, options: Options | None = None
) -> Result:
    """Evaluate at start, start + step, ... up to and including end (world seconds); the result is a matrix.

    Raises:
        QueryError: it cannot be parsed, is not a vector or scalar, or cannot be evaluated.
    """
    tree = parse(text)
    kind = _kind(tree)
    if kind not in ("instant vector", "scalar"):
        problem = f'invalid expression type "{kind}" for range query, must be Scalar or instant Vector'
        raise QueryError(problem, "bad_data")
    begin, interval = to_ms(start), max(1.0, float(round(step * 1000.0)))
    steps: Floats = begin + interval * np.arange(float((to_ms(end) - begin) // interval) + 1)
    if not len(steps):
        return Result("matrix", (), end)
    value = _run(Query(store, options or Options(), steps, begin, to_ms(end)), tree)
    times = to_seconds(steps)
    if isinstance(value, np.ndarray):
        return Result("matrix", (Series((), times, value),), end)
    assert isinstance(value, Vector)
    return Result("matrix", tuple(_series_of(value, times)), end)


def _series_of(vector: Vector, times: Floats) -> Sequence[Series]:
    found = []
    count = vector.present.sum(axis=1)
    some, full = count > 0, count == len(times)
    for row in sorted(range(len(vector.labels)), key=vector.labels.__getitem__):
        if full[row]:
            found.append(Series(vector.labels[row], times, vector.values[row]))
        elif some[row]:
            there = vector.present[row]
            found.append(Series(vector.labels[row], times[there], vector.values[row, there]))
    return found


_KINDS: dict[type, Callable[[Any], str]] = {
    ast.NumberLiteral: lambda node: "scalar",
    ast.StringLiteral: lambda node: "string",
    ast.MatrixSelector: lambda node: "range vector",
    ast.SubqueryExpr: lambda node: "range vector",
    ast.ParenExpr: lambda node: _kind(node.expr),
    ast.UnaryExpr: lambda node: _kind(node.expr),
    ast.Call: lambda node: "scalar" if node.func.return_type == ast.ValueType.Scalar else "instant vector",
    ast.BinaryExpr: lambda node: "scalar" if {_kind(node.lhs), _kind(node.rhs)} == {"scalar"} else "instant vector",
}


def _kind(node: Any) -> str:
    return _KINDS.get(type(node), lambda _: "instant vector")(node)


__all__ = ["Options", "Query", "query_instant", "query_range", "query_steps"]
