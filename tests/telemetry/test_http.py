"""The HTTP API of Prometheus: shapes, errors, and times of the client's calendar."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from itbench.core.clock import from_unix, unix
from itbench.telemetry.http import prometheus_app
from itbench.telemetry.http_state import show_exponent
from itbench.telemetry.metrics import MetricStore
from itbench.telemetry.rules import RuleEngine, parse_groups

AHEAD_S = 1e7
"""How far the client's calendar is ahead of the world's in the shifted tests."""

RULES = {
    "groups": [
        {
            "name": "shop",
            "interval": "30s",
            "rules": [
                {"record": "job:up:sum", "expr": "sum by (job) (up)", "labels": {"team": "x"}},
                {
                    "alert": "TargetsMissing",
                    "expr": "up == 0",
                    "for": "1m",
                    "labels": {"severity": "warning"},
                    "annotations": {"summary": "{{ $labels.job }} is at {{ $value }}"},
                },
            ],
        }
    ]
}


class Clock:
    """A pacer that stands, with a calendar of its own."""

    def __init__(self, at: float, ahead: float = 0.0) -> None:
        self.at, self.ahead = at, ahead
        self.entered: list[tuple[bool, bool]] = []

    def enter(self, *, outside: bool, free: bool) -> None:
        self.entered.append((outside, free))

    def now(self) -> float:
        return self.at

    def to_wire(self, world: float) -> float:
        return unix(world) + self.ahead

    def from_wire(self, wire: float) -> float:
        return from_unix(wire - self.ahead)


Client = TestClient[web.Request, web.Application]


@pytest.fixture(scope="module")
def rules(sample_store: MetricStore) -> RuleEngine:
    engine = RuleEngine(parse_groups(RULES))
    store = MetricStore.load(sample_store.save())
    for now in (2550.0, 2580.0, 2610.0, 2640.0):
        engine.evaluate(now, store)
    return engine


@pytest.fixture
async def clients(sample_store: MetricStore, rules: RuleEngine) -> AsyncIterator[Callable[[Clock], Any]]:
    opened: list[Client] = []

    async def client(clock: Clock) -> Client:
        app = prometheus_app(sample_store, rules, clock, alertmanager_url="http://alertmanager:9093")
        opened.append(TestClient(TestServer(app)))
        await opened[-1].start_server()
        return opened[-1]

    yield client
    for each in opened:
        await each.close()


async def get(client: Client, path: str, **params: Any) -> tuple[int, Any]:
    async with client.get(path, params=params) as answer:
        return answer.status, orjson.loads(await answer.read())


async def test_get_and_post_give_the_same_answer(clients: Any) -> None:
    client = await clients(Clock(4000.0))
    _, first = await get(client, "/api/v1/query", query="up", time=str(unix(4000.0)))
    async with client.post("/api/v1/query", data={"query": "up"}) as answer:
        second = orjson.loads(await answer.read())
    assert first == second
    assert first["data"]["result"][0] == {
        "metric": {"__name__": "up", "job": "shop", "instance": "shop"},
        "value": [unix(4000.0), "1"],
    }


async def test_a_client_in_another_calendar_sees_its_own_times_everywhere(clients: Any) -> None:
    here, there = await clients(Clock(4000.0)), await clients(Clock(4000.0, AHEAD_S))
    for query in ("up", "rate(http_requests_total[5m])", "time()", "timestamp(up)", f"up @ {unix(3000.0)}"):
        moved = query.replace(str(unix(3000.0)), str(unix(3000.0) + AHEAD_S))
        for path, extra in (("query", {"time": 4000.0}), ("query_range", {"start": 3000.0, "end": 4000.0})):
            step = {"step": "50"} if "start" in extra else {}
            _, a = await get(
                here, f"/api/v1/{path}", query=query, **step, **{k: str(unix(v)) for k, v in extra.items()}
            )
            _, b = await get(
                there, f"/api/v1/{path}", query=moved, **step, **{k: str(unix(v) + AHEAD_S) for k, v in extra.items()}
            )
            assert times(b) == [t + AHEAD_S for t in times(a)]
            by = AHEAD_S if "time" in query else 0.0
            assert numbers(b) == [v + by for v in numbers(a)]


def points(answer: Any) -> list[list[Any]]:
    data = answer["data"]
    if data["resultType"] == "scalar":
        return [data["result"]]
    return [point for each in data["result"] for point in (each.get("values") or [each["value"]])]


def times(answer: Any) -> list[float]:
    return [point[0] for point in points(answer)]


def numbers(answer: Any) -> list[float]:
    return [float(point[1]) for point in points(answer)]


async def test_values_that_are_points_in_time_move_with_the_calendar(rules: RuleEngine) -> None:
    import numpy as np

    store = MetricStore()
    names = ("kube_pod_created", "kube_pod_info", "reload_timestamp_seconds")
    block = store.block("ksm", [{"__name__": name} for name in names])
    block.append(100.0, np.array([unix(40.0), 1.0, 0.0]))
    server = TestServer(prometheus_app(store, rules, Clock(100.0, AHEAD_S)))
    async with TestClient(server) as client:
        queries = ("time() - kube_pod_created", "kube_pod_info", "reload_timestamp_seconds")
        answers = [(await get(client, "/api/v1/query", query=query))[1] for query in queries]
    assert [numbers(answer) for answer in answers] == [[60.0], [1.0], [0.0]]


FAULTS = [
    ("query", {"query": "sum("}, 400, "bad_data", 'invalid parameter "query": 1:5: parse error: unclosed left parenthesis'),
    (
        "query", {"query": "up", "time": "soon"}, 400, "bad_data",
        "invalid parameter \"time\": invalid time value for 'time': cannot parse \"soon\" to a valid timestamp",
    ),
    ("query_range", {"query": "up"}, 400, "bad_data", 'invalid parameter "start": cannot parse "" to a valid timestamp'),
    (
        "query_range", {"query": "up", "start": "1", "end": "2"}, 400, "bad_data",
        'invalid parameter "step": cannot parse "" to a valid duration',
    ),
    (
        "query_range", {"query": "up", "start": "2", "end": "1", "step": "1"}, 400, "bad_data",
        'invalid parameter "end": end timestamp must not be before start time',
    ),
    (
        "query_range", {"query": "up", "start": "1", "end": "2", "step": "0"}, 400, "bad_data",
        'invalid parameter "step": zero or negative query resolution step widths are not accepted. Try a positive integer',
    ),
    (
        "query_range", {"query": "up", "start": "1", "end": "11003", "step": "1"}, 400, "bad_data",
        "exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)",
    ),
    (
        "query_range", {"query": "up[1m]", "start": "1", "end": "2", "step": "1"}, 400, "bad_data",
        'invalid parameter "query": invalid expression type "range vector" for range query, must be Scalar or instant Vector',
    ),
    ("query", {"query": 'label_replace(up, "job", "x", "instance", ".*")', "time": str(unix(4000.0))}, 200, "", ""),
    ("query", {"query": 'topk(NaN, up)', "time": str(unix(4000.0))}, 422, "execution", "Parameter value is NaN"),
    ("series", {}, 400, "bad_data", "no match[] parameter provided"),
    ("rules", {"type": "x"}, 400, "bad_data", 'invalid parameter "type": not supported value "x"'),
]  # fmt: skip


@pytest.mark.parametrize(("path", "params", "status", "kind", "text"), FAULTS)
async def test_faults_have_the_status_type_and_text_of_prometheus(
    clients: Any, path: str, params: dict[str, str], status: int, kind: str, text: str
) -> None:
    code, answer = await get(await clients(Clock(4000.0)), f"/api/v1/{path}", **params)
    assert code == status
    if kind:
        assert answer == {"status": "error", "errorType": kind, "error": text}


@pytest.mark.real
@pytest.mark.parametrize(("path", "params", "status", "kind", "text"), FAULTS)
def test_the_real_prometheus_gives_the_same_faults(
    real_prometheus: Any, path: str, params: dict[str, str], status: int, kind: str, text: str
) -> None:
    answer = real_prometheus.fetch(f"/api/v1/{path}", params)
    assert (answer.get("errorType", ""), answer.get("error", "")) == (kind, text)


async def test_labels_values_and_series_come_from_the_interval(clients: Any) -> None:
    client = await clients(Clock(7200.0))
    _, names = await get(client, "/api/v1/labels", **{"match[]": "up"})
    assert names["data"] == ["__name__", "instance", "job"]
    _, values = await get(client, "/api/v1/label/version/values")
    assert values["data"] == ["1", "2"]
    _, values = await get(client, "/api/v1/label/version/values", start=str(unix(4000.0)))
    assert values["data"] == ["2"]
    _, series = await get(client, "/api/v1/series", **{"match[]": 'up{job="db"}'})
    assert series["data"] == [{"__name__": "up", "instance": "db", "job": "db"}]


async def test_rules_and_alerts_show_what_fires(clients: Any) -> None:
    client = await clients(Clock(2640.0))
    _, answer = await get(client, "/api/v1/alerts")
    shown = {(each["labels"]["job"], each["state"]) for each in answer["data"]["alerts"]}
    assert shown == {("db", "firing"), ("cache", "pending")}
    (db,) = (each for each in answer["data"]["alerts"] if each["labels"]["job"] == "db")
    assert db["annotations"] == {"summary": "db is at 0"}
    assert (db["activeAt"], db["value"]) == ("2026-01-12T08:42:30.000Z", "0e+00")
    _, answer = await get(client, "/api/v1/rules", type="alert")
    (group,) = answer["data"]["groups"]
    (rule,) = group["rules"]
    assert (rule["state"], rule["duration"], rule["health"], len(rule["alerts"])) == ("firing", 60, "ok", 2)


async def test_targets_follow_the_up_series(clients: Any) -> None:
    _, answer = await get(await clients(Clock(3000.0)), "/api/v1/targets")
    shown = {each["labels"]["job"]: each["health"] for each in answer["data"]["activeTargets"]}
    assert shown == {"shop": "up", "db": "down", "cache": "down"}
    assert answer["data"]["activeTargets"][0]["lastScrape"] == "2026-01-12T08:50:00.000Z"


async def test_every_request_lets_the_world_catch_up_first(clients: Any) -> None:
    clock = Clock(3000.0)
    client = await clients(clock)
    await get(client, "/api/v1/query", query="up")
    await get(client, "/api/v1/status/buildinfo")
    assert clock.entered == [(True, False), (True, True)]


async def test_health_pages_and_unknown_paths(clients: Any) -> None:
    client = await clients(Clock(3000.0))
    async with client.get("/-/healthy") as answer:
        assert await answer.text() == "Prometheus Server is Healthy.\n"
    async with client.get("/graph") as answer:
        assert answer.status == 404


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1e+00"),
        (0.25, "2.5e-01"),
        (0.0, "0e+00"),
        (123456.0, "1.23456e+05"),
        (float("inf"), "+Inf"),
        (100.0, "1e+02"),
        (-0.001, "-1e-03"),
    ],
)
def test_alert_values_are_printed_with_an_exponent(value: float, text: str) -> None:
    assert show_exponent(value) == text


@pytest.mark.parametrize(
    "query",
    [
        "max_over_time(sum(up)[100y:1s])",
        "max_over_time(vector(1)[100y:1s])",
        "sum_over_time(sum_over_time(vector(1)[10d:1s])[10d:1s])",
    ],
)
async def test_a_query_of_too_many_samples_is_refused_before_it_is_worked_out(clients: Any, query: str) -> None:
    client = await clients(Clock(4000.0))
    status, answer = await get(client, "/api/v1/query", query=query)
    assert status == 422 and answer["errorType"] == "execution"
    assert answer["error"] == "query processing would load too many samples into memory in query execution"


@pytest.mark.parametrize("step", ["nan", "inf", "-inf", "1e300", "-1", "0"])
async def test_a_step_that_is_no_step_is_a_bad_request(clients: Any, step: str) -> None:
    client = await clients(Clock(4000.0))
    moments = {"start": str(unix(3000.0)), "end": str(unix(4000.0))}
    status, answer = await get(client, "/api/v1/query_range", query="up", step=step, **moments)
    assert status == 400 and answer["error"].startswith('invalid parameter "step": ')
