"""Query results as the JSON that Prometheus sends; called by the HTTP API and by agents' tools."""

from operator import add

import numpy as np
import orjson

from itbench.telemetry.labels import Labels
from itbench.telemetry.metrics import Floats
from itbench.telemetry.promql.gotext import shown
from itbench.telemetry.promql.values import Result, Series, format_float, format_plain


def format_floats(values: Floats) -> list[str]:
    """As `format_float`, for many numbers."""
    blob = orjson.dumps(np.ascontiguousarray(values), option=orjson.OPT_SERIALIZE_NUMPY)[1:-1]
    if b"e" in blob or b"u" in blob:  # exponents, and null for what is no number
        return [format_float(value) for value in values.tolist()]
    texts = (blob + b",").replace(b".0,", b",").decode().split(",")
    return texts[:-1] if len(values) else []


def format_times(t: Floats, epoch_s: float) -> list[str]:
    """World seconds -> Unix seconds with at most three decimals."""
    ms = np.round((t + epoch_s) * 1000.0).astype(np.int64)
    whole, rest = np.divmod(ms, 1000)
    return [f"{a}.{b:03d}" if b else str(a) for a, b in zip(whole.tolist(), rest.tolist(), strict=True)]


def _metric(labels: Labels) -> bytes:
    try:
        return orjson.dumps(dict(labels))
    except TypeError:  # bytes that are no UTF-8
        return orjson.dumps({shown(name): shown(value) for name, value in labels})


class _Points:
    """Samples as `[t,"v"]`; series that share their times share the texts of those."""

    def __init__(self, epoch_s: float) -> None:
        self._epoch_s = epoch_s
        self._times: Floats | None = None
        self._heads: list[str] = []

    def text(self, series: Series) -> str:
        """All samples of a series, separated by commas."""
        if self._times is not series.t:
            self._times = series.t
            self._heads = [f'[{t},"' for t in format_times(series.t, self._epoch_s)]
        return '"],'.join(map(add, self._heads, format_floats(series.v))) + '"]'


def encode_result(result: Result, epoch_s: float) -> bytes:
    """`{"resultType": ..., "result": ...}`.

    Args:
        result: of a query.
        epoch_s: Unix seconds that stand for world second 0 on the wire.
    """
    if result.kind == "string":
        (time,) = format_times(np.array([result.at]), epoch_s)
        body = b"[" + time.encode() + b"," + orjson.dumps(shown(result.text)) + b"]"
    elif result.kind == "scalar":
        (time,) = format_times(result.series[0].t, epoch_s)
        body = f'[{time},"{format_plain(float(result.series[0].v[0]))}"]'.encode()
    else:
        key = b"value" if result.kind == "vector" else b"values"
        items, texts = [], _Points(epoch_s)
        for series in result.series:
            points = texts.text(series).encode()
            if result.kind == "matrix":
                points = b"[" + points + b"]"
            items.append(b'{"metric":' + _metric(series.labels) + b',"' + key + b'":' + points + b"}")
        body = b"[" + b",".join(items) + b"]"
    return b'{"resultType":"' + result.kind.encode() + b'","result":' + body + b"}"
