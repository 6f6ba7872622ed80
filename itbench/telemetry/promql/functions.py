"""What functions PromQL has: their arguments, how many of them are optional, their result, and whether a flag has to be set."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["scalar", "vector", "matrix", "string"]


@dataclass(frozen=True, slots=True)
class Function:
    """A signature.

    Attributes:
        args: types of the arguments.
        variadic: how many of them may be left out or come in addition to all but the last; -1: any number may come.
        returns: type of the result.
        experimental: refused, because the flag for it is not set.
    """

    args: tuple[Kind, ...]
    variadic: int = 0
    returns: Kind = "vector"
    experimental: bool = False


_V: tuple[Kind, ...] = ("vector",)
_M: tuple[Kind, ...] = ("matrix",)
_OF_VECTOR = (
    "abs", "absent", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "deg", "exp", "floor",
    "histogram_avg", "histogram_count", "histogram_stddev", "histogram_stdvar", "histogram_sum", "ln", "log10", "log2",
    "rad", "sgn", "sin", "sinh", "sort", "sort_desc", "sqrt", "tan", "tanh", "timestamp",
)  # fmt: skip
_OF_RANGE = (
    "absent_over_time", "avg_over_time", "changes", "count_over_time", "delta", "deriv", "first_over_time", "idelta",
    "increase", "irate", "last_over_time", "max_over_time", "min_over_time", "present_over_time", "rate", "resets",
    "stddev_over_time", "stdvar_over_time", "sum_over_time",
)  # fmt: skip
_CALENDAR = ("day_of_month", "day_of_week", "day_of_year", "days_in_month", "hour", "minute", "month", "year")
_SCALARS = ("end", "range", "start", "step")
_NEW_OF_RANGE = (
    "mad_over_time", "ts_of_first_over_time", "ts_of_last_over_time", "ts_of_max_over_time", "ts_of_min_over_time",
)  # fmt: skip

FUNCTIONS: dict[str, Function] = {
    **{name: Function(_V) for name in _OF_VECTOR},
    **{name: Function(_M) for name in _OF_RANGE},
    **{name: Function(_V, 1) for name in _CALENDAR},
    **{name: Function((), 0, "scalar", experimental=True) for name in _SCALARS},
    **{name: Function(_M, experimental=True) for name in _NEW_OF_RANGE},
    "clamp": Function(("vector", "scalar", "scalar")),
    "clamp_max": Function(("vector", "scalar")),
    "clamp_min": Function(("vector", "scalar")),
    "double_exponential_smoothing": Function(("matrix", "scalar", "scalar"), experimental=True),
    "histogram_fraction": Function(("scalar", "scalar", "vector")),
    "histogram_quantile": Function(("scalar", "vector")),
    "histogram_quantiles": Function(("vector", "string", "scalar", "scalar"), 9, experimental=True),
    "info": Function(("vector", "vector"), 1, experimental=True),
    "integral": Function(("matrix", "scalar"), 1, experimental=True),
    "label_join": Function(("vector", "string", "string", "string"), -1),
    "label_replace": Function(("vector", "string", "string", "string", "string")),
    "max_of": Function(("scalar", "scalar"), 0, "scalar", experimental=True),
    "min_of": Function(("scalar", "scalar"), 0, "scalar", experimental=True),
    "pi": Function((), 0, "scalar"),
    "predict_linear": Function(("matrix", "scalar")),
    "quantile_over_time": Function(("scalar", "matrix")),
    "round": Function(("vector", "scalar"), 1),
    "scalar": Function(("vector",), 0, "scalar"),
    "sort_by_label": Function(("vector", "string"), -1, experimental=True),
    "sort_by_label_desc": Function(("vector", "string"), -1, experimental=True),
    "start_timestamp": Function(("vector",), experimental=True),
    "time": Function((), 0, "scalar"),
    "vector": Function(("scalar",)),
}
