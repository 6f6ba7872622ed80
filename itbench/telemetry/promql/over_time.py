"""Functions of range vectors: rates, `*_over_time`, regression. Each takes a `Window` and gives a value per series and step."""

from collections.abc import Callable, Iterator

import numpy as np

from itbench.telemetry.metrics import Bools, Floats
from itbench.telemetry.promql import compensated
from itbench.telemetry.promql.samples import Ints, Window

Answer = tuple[Floats, Bools]
"""Values and where they are present, both shape (S, T)."""

CLOSE = 1e-3
"""A difference this much smaller than its terms is worked out as Prometheus does."""
GATHER_CELLS = 2_000_000
"""Windows are laid out side by side in pieces of at most so many numbers."""


def _reduce(operation: np.ufunc, data: Floats, low: Ints, high: Ints) -> Floats:
    """`operation` over data[low:high] for each pair; any value where the slice is empty."""
    pairs = np.empty((low.size, 2), dtype=np.int64)
    pairs[:, 0], pairs[:, 1] = low.ravel(), high.ravel()
    if not low.size:
        return np.empty(low.shape)
    return np.asarray(operation.reduceat(data, pairs.ravel())[::2].reshape(low.shape))


def _ends(window: Window) -> tuple[Ints, Ints, Bools]:
    """Places of the first and last sample, and where there is one."""
    there = window.counts > 0
    return np.where(there, window.low, 0), np.where(there, window.high - 1, 0), there


def _steps_down(window: Window) -> Floats:
    """For each flat sample what a counter lost before it: the value of its predecessor if that is greater, else 0."""
    v = window.samples.v
    lost = np.zeros(len(v))
    lost[1:] = np.where(v[1:] < v[:-1], v[:-1], 0.0)
    return lost


def _extrapolated(window: Window, *, counter: bool, rate: bool) -> Answer:
    """`rate`, `increase` and `delta`: the change between the outer samples, extrapolated to the ends of the window."""
    t, v = window.samples.t, window.samples.v
    present = window.counts >= 2
    first, last = np.where(present, window.low, 0), np.where(present, window.high - 1, 0)
    first_v, first_t, last_t = v[first], t[first], t[last]
    change = v[last] - first_v
    if counter:
        lost = _steps_down(window)
        if lost.any():
            change += np.where(present, _reduce(np.add, lost, first + 1, np.where(present, window.high, 0)), 0.0)
    sampled = (last_t - first_t) / 1000.0
    between = sampled / (window.counts - 1)
    to_start = (first_t - window.start) / 1000.0
    to_end = (window.end - last_t) / 1000.0
    to_start = np.where(to_start >= between * 1.1, between / 2, to_start)
    if counter:
        to_zero = np.where((change > 0) & (first_v >= 0), sampled * (first_v / change), to_start)
        to_start = np.where(to_zero < to_start, to_zero, to_start)
    to_end = np.where(to_end >= between * 1.1, between / 2, to_end)
    factor = (sampled + to_start + to_end) / sampled
    if rate:
        factor /= (window.end - window.start) / 1000.0
    return change * factor, present


def rate(window: Window) -> Answer:
    """Per-second increase of a counter."""
    return _extrapolated(window, counter=True, rate=True)


def increase(window: Window) -> Answer:
    """Increase of a counter."""
    return _extrapolated(window, counter=True, rate=False)


def delta(window: Window) -> Answer:
    """Difference of a gauge."""
    return _extrapolated(window, counter=False, rate=False)


def _last_two(window: Window, *, rate: bool) -> Answer:
    t, v = window.samples.t, window.samples.v
    present = window.counts >= 2
    last, before = np.where(present, window.high - 1, 0), np.where(present, window.high - 2, 0)
    change = v[last] - v[before]
    if rate:
        change = np.where(v[last] < v[before], v[last], change) / ((t[last] - t[before]) / 1000.0)
    return change, present


def irate(window: Window) -> Answer:
    """Per-second increase between the last two samples."""
    return _last_two(window, rate=True)


def idelta(window: Window) -> Answer:
    """Difference of the last two samples."""
    return _last_two(window, rate=False)


def count_over_time(window: Window) -> Answer:
    """Number of samples."""
    return window.counts.astype(float), window.counts > 0


def sum_over_time(window: Window) -> Answer:
    """Sum of the samples."""
    sums = _reduce(np.add, window.samples.v, window.low, window.high) + 0.0  # no negative zero
    return _exact(window, sums, compensated.total), window.counts > 0


def avg_over_time(window: Window) -> Answer:
    """Mean of the samples."""
    means = (_reduce(np.add, window.samples.v, window.low, window.high) + 0.0) / window.counts
    return _exact(window, means, compensated.mean), window.counts > 0


