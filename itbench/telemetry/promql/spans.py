"""Lengths of ranges and offsets: seconds, or arithmetic with the step and the range of the query."""

from collections.abc import Callable
from dataclasses import dataclass
from math import fmod, isinf, isnan
from operator import add, mul, sub, truediv

from itbench.telemetry.promql.lengths import LIMIT_S
from itbench.telemetry.promql.tree import Length, Number
from itbench.telemetry.promql.values import QueryError


@dataclass(frozen=True, slots=True)
class Spans:
    """Evaluates lengths; `step_s` and `range_s` are those of the query, 0 for a query at one moment."""

    step_s: float = 0.0
    range_s: float = 0.0

    def milliseconds(self, length: Length, *, positive: bool = False) -> float:
        """Whole milliseconds.

        Raises:
            QueryError: it is no length, or not greater than 0 where it has to be (`positive`).
        """
        if isinstance(length, Number):
            return float(int(round(length.value * 1e9) / 1e6))
        seconds = self._seconds(length)
        problem = ""
        if isnan(seconds) or isinf(seconds):
            problem = "duration is NaN or infinite"
        elif positive and seconds <= 0:
            problem = "duration must be greater than 0"
        elif abs(seconds) > LIMIT_S:
            problem = "duration is out of range"
        if problem:
            raise _fault(length, problem)
        return float(int(seconds * 1000))

    def _seconds(self, length: Length | None) -> float:
        if length is None:
            return 0.0
        if isinstance(length, Number):
            return length.value
        if length.op in ("step", "range"):
            return self.step_s if length.op == "step" else self.range_s
        left, right = self._seconds(length.left), self._seconds(length.right)
        if length.op in "/%" and right == 0:
            raise _fault(length, "division by zero" if length.op == "/" else "modulo by zero")
        return _COMBINED[length.op](left, right)


def _power(left: float, right: float) -> float:
    try:
        return float(left**right)
    except (OverflowError, ZeroDivisionError):
        return float("inf")
    except (TypeError, ValueError):
        return float("nan")


_COMBINED: dict[str, Callable[[float, float], float]] = {
    "+": add,
    "-": sub,
    "*": mul,
    "/": truediv,
    "%": fmod,
    "^": _power,
    "min_of": min,
    "max_of": max,
}


def _fault(length: Length, problem: str) -> QueryError:
    return QueryError(f"{length.start}:{length.end}: {problem}", "bad_data")
