"""Functions that change each element of an instant vector by itself, and the functions of time."""

import calendar
from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np

from itbench.telemetry.metrics import Floats

MATH: dict[str, Callable[[Floats], Floats]] = {
    "abs": np.abs,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "ceil": np.ceil,
    "cos": np.cos,
    "cosh": np.cosh,
    "deg": lambda v: v * 180.0 / np.pi,
    "exp": np.exp,
    "floor": np.floor,
    "ln": np.log,
    "log10": np.log10,
    "log2": np.log2,
    "rad": lambda v: v * np.pi / 180.0,
    "sgn": np.sign,
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
}
"""Functions of one number."""


def _of_time(part: Callable[[datetime], float]) -> Callable[[Floats], Floats]:
    def one(value: float) -> float:
        try:
            return float(part(datetime.fromtimestamp(int(value), UTC)))
        except (ValueError, OverflowError, OSError):
            return float("nan")

    return np.vectorize(one, otypes=[float])


CALENDAR: dict[str, Callable[[Floats], Floats]] = {
    "day_of_month": _of_time(lambda t: t.day),
    "day_of_week": _of_time(lambda t: t.isoweekday() % 7),
    "day_of_year": _of_time(lambda t: t.timetuple().tm_yday),
    "days_in_month": _of_time(lambda t: calendar.monthrange(t.year, t.month)[1]),
    "hour": _of_time(lambda t: t.hour),
    "minute": _of_time(lambda t: t.minute),
    "month": _of_time(lambda t: t.month),
    "year": _of_time(lambda t: t.year),
}
"""Functions of a Unix time in UTC; without an argument they take the evaluation time."""


def round_to(values: Floats, nearest: Floats) -> Floats:
    """Round half up to a multiple of `nearest`, the way Prometheus computes it."""
    inverse = 1.0 / nearest
    return np.asarray(np.floor(values * inverse + 0.5) / inverse)


def clamp(values: Floats, low: Floats, high: Floats) -> Floats:
    """Values within [low, high]; NaN if a bound is NaN."""
    return np.maximum(low, np.minimum(high, values))
