"""The evaluator: walks the syntax tree once and computes every node for all steps of the query."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from itbench.telemetry import timestamps
from itbench.telemetry.labels import LabelList
from itbench.telemetry.metrics import STALE, Bools, Floats, MetricStore
from itbench.telemetry.promql import aggregate, binary, calls, extended, tree
from itbench.telemetry.promql.notes import Notes
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
from itbench.telemetry.promql.spans import Spans
from itbench.telemetry.promql.syntax import parse
from itbench.telemetry.promql.values import QueryError, Result, Series, Value, Vector, empty

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
    """One evaluation.

    Attributes:
        store, options: what it reads, and how.
        steps: evaluation times in milliseconds of the world's calendar, shape (T,).
        start, end: first and last time of the whole query.
        spans: durations that depend on step and range of the query.
        notes: warnings and infos.
    """

    store: MetricStore
    options: Options
    steps: Floats
    start: float
    end: float
    spans: Spans = field(default_factory=Spans)
    notes: Notes = field(default_factory=Notes)

    def evaluate(self, node: tree.Node) -> Value:
        """The value of any node but a range."""
        if isinstance(node, tree.Paren):
            return self.evaluate(node.expr)
        if isinstance(node, tree.Number):
            return np.full(len(self.steps), node.value)
        if isinstance(node, tree.Text):
            return node.value
        if isinstance(node, tree.Selector):
            return self.instant(node)[0]
        if isinstance(node, tree.Call):
            return calls.call(self, node)
        if isinstance(node, tree.Aggregate):
            return self._aggregate(node)
        if isinstance(node, tree.Binary):
            return self._binary(node)
        if isinstance(node, tree.Unary):
            return self._negate(node)
        raise QueryError(f"unhandled expression of type: {type(node).__name__}")

    def vector(self, node: tree.Node) -> Vector:
        """The value of a node that is an instant vector."""
        value = self.evaluate(node)
        assert isinstance(value, Vector), type(value)
        return value

    def scalar(self, node: tree.Node) -> Floats:
        """The value of a node that is a scalar, shape (T,)."""
        value = self.evaluate(node)
        assert isinstance(value, np.ndarray), type(value)
        return value

    def text(self, node: tree.Node) -> str:
        """The value of a node that is a string."""
        value = self.evaluate(node)
        assert isinstance(value, str), type(value)
        return value

    def times(self, node: tree.Timed) -> Floats:
        """Evaluation times of a selector or subquery after `@` and `offset`, shape (T,)."""
        times = self.steps
        if node.anchor:
            times = np.full(len(times), self.start if node.anchor == "start" else self.end)
        elif node.at_ms is not None:
            times = np.full(len(times), float(node.at_ms) - round(self.options.shift_s * 1000.0))
        return times if node.offset is None else times - self.spans.milliseconds(node.offset)

    def _samples(self, selector: tree.Selector, low: float, high: float, *, stale: bool) -> Samples:
        chunks = self.store.select(
            selector.matchers, (low - EPOCH_MS) / 1000.0 - 0.001, (high - EPOCH_MS) / 1000.0 + 0.001
        )
        if self.options.shift_s:
            chunks = timestamps.shift(chunks, self.options.shift_s)
        series = sum(len(chunk.labels) for chunk in chunks)
        if series * len(self.steps) > self.options.max_cells:
            raise QueryError(TOO_MANY)
        return from_chunks(chunks, stale=stale)

    def instant(self, node: tree.Selector) -> tuple[Vector, Floats]:
        """An instant selector: the vector, and the times of its samples in milliseconds (S, T)."""
        times = self.times(node)
        if node.extended == "smoothed":
            return self._smoothed(node, times)
        oldest = times - self.options.lookback_s * 1000.0
        samples = self._samples(node, float(oldest.min()), float(times.max()), stale=True)
        high = samples.places(times)
        low = samples.places(oldest)
        last = np.where(high > low, high - 1, len(samples.v) - 1)
        values = samples.v[last]
        present: Bools = (high > low) & (values.view(np.uint64) != _STALE_BITS)
        return Vector(samples.labels, values, present), samples.t[last]

    def _smoothed(self, node: tree.Selector, times: Floats) -> tuple[Vector, Floats]:
        lookback = self.options.lookback_s * 1000.0
        samples = self._samples(node, float(times.min()) - lookback, float(times.max()) + lookback, stale=False)
        values, present = extended.smooth(samples, times, lookback)
        return Vector(samples.labels, values, present), np.broadcast_to(times, values.shape)

    def window(self, node: tree.Node) -> Window:
        """A range: of a selector or of a subquery."""
        node = tree.bare(node)
        if isinstance(node, tree.Subquery):
            return self._subquery(node)
        assert isinstance(node, tree.Range), type(node)
        selector, range_ms = node.selector, self.spans.milliseconds(node.length, positive=True)
        times = self.times(selector)
        beyond = self.options.lookback_s * 1000.0 if selector.extended else 0.0
        low, high = float(times.min()) - range_ms - beyond, float(times.max()) + beyond
        window = cut_windows(self._samples(selector, low, high, stale=False), self.steps, times, range_ms)
        if selector.extended:
            window = extended.widen(window, selector.extended, beyond)
        return self._bounded(window)

    def _subquery(self, node: tree.Subquery) -> Window:
        times, range_ms = self.times(node), self.spans.milliseconds(node.length, positive=True)
        step = self.options.subquery_step_s * 1000.0
        if node.step is not None:
            step = self.spans.milliseconds(node.step, positive=True)
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

    def _aggregate(self, node: tree.Aggregate) -> Vector:
        op, parameter = node.op, None
        if node.param is not None and op != "count_values":
            parameter = self.scalar(node.param)
        vector = self.vector(node.expr)
        groups = aggregate.groups_of(vector, node.labels, without=node.without)
        if op in aggregate.SIMPLE:
            return aggregate.fold(op, vector, groups)
        assert node.param is not None
        if parameter is None:
            return aggregate.count_values(vector, groups, self.text(node.param))
        if op == "quantile":
            self.notes.quantile(aggregate.outliers(parameter), node.param)
            return aggregate.quantile(vector, groups, parameter)
        return aggregate.select_best(vector, groups, parameter, largest=op == "topk")

    def _binary(self, node: tree.Binary) -> Value:
        op, left, right = node.op, self.evaluate(node.left), self.evaluate(node.right)
        matching = binary.Matching(node.on, node.labels, node.group, node.include, node.return_bool)
        if op in binary.TRIMS and (isinstance(left, Vector) or isinstance(right, Vector)):
            return self._trim(node, left, right, matching)
        if isinstance(left, Vector) and isinstance(right, Vector):
            function = binary.sets if op in binary.SETS else binary.vectors
            return function(op, left, right, matching)
        if isinstance(left, Vector):
            assert isinstance(right, np.ndarray)
            return binary.with_scalar(op, left, right, swapped=False, return_bool=node.return_bool)
        assert isinstance(left, np.ndarray)
        if isinstance(right, Vector):
            return binary.with_scalar(op, right, left, swapped=True, return_bool=node.return_bool)
        assert isinstance(right, np.ndarray)
        return binary.scalars(op, left, right)

    def _trim(self, node: tree.Binary, left: Value, right: Value, matching: binary.Matching) -> Vector:
        """An operator of native histograms: it meets what `*` would meet, and gives nothing."""
        if isinstance(left, Vector) and isinstance(right, Vector):
            met = binary.vectors("*", left, right, matching)
        else:
            met = self._either(left, right)
        if met.present.any():
            self.notes.trimmed(node.op, node)
        return empty(len(self.steps))

    @staticmethod
    def _either(left: Value, right: Value) -> Vector:
        vector = left if isinstance(left, Vector) else right
        assert isinstance(vector, Vector)
        return vector

    def _negate(self, node: tree.Unary) -> Value:
        value = self.evaluate(node.expr)
        if node.op == "+":
            return value
        if isinstance(value, Vector):
            return Vector(value.labels, -value.values, value.present).unnamed()
        assert isinstance(value, np.ndarray)
        return -value


def _run(query: Query, expression: tree.Node) -> Value:
    try:
        with np.errstate(all="ignore"):
            return query.evaluate(expression)
    except RecursionError as error:
        raise QueryError("the expression is nested too deeply") from error


def query_steps(store: MetricStore, text: str, times: Sequence[float], options: Options | None = None) -> Vector:
    """Evaluate as instant queries at several moments at once; `@ start()` and `@ end()` are those of the whole.

    Args:
        store: the samples.
        text: PromQL of a vector or a scalar (which becomes a series without labels).
        times: world seconds, increasing.

    Raises:
        QueryError: as `query_instant`, if any of the moments fails.
    """
    expression, steps = parse(text), np.array([to_ms(each) for each in times])
    value = _run(Query(store, options or Options(), steps, float(steps[0]), float(steps[-1])), expression)
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
    expression, moment = parse(text), to_ms(at)
    query = Query(store, options or Options(), np.array([moment]), moment, moment)
    if expression.type == "matrix":
        with np.errstate(all="ignore"):
            return _noted(_raw(query.window(expression), at, tree.modifier_of(expression)), query, text)
    value = _run(query, expression)
    if isinstance(value, str):
        return Result("string", (), at, value)
    times = np.array([at])
    if isinstance(value, Vector):
        there = np.flatnonzero(value.present[:, 0])
        found = tuple(Series(value.labels[row], times, value.values[row]) for row in there)
        return _noted(Result("vector", found, at), query, text)
    return _noted(Result("scalar", (Series((), times, value),), at), query, text)


def _noted(result: Result, query: Query, text: str) -> Result:
    """The result with what the evaluation had to say."""
    warnings, infos = query.notes.show("warning", text), query.notes.show("info", text)
    return replace(result, warnings=warnings, infos=infos) if warnings or infos else result


def _raw(window: Window, at: float, modifier: str) -> Result:
    found = []
    if modifier:
        pairs = zip(window.samples.labels, extended.raw(window, modifier), strict=True)
        return Result("matrix", tuple(Series(each, to_seconds(t), v) for each, (t, v) in pairs if len(t)), at)
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
    expression = parse(text)
    if expression.type not in ("vector", "scalar"):
        kind = tree.SHOWN.get(expression.type, expression.type)
        problem = f'invalid expression type "{kind}" for range query, must be Scalar or instant Vector'
        raise QueryError(problem, "bad_data")
    begin, interval = to_ms(start), max(1.0, float(round(step * 1000.0)))
    steps: Floats = begin + interval * np.arange(float((to_ms(end) - begin) // interval) + 1)
    if not len(steps):
        return Result("matrix", (), end)
    query = Query(store, options or Options(), steps, begin, to_ms(end), Spans(interval / 1000.0, end - start))
    value = _run(query, expression)
    times = to_seconds(steps)
    if isinstance(value, np.ndarray):
        return _noted(Result("matrix", (Series((), times, value),), end), query, text)
    assert isinstance(value, Vector)
    return _noted(Result("matrix", tuple(_series_of(value, times)), end), query, text)


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


__all__ = ["Options", "Query", "query_instant", "query_range", "query_steps"]
