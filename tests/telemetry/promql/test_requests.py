"""HTTP requests as Grafana makes them, and wrong ones, have the status and the body that the real Prometheus gave."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp.test_utils import TestClient, TestServer

from itbench.telemetry.http import prometheus_app
from itbench.telemetry.recorded import RecordedClock
from itbench.telemetry.rules import RuleEngine

_NAME = "promql_measure"
if _NAME not in sys.modules:
    _SPEC = importlib.util.spec_from_file_location(_NAME, Path(__file__).parent / "measure.py")
    assert _SPEC is not None and _SPEC.loader is not None
    sys.modules[_NAME] = importlib.util.module_from_spec(_SPEC)
    _SPEC.loader.exec_module(sys.modules[_NAME])
measure: Any = sys.modules[_NAME]


def _same(mine: Any, theirs: Any, path: str) -> bool:
    if isinstance(theirs, dict) and isinstance(theirs.get("data"), dict) and "resultType" in theirs["data"]:
        query = path.partition("query=")[2]
        return bool(isinstance(mine, dict)) and not measure.difference(mine, theirs, query)
    return bool(mine == theirs)


async def test_requests_are_answered_as_by_the_real_prometheus() -> None:
    store = measure.store()
    app = prometheus_app(store, RuleEngine(), RecordedClock(store.newest))
    lines = (Path(__file__).parent / "requests.jsonl").read_bytes().splitlines()
    recorded = {entry["path"]: entry["answer"] for entry in map(orjson.loads, lines)}
    assert list(recorded) == measure.requests()
    different = {}
    async with TestClient(TestServer(app)) as client:
        for path, (status, body) in recorded.items():
            answer = await client.get(measure.address(path))
            mine = measure.body_of(await answer.read())
            if answer.status != status or not _same(mine, body, path):
                different[path] = (answer.status, mine, status, body)
    assert different == {}


async def test_a_form_is_read_like_an_address() -> None:
    store = measure.store()
    app = prometheus_app(store, RuleEngine(), RecordedClock(store.newest))
    async with TestClient(TestServer(app)) as client:
        form = {"query": "up", "time": "1768206600"}
        posted = await (await client.post("/api/v1/query", data=form)).json()
        assert posted == await (await client.get("/api/v1/query", params=form)).json()
        assert len(posted["data"]["result"]) == 3


@pytest.mark.parametrize("path", ["/api/v1/status/config", "/api/v1/status/flags", "/api/v1/status/runtimeinfo"])
async def test_what_a_dashboard_asks_about_the_server_is_there(path: str) -> None:
    app = prometheus_app(measure.store(), RuleEngine(), RecordedClock(0.0))
    async with TestClient(TestServer(app)) as client:
        answer = await (await client.get(path)).json()
    assert answer["status"] == "success" and answer["data"]


async def test_counts_of_series_are_those_of_the_store() -> None:
    store = measure.store()
    app = prometheus_app(store, RuleEngine(), RecordedClock(store.newest))
    async with TestClient(TestServer(app)) as client:
        data = (await (await client.get("/api/v1/status/tsdb")).json())["data"]
    assert data["headStats"] == {
        "numSeries": 139, "numLabelPairs": 163, "chunkCount": 139, "minTime": 1768204800000, "maxTime": 1768208372500,
    }  # fmt: skip
    assert data["seriesCountByMetricName"][0] == {"name": "special_bucket", "value": 29}
