"""Logs: LogQL finds the lines that a plain search finds, newest or oldest first, and counts them."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from hypothesis import given
from hypothesis import strategies as st

from itbench.core.clock import from_unix, unix
from itbench.telemetry.labels import Labels, freeze
from itbench.telemetry.logs import count_lines, find_lines, is_metric_query, parse_logs
from itbench.telemetry.loki import loki_app
from itbench.telemetry.promql import QueryError

AHEAD_S = 1e6


@dataclass
class Stream:
    labels: Labels
    kept: list[tuple[float, str]]
    asked: list[tuple[float, float]] = field(default_factory=list)

    def lines(self, start: float, end: float) -> Iterator[tuple[float, str]]:
        self.asked.append((start, end))
        return ((t, text) for t, text in self.kept if start <= t < end)


@dataclass
class Source:
    kept: list[Stream]

    def streams(self, start: float, end: float) -> list[Stream]:
        return self.kept


def source() -> Source:
    lines = [(float(t), f"level={'error' if t % 10 == 0 else 'info'} id={t}") for t in range(0, 600, 5)]
    return Source(
        [
            Stream(freeze({"app": "cart", "pod": "cart-1"}), lines),
            Stream(freeze({"app": "cart", "pod": "cart-2"}), [(t + 1.0, text.upper()) for t, text in lines]),
            Stream(freeze({"app": "pay", "pod": "pay-1"}), [(3.0, "tls: handshake")]),
        ]
    )


Direction = Literal["forward", "backward"]


@given(
    start=st.floats(-10, 610),
    width=st.floats(0, 700),
    limit=st.integers(1, 300),
    direction=st.sampled_from(["forward", "backward"]),
    query=st.sampled_from(
        [
            '{app="cart"}',
            '{app=~".+"} |= "error"',
            '{pod=~"cart-.*"} != "error" |~ "(?i)id=.5"',
            '{app="cart"} |= "ERROR" or "=7"',
        ]
    ),
)
def test_searching_piece_by_piece_finds_what_a_full_search_finds(
    start: float, width: float, limit: int, direction: Direction, query: str
) -> None:
    parsed, end = parse_logs(query), start + width
    every = [
        (t, stream.labels, text)
        for stream in source().kept
        if parsed.selects(stream.labels)
        for t, text in stream.kept
        if start <= t < end and parsed.accepts(text)
    ]
    every.sort(key=lambda each: -each[0] if direction == "backward" else each[0])
    found = find_lines(source(), parsed, start, end, limit, direction)
    assert [(line.t, line.labels, line.text) for line in found] == every[:limit]


def test_the_newest_lines_are_found_without_reading_the_whole_past() -> None:
    logs = source()
    find_lines(logs, parse_logs('{pod="cart-1"}'), -1e6, 600.0, 5, "backward")
    assert logs.kept[0].asked == [(540.0, 600.0)]
    assert logs.kept[2].asked == []


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("{", "parse error at line 1, col 2"),
        ("", "parse error at line 1, col 1: syntax error: unexpected $end"),
        ("{app=cart}", "expecting STRING"),
        ('{app=~".*"}', "at least one regexp or equality matcher"),
        ('{app="cart"} | json', "parsers and label filters are not served"),
        ('{app="cart"} |~ "("', "error parsing regexp"),
        ('{app=~"("}', "error parsing regexp"),
    ],
)
def test_broken_queries_say_where_and_why(query: str, text: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse_logs(query)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('sum(count_over_time({app="cart"} |= "error" [1m]))', {"": 5.0}),
        ('sum by (pod) (count_over_time({app="cart"}[1m]))', {"cart-1": 11.0, "cart-2": 12.0}),
        ('rate({pod="cart-1"}[1m])', {"cart-1": 11 / 60}),
        ('bytes_over_time({app="pay"}[10m])', {"pay-1": 14.0}),
        ('topk(1, count_over_time({app=~".+"}[10m] != "INFO"))', {"cart-1": 119.0}),
        ('count_over_time({app="cart", pod=~".*2"} |= "ERROR" [2m]) > 5', {"cart-2": 12.0}),
    ],
)
def test_lines_are_counted(query: str, expected: dict[str, float]) -> None:
    result = count_lines(source(), query, 600.0, 600.0, None)
    assert {dict(each.labels).get("pod", ""): float(each.v[-1]) for each in result.series} == expected


class Clock:
    def enter(self, *, outside: bool, free: bool) -> None: ...

    def now(self) -> float:
        return 600.0

    def to_wire(self, world: float) -> float:
        return unix(world) + AHEAD_S

    def from_wire(self, wire: float) -> float:
        return from_unix(wire - AHEAD_S)


@pytest.fixture
async def client() -> AsyncIterator[TestClient[web.Request, web.Application]]:
    async with TestClient(TestServer(loki_app(source(), Clock()))) as opened:
        yield opened


async def fetch(client: Any, path: str, **params: str) -> tuple[int, Any]:
    async with client.get(f"/loki/api/v1/{path}", params=params) as answer:
        body = await answer.read()
        return answer.status, orjson.loads(body) if answer.content_type == "application/json" else body.decode()


async def test_query_range_gives_streams_newest_first_in_the_clients_time(client: Any) -> None:
    _, answer = await fetch(client, "query_range", query='{app="cart"} |~ "(?i)error"', limit="3")
    assert answer["data"]["resultType"] == "streams"
    shown = [(each["stream"]["pod"], value) for each in answer["data"]["result"] for value in each["values"]]
    stamp = {t: f"{int(unix(t) + AHEAD_S)}000000000" for t in (591.0, 590.0, 581.0)}
    assert sorted(shown) == [
        ("cart-1", [stamp[590.0], "level=error id=590"]),
        ("cart-2", [stamp[581.0], "LEVEL=ERROR ID=580"]),
        ("cart-2", [stamp[591.0], "LEVEL=ERROR ID=590"]),
    ]


async def test_times_may_be_nanoseconds_seconds_or_dates(client: Any) -> None:
    texts = []
    for start in (str(int((unix(100.0) + AHEAD_S) * 1e9)), str(unix(100.0) + AHEAD_S), "2026-01-23T21:48:20Z"):
        _, answer = await fetch(
            client, "query_range", query='{pod="cart-1"}', start=start, limit="1", direction="forward"
        )
        texts.append(answer["data"]["result"][0]["values"][0][1])
    assert texts == ["level=error id=100"] * 3


async def test_labels_values_series_and_counts(client: Any) -> None:
    assert (await fetch(client, "labels"))[1]["data"] == ["app", "pod"]
    assert (await fetch(client, "label/app/values"))[1]["data"] == ["cart", "pay"]
    assert (await fetch(client, "series", **{"match[]": '{app="pay"}'}))[1]["data"] == [{"app": "pay", "pod": "pay-1"}]
    _, answer = await fetch(client, "query", query='sum(count_over_time({app="cart"}[1m]))')
    assert answer["data"]["result"] == [{"metric": {}, "value": [unix(600.0) + AHEAD_S, "23"]}]
    _, answer = await fetch(client, "query_range", query='rate({pod="cart-1"}[1m])', step="60s", since="5m")
    assert [float(v) for _, v in answer["data"]["result"][0]["values"]] == [0.2] * 5 + [11 / 60]


async def test_errors_are_plain_text_with_status_400(client: Any) -> None:
    assert (await fetch(client, "query_range", query="{"))[0] == 400
    status, text = await fetch(client, "query_range", query='{app="cart"}', limit="9999")
    assert (status, text) == (400, "max entries limit per query exceeded, limit > max_entries_limit (9999 > 5000)\n")
    assert (await fetch(client, "query", query='{app="cart"}'))[0] == 400
    assert (await fetch(client, "query_range", query='{app="cart"}', start="x"))[0] == 400


async def test_times_in_lines_are_those_of_their_stamps() -> None:
    """What an app wrote about the time of a line agrees with the time that Loki gives the line."""
    line = (60.0, '{"time":"2026-01-12T08:01:00.250000Z"}')
    source = Source([Stream(freeze({"app": "pay"}), [line])])
    async with TestClient(TestServer(loki_app(source, Clock()))) as client:
        _, answer = await fetch(client, "query_range", query='{app="pay"}')
    ((_, text),) = answer["data"]["result"][0]["values"]
    assert text == '{"time":"2026-01-23T21:47:40.250000Z"}'


@pytest.mark.parametrize(
    ("query", "counts"),
    [
        ('{app="a"} |= "rate("', False),
        ('  {app="a"} |~ "count_over_time({"', False),
        ('count_over_time({app="a"}[1m])', True),
        ('sum by (app) (rate({app="a"} |= "x"[5m]))', True),
    ],
)
def test_a_filter_that_speaks_of_a_function_makes_no_metric_query(query, counts):
    """What is shown and what is counted is told by how the query begins."""
    assert is_metric_query(query) == counts
