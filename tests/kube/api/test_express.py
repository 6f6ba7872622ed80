"""The short way of whole requests: answers are those of the long way, and what is unusual takes the long one."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from itbench.kube.api.express import Connection, Heads, read_head

MAPS = "/api/v1/namespaces/default/configmaps"
BODY = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"a":"b"}}'


def _request(site: Any, method: str, path: str, body: bytes = b"", *more: str) -> bytes:
    token = site.server.token("admin", ("system:masters",))
    rows = [
        f"{method} {path} HTTP/1.1",
        "Host: x",
        f"Authorization: Bearer {token}",
        f"Content-Length: {len(body)}",
        *more,
    ]
    return ("\r\n".join(rows) + "\r\n\r\n").encode() + body


class Peer:
    """A client, and the server's end of its connection, which is handed bytes in exactly the pieces wanted."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: Connection) -> None:
        self.reader, self.writer, self.connection = reader, writer, connection

    async def ask(self, *pieces: bytes, answers: int = 1) -> bytes:
        """What comes back; dates and audit ids left out."""
        while not self.connection._rests():
            await asyncio.sleep(0)
        for piece in pieces:
            self.connection.data_received(piece)
        found = b""
        for _ in range(answers):
            head = await self.reader.readuntil(b"\r\n\r\n")
            size = re.search(rb"(?i)content-length: (\d+)", head)
            found += head + (await self.reader.readexactly(int(size[1])) if size else b"")
        return re.sub(rb"(?:Date|Audit-Id): [^\r]*\r\n", b"", found)


@pytest.fixture
async def peer(site: Any) -> AsyncIterator[Peer]:
    """A connection to the site."""
    parts = urlsplit(site.server.url)
    context = ssl.create_default_context(cadata=site.server.certificate.decode())
    before = set(site.server._runner.server.connections)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, ssl=context)
    while not (made := set(site.server._runner.server.connections) - before):
        await asyncio.sleep(0)
    yield Peer(reader, writer, made.pop())
    writer.close()


def _headers(raw: bytes) -> tuple[bytes, list[bytes], bytes]:
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *rows = head.split(b"\r\n")
    return first, sorted(rows), body


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """One item for every request that was offered to the short way: whether it took it."""
    taken: list[bool] = []
    real = Connection._serve

    def serve(self: Connection, *args: Any) -> bool:
        taken.append(real(self, *args))
        return taken[-1]

    monkeypatch.setattr(Connection, "_serve", serve)
    return taken


@pytest.mark.parametrize(
    ("method", "path", "body", "more"),
    [
        ("GET", f"{MAPS}/x", b"", ()),
        ("GET", f"{MAPS}?limit=500", b"", ()),
        ("GET", f"{MAPS}?labelSelector=a%3Db", b"", ()),
        ("GET", f"{MAPS}/x", b"", ("Accept: application/yaml", "User-Agent: curl/8")),
        ("GET", f"{MAPS}/nosuch", b"", ()),
        ("GET", "/api/v1/endpoints", b"", ()),
        ("GET", "/api/v1/nosuch", b"", ()),
        ("GET", "/apis/nosuch.io/v1/things", b"", ()),
        ("POST", MAPS, b'{"metadata": 1}', ("Content-Type: application/json",)),
        ("PATCH", f"{MAPS}/x", b'{"data":{"a":"c"}}', ("Content-Type: application/merge-patch+json",)),
        ("PATCH", f"{MAPS}/x?dryRun=All", b'{"data":{"a":"d"}}', ("Content-Type: application/merge-patch+json",)),
        ("PUT", MAPS, b"{}", ()),
        ("GET", f"{MAPS}/x", b"", ("Impersonate-User: nobody",)),
    ],
)
async def test_a_request_is_answered_the_same_whichever_way_it_takes(
    site: Any, peer: Peer, short: list[bool], method: str, path: str, body: bytes, more: tuple[str, ...]
) -> None:
    """Status, headers and body; in two pieces it takes aiohttp's."""
    await site.http("POST", MAPS, BODY, headers={"Content-Type": "application/json"})
    raw = _request(site, method, path, body, *more)
    await peer.ask(raw)  # so that a write has nothing left to change
    del short[:]
    whole = await peer.ask(raw)
    assert short == [True]
    halves = await peer.ask(raw[:40], raw[40:])
    assert short == [True]
    assert _headers(whole) == _headers(halves)


async def test_watches_are_left_to_aiohttp(site: Any, peer: Peer, short: list[bool]) -> None:
    """One is offered, refused, and answered as a stream."""
    watch = await peer.ask(_request(site, "GET", f"{MAPS}?watch=1&timeoutSeconds=1"))
    assert watch.startswith(b"HTTP/1.1 200 OK")
    assert b"content-length" not in watch.lower()
    assert short == [False]


async def test_two_requests_in_one_piece_are_both_answered(site: Any, peer: Peer, short: list[bool]) -> None:
    """And the connection goes on, the long way."""
    get = _request(site, "GET", f"{MAPS}?limit=1")
    both = await peer.ask(get + get, answers=2)
    more = await peer.ask(get)
    assert (both + more).count(b"HTTP/1.1 200 OK") == 3
    assert short == []


async def test_a_body_that_comes_later_leaves_the_connection_usable(site: Any, peer: Peer, short: list[bool]) -> None:
    """The write takes the long way, the read after it the short one."""
    write = _request(site, "POST", MAPS, BODY, "Content-Type: application/json")
    split = len(write) - len(BODY)
    made = await peer.ask(write[:split], write[split:])
    assert made.startswith(b"HTTP/1.1 201 Created")
    assert short == []
    assert (await peer.ask(_request(site, "GET", f"{MAPS}/x"))).startswith(b"HTTP/1.1 200 OK")
    assert short == [True]


@pytest.mark.parametrize(
    "raw",
    [
        b"GET / HTTP/1.0\r\nHost: x",
        b"GET /\r\nHost: x",
        b"HEAD / HTTP/1.1\r\nHost: x",
        b"GET /a b HTTP/1.1\r\nHost: x",
        b"GET / HTTP/1.1",
        b"GET / HTTP/1.1\r\nHost: x\r\nHost: y",
        b"GET / HTTP/1.1\r\nHost : x",
        b"GET / HTTP/1.1\r\nHost: x\r\n folded",
        b"GET / HTTP/1.1\r\nHost: x\nX: y",
        b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked",
        b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close",
        b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket",
        b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +1",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: \xc3\xa4",
        b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: x",
    ],
)
def test_unusual_heads_are_not_read(raw: bytes) -> None:
    """Whatever could be read in two ways is read by aiohttp alone."""
    assert read_head(raw) is None
    assert Heads().of(raw + b"\r\n\r\n") is None
