"""Query results as the JSON that Prometheus sends; called by the HTTP API and by agents' tools."""

import numpy as np
import orjson

from itbench.telemetry.labels import Labels
from itbench.telemetry.metrics import Floats
from itbench.telemetry.promql.values import Result, Series, format_float


def format_floats(values: Floats) -> list[str]:
    """As `format_float`, for many numbers."""
    texts = []
    for text, value in zip(map(repr, values.tolist()), values.tolist(), strict=True):
        if text.endswith(".0"):
            texts.append(text[:-2])
        elif "e" in text or "n" in text:
            texts.append(format_float(value))
        else:
            texts.append(text)
    return texts


def format_times(t: Floats, epoch_s: float) -> list[str]:
    """World seconds -> Unix seconds with at most three decimals."""
    ms = np.round((t + epoch_s) * 1000.0).astype(np.int64)
    whole, rest = np.divmod(ms, 1000)
    return [f"{a}.{b:03d}" if b else str(a) for a, b in zip(whole.tolist(), rest.tolist(), strict=True)]


def _metric(labels: Labels) -> bytes:
    return orjson.dumps(dict(labels))


def _points(series: Series, epoch_s: float) -> list[str]:
    times, values = format_times(series.t, epoch_s), format_floats(series.v)
    return [f'[{t},"{v}"]' for t, v in zip(times, values, strict=True)]


def encode_result(result: Result, epoch_s: float) -> bytes:
    """`{"resultType": ..., "result": ...}`.

    Args:
        result: of a query.
        epoch_s: Unix seconds that stand for world second 0 on the wire.
    """
    if result.kind == "string":
        (time,) = format_times(np.array([result.at]), epoch_s)
        body = b"[" + time.encode() + b"," + orjson.dumps(result.text) + b"]"
    elif result.kind == "scalar":
        body = _points(result.series[0], epoch_s)[0].encode()
    else:
        key = b"value" if result.kind == "vector" else b"values"
        items = []
        for series in result.series:
            points = ",".join(_points(series, epoch_s)).encode()
            if result.kind == "matrix":
                points = b"[" + points + b"]"
            items.append(b'{"metric":' + _metric(series.labels) + b',"' + key + b'":' + points + b"}")
        body = b"[" + b",".join(items) + b"]"
    return b'{"resultType":"' + result.kind.encode() + b'","result":' + body + b"}"
