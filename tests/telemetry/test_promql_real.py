"""PromQL answers equal those of the real Prometheus 3 on the same samples; recorded answers stand in where there is none."""

import math
import os
import re
from pathlib import Path
from typing import Any

import orjson
import pytest

from itbench.core.clock import unix
from itbench.telemetry.metrics import MetricStore
from itbench.telemetry.promql import QueryError, query_instant, query_range
from itbench.telemetry.wire import encode_result

HERE = Path(__file__).parent
QUERIES = [line for line in (HERE / "queries.txt").read_text().splitlines() if line and not line.startswith("#")]
GOLDEN = HERE / "golden" / "promql.json"
MOMENTS = (1811.25, 4000.0, 7203.0)
RANGES = ((600.0, 2400.0, 60.0), (3000.0, 7600.0, 230.0))
EPOCH_S = unix(0.0)


def ours(store: MetricStore, query: str, *args: float) -> dict[str, Any]:
    """Our answer in the shape of the HTTP API."""
    try:
        result = query_instant(store, query, *args) if len(args) == 1 else query_range(store, query, *args)
    except QueryError as error:
        return {"status": "error", "errorType": error.kind, "error": str(error)}
    return {"status": "success", "data": orjson.loads(encode_result(result, EPOCH_S))}


def close(left: str, right: str) -> bool:
    """Numbers that differ by no more than the order of a summation; the same digits where they are equal."""
    a, b = float(left), float(right)
    return left == right if a == b or math.isnan(a) else math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)


def same_points(left: list[Any], right: list[Any]) -> bool:
    return len(left) == len(right) and all(a[0] == b[0] and close(a[1], b[1]) for a, b in zip(left, right, strict=True))


def _sorted(result: list[Any], *, ordered: bool) -> list[Any]:
    return result if ordered else sorted(result, key=lambda each: sorted(each["metric"].items()))


def difference(mine: dict[str, Any], theirs: dict[str, Any], query: str) -> str:
    """What differs, empty if nothing does."""
    if mine["status"] != theirs["status"] or mine.get("errorType") != theirs.get("errorType"):
        return f"{mine} is not {theirs}"
    if mine["status"] == "error":
        return ""
    left, right = mine["data"], theirs["data"]
    if left["resultType"] != right["resultType"]:
        return f"{left['resultType']} is not {right['resultType']}"
    if left["resultType"] in ("scalar", "string"):
        equal = (
            left["result"] == right["result"]
            if left["resultType"] == "string"
            else same_points([left["result"]], [right["result"]])
        )
        return "" if equal else f"{left} is not {right}"
    ordered = query.startswith(("sort", "topk", "bottomk"))
    first, second = _sorted(left["result"], ordered=ordered), _sorted(right["result"], ordered=ordered)
    if [each["metric"] for each in first] != [each["metric"] for each in second]:
        return f"series {[each['metric'] for each in first]} are not {[each['metric'] for each in second]}"
    for a, b in zip(first, second, strict=True):
        points = (a["values"], b["values"]) if "values" in a else ([a["value"]], [b["value"]])
        if not same_points(*points):
            return f"{a['metric']}: {points[0][:4]} is not {points[1][:4]}"
    return ""


PLACES = re.compile(r"^(invalid parameter \"query\": )?(\d+:\d+: )?")
WORDED_OTHERWISE = ("rate(up[5x])", 'up{job=~"(?<=a)b"}', "sum by (le (up)", "up offset")
"""Refused like there, for the same reason, in other words."""


def test_refusals_have_the_words_of_prometheus(sample_store: MetricStore) -> None:
    different = {}
    for query, answers in orjson.loads(GOLDEN.read_bytes()).items():
        if answers[0]["status"] == "error" and query not in WORDED_OTHERWISE:
            mine = ours(sample_store, query, *cases(query)[1])["error"]
            if PLACES.sub("", mine) != PLACES.sub("", answers[0]["error"]):
                different[query] = (mine, answers[0]["error"])
    assert different == {}


def ask(server: Any, query: str, *args: float) -> dict[str, Any]:
    """The answer of the real one, without its notices."""
    times = [f"{unix(value):.3f}" for value in args[:2]]
    if len(args) == 1:
        answer = server.get("/api/v1/query", query=query, time=times[0])
    else:
        answer = server.get("/api/v1/query_range", query=query, start=times[0], end=times[1], step=str(args[2]))
    return {key: value for key, value in answer.items() if key not in ("infos", "warnings")}


def cases(query: str) -> list[tuple[float, ...]]:
    """The evaluations of one query."""
    return [*((moment,) for moment in MOMENTS), *RANGES]


@pytest.mark.real
@pytest.mark.parametrize("query", QUERIES)
def test_an_answer_equals_that_of_the_real_prometheus(query: str, request: pytest.FixtureRequest) -> None:
    store: MetricStore = request.getfixturevalue("sample_store")
    server = request.getfixturevalue("real_prometheus")
    for args in cases(query):
        found = difference(ours(store, query, *args), ask(server, query, *args), query)
        assert not found, f"{query} at {args}: {found}"


@pytest.mark.real
@pytest.mark.skipif(not os.environ.get("ITBENCH_RECORD"), reason="ITBENCH_RECORD is not set")
def test_record_the_answers_of_the_real_prometheus(real_prometheus: Any) -> None:
    answers = {
        query: [ask(real_prometheus, query, *args) for args in (cases(query)[1], cases(query)[4])] for query in QUERIES
    }
    GOLDEN.parent.mkdir(exist_ok=True)
    lines = [orjson.dumps(query).decode() + ": " + orjson.dumps(each).decode() for query, each in answers.items()]
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def test_answers_equal_those_recorded_from_the_real_prometheus(sample_store: MetricStore) -> None:
    recorded = orjson.loads(GOLDEN.read_bytes())
    assert len(recorded) >= 250
    for query, answers in recorded.items():
        for args, theirs in zip((cases(query)[1], cases(query)[4]), answers, strict=True):
            found = difference(ours(sample_store, query, *args), theirs, query)
            assert not found, f"{query} at {args}: {found}"