def _exact(window: Window, sums: Floats, again: Callable[[Floats, Bools], Floats]) -> Floats:
    """The sums, those that cancel or overflow worked out again."""
    v = window.samples.v
    doubtful = compensated.doubtful(sums, v, lambda sizes: _reduce(np.add, sizes, window.low, window.high))
    if doubtful is None:
        return sums
    sums, doubtful = sums.copy(), doubtful & (window.counts > 0)
    low, counts = window.low[doubtful], window.counts[doubtful]
    piece = max(1, GATHER_CELLS // max(1, int(counts.max(initial=1))))
    answers = []
    for begin in range(0, len(low), piece):
        sizes = counts[begin : begin + piece]
        offsets = np.arange(int(sizes.max()))
        there = offsets < sizes[:, None]
        answers.append(again(v[np.where(there, low[begin : begin + piece, None] + offsets, 0)], there))
    sums[doubtful] = np.concatenate(answers) if answers else 0.0
    return sums


def min_over_time(window: Window) -> Answer:
    """Least sample; NaN only if there is nothing else."""
    return _reduce(np.fmin, window.samples.v, window.low, window.high), window.counts > 0


def max_over_time(window: Window) -> Answer:
    """Greatest sample; NaN only if there is nothing else."""
    return _reduce(np.fmax, window.samples.v, window.low, window.high), window.counts > 0


def last_over_time(window: Window) -> Answer:
    """The last sample."""
    _, last, there = _ends(window)
    return window.samples.v[last], there


def first_over_time(window: Window) -> Answer:
    """The first sample."""
    first, _, there = _ends(window)
    return window.samples.v[first], there


def present_over_time(window: Window) -> Answer:
    """1 where there is a sample."""
    return np.ones(window.low.shape), window.counts > 0


def _count_marks(window: Window, marks: Bools) -> Answer:
    """How many samples of each window after its first are marked."""
    total = np.cumsum(marks)
    first, last, there = _ends(window)
    return (total[last] - total[first]).astype(float), there


def changes(window: Window) -> Answer:
    """How often the value changed."""
    v = window.samples.v
    marks = np.zeros(len(v), dtype=bool)
    marks[1:] = (v[1:] != v[:-1]) & ~(np.isnan(v[1:]) & np.isnan(v[:-1]))
    return _count_marks(window, marks)


def resets(window: Window) -> Answer:
    """How often a counter was reset."""
    v = window.samples.v
    marks = np.zeros(len(v), dtype=bool)
    marks[1:] = v[1:] < v[:-1]
    return _count_marks(window, marks)


def _gathered(window: Window) -> Iterator[tuple[slice, Floats, Floats, Bools]]:
    """Windows side by side, a piece of the steps at a time: (steps, t, v, there), arrays of shape (S, T', W)."""
    width = int(window.counts.max(initial=0))
    if not width:
        return
    series, steps = window.low.shape
    piece = max(1, GATHER_CELLS // max(1, series * width))
    offsets = np.arange(width)
    for begin in range(0, steps, piece):
        part = slice(begin, min(steps, begin + piece))
        places = window.low[:, part, None] + offsets
        there = places < window.high[:, part, None]
        places = np.where(there, places, 0)
        yield part, window.samples.t[places], window.samples.v[places], there


def _over_gathered(window: Window, function: Callable[[slice, Floats, Floats, Bools], Floats]) -> Floats:
    answer = np.full(window.low.shape, np.nan)
    for part, t, v, there in _gathered(window):
        answer[:, part] = function(part, t, v, there)
    return answer


def stdvar_over_time(window: Window) -> Answer:
    """Population variance of the samples."""

    def variance(_: slice, t: Floats, v: Floats, there: Bools) -> Floats:
        count = there.sum(axis=2)
        mean = np.where(there, v, 0.0).sum(axis=2) / count
        apart = np.where(there, v - mean[:, :, None], 0.0)
        off = apart.sum(axis=2)  # what the mean was rounded by
        found = np.asarray(((apart**2).sum(axis=2) - off * off / count) / count)
        tight = (found < compensated.TIGHT * mean * mean) | ~np.isfinite(found)
        if tight.any():
            found[tight] = compensated.variance(v[tight], there[tight], carry=True)
        return found

    return _over_gathered(window, variance), window.counts > 0


def stddev_over_time(window: Window) -> Answer:
    """Population standard deviation of the samples."""
    values, present = stdvar_over_time(window)
    return np.sqrt(values), present


def quantile_of(values: Floats, there: Bools, q: Floats) -> Floats:
    """Interpolated quantiles along the last axis.

    Args:
        values, there: shape (..., W).
        q: shape (...); outside of [0, 1] the answer is an infinity.
    """
    numberless = there & np.isnan(values)
    # Stable: the order of 0 and -0 is otherwise that of the processor.
    ranked = np.sort(np.where(there, np.where(numberless, -np.inf, values), np.inf), axis=-1, kind="stable")
    count, first = there.sum(axis=-1), numberless.sum(axis=-1)
    rank = np.nan_to_num(np.clip(q, 0.0, 1.0)) * (count - 1)
    lower = np.maximum(np.floor(rank), 0).astype(np.int64)
    upper = np.minimum(lower + 1, np.maximum(count - 1, 0))
    weight = rank - np.floor(rank)
    low = np.where(lower < first, np.nan, np.take_along_axis(ranked, lower[..., None], axis=-1)[..., 0])
    high = np.where(upper < first, np.nan, np.take_along_axis(ranked, upper[..., None], axis=-1)[..., 0])
    inside = np.where(weight == 0, low, low * (1 - weight) + high * weight)
    answer = np.where(q < 0, -np.inf, np.where(q > 1, np.inf, inside))
    return np.where(np.isnan(q) | (count == 0), np.nan, answer)


def quantile_over_time(window: Window, q: Floats) -> Answer:
    """The q-quantile of the samples; q has shape (T,)."""

    def quantile(part: slice, _: Floats, v: Floats, there: Bools) -> Floats:
        return quantile_of(v, there, np.broadcast_to(q[part], v.shape[:2]))

    return _over_gathered(window, quantile), window.counts > 0


def _regression(t: Floats, v: Floats, there: Bools, origin_ms: Floats) -> tuple[Floats, Floats]:
    """Least squares over the last axis: slope per second, and the value at `origin_ms` (same shape without that axis)."""
    count = there.sum(axis=-1)
    x = np.where(there, (t - origin_ms[..., None]) / 1000.0, 0.0)
    y = np.where(there, v, 0.0)
    sum_x, sum_y = x.sum(axis=-1), y.sum(axis=-1)
    sum_xy, sum_xx = (x * y).sum(axis=-1), (x * x).sum(axis=-1)
    covariance, spread = sum_xy - sum_x * sum_y / count, sum_xx - sum_x * sum_x / count
    close = (np.abs(covariance) < CLOSE * np.abs(sum_xy)) | (np.abs(spread) < CLOSE * sum_xx)
    if close.any():  # most digits are gone: what is left is what Prometheus' summation leaves
        here, apart, level = there[close], x[close], y[close]
        sums = [compensated.total(each, here) for each in (apart, level, apart * level, apart * apart)]
        sum_x[close], sum_y[close], sum_xy, sum_xx = sums
        covariance[close] = sum_xy - sum_x[close] * sum_y[close] / count[close]
        spread[close] = sum_xx - sum_x[close] * sum_x[close] / count[close]
    slope = covariance / spread
    intercept = sum_y / count - slope * sum_x / count
    first = v[..., :1]
    constant = np.where(there, v == first, True).all(axis=-1)
    level = first[..., 0]
    steady = constant & ~np.isinf(level)
    endless = constant & np.isinf(level)
    slope = np.where(endless, np.nan, np.where(steady, 0.0, slope))
    return slope, np.where(endless, np.nan, np.where(steady, level, intercept))


def deriv(window: Window) -> Answer:
    """Slope per second by least squares."""

    def slope(_: slice, t: Floats, v: Floats, there: Bools) -> Floats:
        return _regression(t, v, there, t[..., 0])[0]

    return _over_gathered(window, slope), window.counts >= 2


def predict_linear(window: Window, ahead_s: Floats) -> Answer:
    """Value in `ahead_s` seconds (shape (T,)) by least squares."""

    def predict(part: slice, t: Floats, v: Floats, there: Bools) -> Floats:
        origin = np.broadcast_to(window.at[part], t.shape[:2])
        slope, intercept = _regression(t, v, there, origin)
        return slope * ahead_s[part] + intercept

    return _over_gathered(window, predict), window.counts >= 2


PLAIN: dict[str, Callable[[Window], Answer]] = {
    "avg_over_time": avg_over_time,
    "changes": changes,
    "count_over_time": count_over_time,
    "delta": delta,
    "deriv": deriv,
    "first_over_time": first_over_time,
    "idelta": idelta,
    "increase": increase,
    "irate": irate,
    "last_over_time": last_over_time,
    "max_over_time": max_over_time,
    "min_over_time": min_over_time,
    "present_over_time": present_over_time,
    "rate": rate,
    "resets": resets,
    "stddev_over_time": stddev_over_time,
    "stdvar_over_time": stdvar_over_time,
    "sum_over_time": sum_over_time,
}
"""Functions of a range vector alone."""
