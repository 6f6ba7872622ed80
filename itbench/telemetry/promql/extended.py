"""Ranges with the modifiers `anchored` and `smoothed`: they look beyond their ends, so that nothing has to be extrapolated.

`anchored` takes the value at an end from the last sample before it; `smoothed` interpolates between the samples around it.
"""

from dataclasses import dataclass

import numpy as np

from itbench.telemetry.metrics import Bools, Floats
from itbench.telemetry.promql.samples import Ints, Samples, Window
from itbench.telemetry.promql.values import QueryError

Answer = tuple[Floats, Bools]
"""Values and where they are present, both shape (S, T)."""
ALLOWED = {
    "anchored": ("changes", "delta", "increase", "rate", "resets"),
    "smoothed": ("delta", "increase", "rate"),
}
"""Functions that may take a range with the modifier."""


def check(function: str, modifier: str) -> None:
    """Raises QueryError where the function cannot take such a range."""
    if function not in ALLOWED[modifier]:
        allowed = ", ".join(ALLOWED[modifier])
        raise QueryError(f"{modifier} modifier can only be used with: {allowed} - not with {function}")


def widen(window: Window, modifier: str, lookback_ms: float) -> Window:
    """The window with the samples that the modifier looks at; `start` and `end` stay."""
    low = window.samples.places(window.start - lookback_ms)
    high = window.samples.places(window.end + (lookback_ms if modifier == "smoothed" else 0.0))
    return Window(window.samples, low, high, window.start, window.end, window.at)


@dataclass(frozen=True, slots=True)
class _Edges:
    """Places of the samples at the ends of the windows, the values there, and where there is anything; all (S, T)."""

    first: Ints
    last: Ints
    left: Floats
    right: Floats
    present: Bools


def _between(samples: Samples, before: Ints, after: Ints, at: Floats, counter: bool) -> Floats:
    """Linear interpolation; a counter that fell began anew at 0."""
    t, v = samples.t, samples.v
    low = np.where(v[after] < v[before], 0.0, v[before]) if counter else v[before]
    return low + (v[after] - low) * (at - t[before]) / (t[after] - t[before])


def _edges(window: Window, *, smoothed: bool, counter: bool) -> _Edges:
    samples, t, v = window.samples, window.samples.t, window.samples.v
    present = window.counts > 0
    low, last = np.where(present, window.low, 0), np.where(present, window.high - 1, 0)
    first = np.maximum(low, np.clip(samples.places(window.start), low, last) - 1)
    left = v[first]
    following, before_last = np.minimum(first + 1, len(t) - 1), np.maximum(last - 1, 0)
    if smoothed:
        last = np.clip(samples.places(window.end - 1.0), low, last)
        before_last = np.maximum(last - 1, 0)
        crossing = (t[first] < window.start) & (last > low)
        left = np.where(crossing, _between(samples, first, following, window.start, counter), left)
        present &= t[first] <= window.end
    right = v[last]
    if smoothed:
        crossing = (t[last] > window.end) & (last > low)
        right = np.where(crossing, _between(samples, before_last, last, window.end, counter), right)
    return _Edges(first, last, left, right, present & (t[last] > window.start))


def _lost(window: Window, edges: _Edges) -> Floats:
    """What a counter lost at its resets from the left to the right edge."""
    t, v = window.samples.t, window.samples.v
    first = edges.first + (t[edges.first] <= window.start)
    last = edges.last - (t[edges.last] >= window.end)
    some = first <= last
    inner_first, inner_last = np.where(some, first, 0), np.where(some, last, 0)
    falls = np.zeros(len(v))
    falls[1:] = np.where(v[1:] < v[:-1], v[:-1], 0.0)
    running = np.cumsum(falls)
    inner = running[inner_last] - running[inner_first]
    entering = np.where(v[inner_first] < edges.left, edges.left, 0.0)
    leaving = np.where(edges.right < v[inner_last], v[inner_last], 0.0)
    alone = np.where(edges.right < edges.left, edges.left, 0.0)
    return np.where(some, inner + entering + leaving, alone)


def _change(window: Window, modifier: str, *, counter: bool, rate: bool) -> Answer:
    edges = _edges(window, smoothed=modifier == "smoothed", counter=counter)
    change = edges.right - edges.left
    if counter:
        change = change + _lost(window, edges)
    return change / ((window.end - window.start) / 1000.0) if rate else change, edges.present


def _marked(window: Window, marks: Bools) -> Answer:
    """How many samples after the anchor are marked."""
    present = (window.counts > 0) & (window.samples.t[np.where(window.counts > 0, window.high - 1, 0)] > window.start)
    low, last = np.where(present, window.low, 0), np.where(present, window.high - 1, 0)
    first = np.maximum(low, window.samples.places(window.start) - 1)
    total = np.cumsum(marks)
    return (total[last] - total[np.where(present, first, 0)]).astype(float), present


def evaluate(function: str, window: Window, modifier: str) -> Answer:
    """A function of a range that `widen` made."""
    v = window.samples.v
    marks = np.zeros(len(v), dtype=bool)
    if function == "changes":
        marks[1:] = (v[1:] != v[:-1]) & ~(np.isnan(v[1:]) & np.isnan(v[:-1]))
        return _marked(window, marks)
    if function == "resets":
        marks[1:] = v[1:] < v[:-1]
        return _marked(window, marks)
    return _change(window, modifier, counter=function != "delta", rate=function == "rate")


def raw(window: Window, modifier: str) -> list[tuple[Floats, Floats]]:
    """Times in milliseconds and values of each series in the first of the windows, the values at its ends included."""
    edges = _edges(window, smoothed=modifier == "smoothed", counter=False)
    t, v = window.samples.t, window.samples.v
    start, end = float(window.start[0]), float(window.end[0])
    found = []
    for row in range(len(window.low)):
        first, last = int(edges.first[row, 0]), int(edges.last[row, 0])
        inner = slice(first + (t[first] <= start), last + 1 - (t[last] >= end))
        times = np.concatenate([[start], t[inner], [end]])
        values = np.concatenate([edges.left[row], v[inner], edges.right[row]])
        kept = bool(edges.present[row, 0])
        found.append((times if kept else times[:0], values if kept else values[:0]))
    return found


def smooth(samples: Samples, times: Floats, lookback_ms: float) -> Answer:
    """An instant selector with `smoothed`: the value at each time, interpolated between the samples around it."""
    low, high = samples.places(times - lookback_ms), samples.places(times + lookback_ms)
    place = samples.places(times - 1.0)
    t, v = samples.t, samples.v
    after, before = np.minimum(place, len(t) - 1), np.maximum(place - 1, 0)
    follows, precedes = place < high, place > low
    exact = follows & (t[after] == times)
    joined = _between(samples, before, after, times, counter=False)
    values = np.where(exact, v[after], np.where(follows, joined, v[before]))
    return values, exact | precedes
