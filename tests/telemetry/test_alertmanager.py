"""Alertmanager: silences are made, found, ended and remembered."""

from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from itbench.core import codec
from itbench.core.clock import from_unix, rfc3339, unix
from itbench.core.errors import UsageError
from itbench.core.ids import Ids
from itbench.telemetry.alertmanager import Silences, alertmanager_app, parse_filter
from itbench.telemetry.metrics import MetricStore
from itbench.telemetry.rules import RuleEngine, parse_groups

Client = TestClient[web.Request, web.Application]


class Clock:
    at = 60.0

    def enter(self, *, outside: bool, free: bool) -> None: ...

    def now(self) -> float:
        return self.at

    def to_wire(self, world: float) -> float:
        return unix(world)

    def from_wire(self, wire: float) -> float:
        return from_unix(wire)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def silences() -> Silences:
    return Silences(Ids(0))


@pytest.fixture
async def client(clock: Clock, silences: Silences) -> AsyncIterator[Client]:
    store = MetricStore()
    store.block("a", [{"__name__": "up", "job": job} for job in ("db", "shop")]).append(30.0, np.zeros(2))
    rules = RuleEngine(parse_groups({"groups": [{"name": "g", "rules": [{"alert": "Down", "expr": "up == 0"}]}]}))
    rules.evaluate(30.0, store)
    async with TestClient(TestServer(alertmanager_app(rules, silences, clock))) as opened:
        yield opened


def silence(value: str = "db", start: float = 0.0, end: float = 600.0, **more: Any) -> dict[str, Any]:
    matcher = {"name": "job", "value": value, "isRegex": False, "isEqual": True}
    times = {"startsAt": rfc3339(start), "endsAt": rfc3339(end)}
    return {"matchers": [matcher], **times, "createdBy": "agent", "comment": "quiet", **more}


async def jobs(client: Client, **params: str) -> list[tuple[str, str]]:
    async with client.get("/api/v2/alerts", params=params) as answer:
        return sorted((each["labels"]["job"], each["status"]["state"]) for each in orjson.loads(await answer.read()))


async def test_a_silence_suppresses_the_alerts_that_match_until_it_is_ended(client: Client, silences: Silences) -> None:
    assert await jobs(client) == [("db", "active"), ("shop", "active")]
    async with client.post("/api/v2/silences", json=silence()) as answer:
        ident = orjson.loads(await answer.read())["silenceID"]
    assert await jobs(client) == [("db", "suppressed"), ("shop", "active")]
    assert await jobs(client, silenced="false") == [("shop", "active")]
    assert await jobs(client, filter='job="db"') == [("db", "suppressed")]
    async with client.delete(f"/api/v2/silence/{ident}") as answer:
        assert answer.status == 200
    assert await jobs(client) == [("db", "active"), ("shop", "active")]
    (kept,) = silences.all()
    assert (kept.created_by, kept.matchers, kept.deleted_at) == ("agent", [("job", "=", "db")], 60.0)


async def test_a_silence_ends_by_itself(client: Client, clock: Clock) -> None:
    async with client.post("/api/v2/silences", json=silence(end=100.0)):
        pass
    clock.at = 100.0
    assert await jobs(client) == [("db", "active"), ("shop", "active")]
    async with client.get("/api/v2/silences") as answer:
        (shown,) = orjson.loads(await answer.read())
    assert shown["status"] == {"state": "expired"}
    assert shown["endsAt"] == "2026-01-12T08:01:40.000Z"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (silence(matchers=[]), 400),
        (silence(start=20.0, end=10.0), 400),
        (silence(value=""), 400),
        (silence(end=50.0), 400),
        (silence(id="none"), 404),
        (silence(startsAt="soon"), 422),
        ([], 400),
    ],
)
async def test_what_is_no_silence_is_refused(client: Client, silences: Silences, body: Any, status: int) -> None:
    async with client.post("/api/v2/silences", json=body) as answer:
        assert answer.status == status
    assert silences.all() == []


async def test_unknown_silences_are_not_found(client: Client) -> None:
    async with client.delete("/api/v2/silence/x") as answer:
        assert answer.status == 404
    async with client.get("/api/v2/silence/x") as answer:
        assert answer.status == 404


async def test_status_receivers_and_groups_answer(client: Client) -> None:
    async with client.get("/api/v2/status") as answer:
        assert orjson.loads(await answer.read())["cluster"]["status"] == "ready"
    async with client.get("/api/v2/alerts/groups") as answer:
        (group,) = orjson.loads(await answer.read())
    assert (group["labels"], len(group["alerts"])) == ({"alertname": "Down"}, 2)


def test_silences_survive_saving_and_get_the_same_ids_from_the_same_seed(silences: Silences) -> None:
    ident = silences.set(silence(), 0.0, 600.0, 60.0)
    assert ident == Silences(Ids(0)).set(silence(), 0.0, 600.0, 60.0)
    again = Silences(Ids(0))
    again.restore(codec.loads(codec.dumps(silences.save())))
    assert again.all() == silences.all()
    assert again.silencing({"job": "db"}, 60.0) == [ident]
    assert again.set(silence(), 0.0, 600.0, 60.0) != ident
    assert len(again.all()) == 2


def test_filters_are_parsed_with_and_without_quotes() -> None:
    assert [(m.name, m.op, m.value) for m in map(parse_filter, ('a="b"', "a!=b", "a=~b.*", 'a!~"b"'))] == [
        ("a", "=", "b"), ("a", "!=", "b"), ("a", "=~", "b.*"), ("a", "!~", "b"),
    ]  # fmt: skip


def test_a_silence_with_a_broken_expression_is_refused(silences: Silences) -> None:
    with pytest.raises(UsageError, match="regexp"):
        silences.set({"matchers": [{"name": "a", "value": "(", "isRegex": True}]}, 0.0, 10.0, 0.0)
