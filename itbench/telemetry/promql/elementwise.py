"""Functions that change each element of an instant vector by itself, and the functions of time."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

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
    "sgn": lambda v: np.where(v == 0, v, np.sign(v)),
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
}
"""Functions of one number."""


Ints = NDArray[np.int64]


def _split(values: Floats) -> tuple[Ints, Ints]:
    """Unix seconds -> days and seconds of the day; what fits no 64 bits becomes 2**63, as where Prometheus runs."""
    fits = np.abs(values) < 2.0**63
    whole = np.trunc(np.where(fits, values, 0.0)).astype(np.int64)
    days, seconds = np.divmod(whole, 86400)
    last_day, last_second = divmod(2**63, 86400)
    return np.where(fits, days, last_day), np.where(fits, seconds, last_second)


def _civil(values: Floats) -> tuple[Ints, Ints, Ints]:
    """Year, month and day in UTC (proleptic Gregorian calendar) of Unix seconds."""
    days = _split(values)[0] + 719468
    era = np.floor_divide(days, 146097)
    day = days - era * 146097
    year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    of_year = day - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    of_month = of_year - (153 * month + 2) // 5 + 1
    month = np.where(month < 10, month + 3, month - 9)
    return year + era * 400 + (month <= 2), month, of_month


def _is_leap(year: Ints) -> Ints:
    return np.asarray(((year % 4 == 0) & (year % 100 != 0)) | (year % 400 == 0), dtype=np.int64)


_BEFORE = np.array([0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365])
"""Days of a common year before each month."""


def _day_of_year(values: Floats) -> Ints:
    year, month, day = _civil(values)
    return np.asarray(_BEFORE[month - 1] + day + np.where(month > 2, _is_leap(year), 0))


def _days_in_month(values: Floats) -> Ints:
    year, month, _ = _civil(values)
    return np.asarray(_BEFORE[month] - _BEFORE[month - 1] + np.where(month == 2, _is_leap(year), 0))


CALENDAR: dict[str, Callable[[Floats], Ints]] = {
    "day_of_month": lambda values: _civil(values)[2],
    "day_of_week": lambda values: (_split(values)[0] + 4) % 7,
    "day_of_year": _day_of_year,
    "days_in_month": _days_in_month,
    "hour": lambda values: _split(values)[1] // 3600,
    "minute": lambda values: _split(values)[1] // 60 % 60,
    "month": lambda values: _civil(values)[1],
    "year": lambda values: _civil(values)[0],
}
"""Functions of a Unix time in UTC; without an argument they take the evaluation time."""


def round_to(values: Floats, nearest: Floats) -> Floats:
    """Round half up to a multiple of `nearest`, the way Prometheus computes it."""
    inverse = 1.0 / nearest
    return np.asarray(np.floor(values * inverse + 0.5) / inverse)


def clamp(values: Floats, low: Floats, high: Floats) -> Floats:
    """Values within [low, high]; NaN if a bound is NaN."""
    return maximum(low, minimum(high, values))


def maximum(left: Floats, right: Floats) -> Floats:
    """The greater: +Inf even beside NaN, and 0 rather than -0."""
    zeros = (left == 0) & (right == 0)
    endless = np.isposinf(left) | np.isposinf(right)
    return np.where(zeros, left + right, np.where(endless, np.inf, np.maximum(left, right)))


def minimum(left: Floats, right: Floats) -> Floats:
    """The lesser: -Inf even beside NaN, and -0 rather than 0."""
    return -maximum(-left, -right)
