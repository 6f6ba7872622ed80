"""The short way of whole requests: bytes in, bytes out, without a task, a parser and a stream writer each; used by `server`.

A request takes it when it arrives in one piece on a connection that waits for one, its head is of the plain sort that clients of
Kubernetes send, and its verb answers at once. It passes the same router as all others, which see no difference; whatever is
unusual is left to aiohttp. The head of a request says who asks for what: clients that poll send the same one again and again.
"""

import asyncio
import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from aiohttp import HttpVersion11, hdrs, web
from aiohttp.helpers import rfc822_formatted_time
from aiohttp.http_parser import RawRequestMessage
from aiohttp.web_protocol import RequestHandler
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from itbench.kube.api import wire
from itbench.kube.api.answers import Reply
from itbench.kube.api.impersonation import wanted
from itbench.kube.api.paths import Target

Handle = Callable[[web.BaseRequest], Coroutine[Any, Any, web.StreamResponse]]
AtOnce = Callable[[wire.WireRequest], tuple[Target, str] | None]
_LINE = re.compile(rb"(GET|POST|PUT|PATCH|DELETE) (/[!\"$-~]*) HTTP/1\.1")
_FIELD = re.compile(rb"([A-Za-z0-9_-]+): *((?:[!-~](?:[ -~\t]*[!-~])?)?)")
_LEFT = frozenset({"transfer-encoding", "content-encoding", "upgrade", "expect", "te", "trailer", "sec-websocket-key"})
"""Fields whose requests are left to aiohttp."""
_LONGEST_HEAD = 8190
_HEADS = 1024
_SMALL = 65536
"""Bodies that are copied behind their head; larger ones are sent from where they are."""
_END = b"\r\n\r\n"


@dataclass(slots=True)
class Head:
    """The head of a request: what aiohttp makes of it, how long it is and how long its body; whether it impersonates nobody.

    `asks` is what it asks for; None when that may have to wait, unset while nobody has looked.
    """

    message: RawRequestMessage
    size: int
    length: int
    plain: bool
    looked: bool = False
    asks: tuple[Target, str] | None = None


def read_head(raw: bytes) -> Head | None:
    """A head without its empty line; None for one that is not of the plain sort."""
    if len(raw) > _LONGEST_HEAD:
        return None
    first, *rows = raw.split(b"\r\n")
    line, fields = _LINE.fullmatch(first), [_FIELD.fullmatch(row) for row in rows]
    if line is None:
        return None
    pairs = [(field[1], field[2]) for field in fields if field is not None]
    headers = CIMultiDict((key.decode(), value.decode()) for key, value in pairs)
    names = {key.lower() for key in headers}
    length = headers.get("Content-Length", "0")
    ends = headers.get("Connection", "keep-alive").lower() != "keep-alive"
    if ends or len(names) != len(rows) or names & _LEFT or not re.fullmatch("[0-9]{1,7}", length):
        return None
    if int(length) > wire.MAX_BODY_BYTES or "host" not in names:
        return None
    path = line[2].decode()
    before, _, query = path.partition("?")
    url = URL.build(path=before, query_string=query, encoded=True)
    proxy = CIMultiDictProxy(headers)
    method = line[1].decode()
    message = RawRequestMessage(method, path, HttpVersion11, proxy, tuple(pairs), False, None, False, False, url)
    return Head(message, len(raw) + len(_END), int(length), wanted(headers) is None)


class Heads:
    """The heads that were read lately."""

    def __init__(self) -> None:
        self._known: dict[bytes, Head | None] = {}

    def of(self, data: bytes) -> Head | None:
        """The head that some bytes begin with; None when it is not whole, or not plain."""
        end = data.find(_END, 0, _LONGEST_HEAD + len(_END))
        if end < 0:
            return None
        raw = data[:end]
        known = self._known
        if raw in known:
            return known[raw]
        if len(known) >= _HEADS:
            known.clear()
        head = known[raw] = read_head(raw)
        return head


class Connection(RequestHandler):
    """One connection: aiohttp's, unless a request can take the short way."""

    __slots__ = ("_owed", "_server")

    def __init__(self, server: "Doorway", loop: asyncio.AbstractEventLoop, **options: Any) -> None:
        super().__init__(server, loop=loop, **options)
        self._server = server
        self._owed = 0
        """Bytes of a body that aiohttp's parser still waits for; 0 between requests, -1 when we have lost count."""

    def data_received(self, data: bytes) -> None:
        """Bytes from the client."""
        if self._owed == 0 and data:  # aiohttp hands itself nothing when it goes on with what it has kept
            head = self._server.heads.of(data)
            if head is None:
                self._owed = -1
            else:
                more = len(data) - head.size - head.length
                if more == 0 and self._rests() and self._serve(head, data[head.size :]):
                    return
                self._owed = -more if more <= 0 else -1
        elif self._owed > 0:
            self._owed = max(self._owed - len(data), -1)
        super().data_received(data)

    def _rests(self) -> bool:
        """Whether the connection waits for a request, and its client reads what it is sent."""
        waiter = self._waiter
        idle = waiter is not None and not waiter.done() and not self._messages and not self._paused
        return idle and not (self._close or self._force_close or self._upgraded) and self._payload_parser is None

    def _serve(self, head: Head, body: bytes) -> bool:
        """Whether a request was answered."""
        server = self._server
        nothing: Any = None
        if head.looked and head.asks is None:
            return False
        request = wire.WireRequest(
            head.message, nothing, self, nothing, nothing, self._loop, client_max_size=wire.MAX_BODY_BYTES
        )
        if not head.looked:
            head.looked, head.asks = True, server.at_once(request)
        if head.asks is None or self.transport is None:
            return False
        request._read_bytes, request.plain, request.asks = body, head.plain, head.asks
        server.requests_count += 1
        self._request_count += 1
        self._next_keepalive_close_time = self._loop.time() + self._keepalive_timeout
        self._send(_outcome(server.handle(request)), request)
        return True

    def _send(self, answer: web.Response, request: wire.WireRequest) -> None:
        body, transport = answer.body, self.transport
        if transport is None:
            return
        assert isinstance(body, bytes), "answers of resources are bytes"
        head = encode(answer, request, len(body))
        if len(body) > _SMALL:
            transport.writelines((head, body))
        else:
            transport.write(head + body)


def _outcome(work: Coroutine[Any, Any, web.StreamResponse]) -> web.Response:
    """What a coroutine that does not wait returns."""
    try:
        work.send(None)
    except StopIteration as end:
        found = end.value
        assert type(found) is Reply or isinstance(found, web.Response), "verbs that answer at once answer whole"
        return found
    work.close()
    raise RuntimeError("a verb that answers at once has waited")


def encode(answer: web.Response, request: wire.WireRequest, size: int) -> bytes:
    """The bytes before a body of some size, with the headers that aiohttp and `WireRequest` give an answer."""
    lines = _lines(answer.status, answer.reason, tuple(answer.headers.items()))
    own = "".join([f"{key}: {value}\r\n" for key, value in request.own().items()])
    text = f"{lines}Content-Length: {size}\r\nDate: {rfc822_formatted_time()}\r\n{own}\r\n"
    return text.encode()


@lru_cache(256)
def _lines(status: int, reason: str, headers: tuple[tuple[str, str], ...]) -> str:
    """The first line of an answer and its own headers."""
    lines = [f"HTTP/1.1 {status} {reason}", *(f"{key}: {value}" for key, value in headers)]
    if hdrs.CACHE_CONTROL not in dict(headers):
        lines.append(f"{hdrs.CACHE_CONTROL}: no-cache, private")
    if any("\r" in line or "\n" in line for line in lines):
        raise ValueError(f"line break in a header: {lines!r}")
    return "\r\n".join(lines) + "\r\n"


class Doorway(web.Server):
    """aiohttp's server with our connections.

    Args:
        handle: the router.
        at_once: which requests it answers without waiting.
    """

    def __init__(self, handle: Handle, at_once: AtOnce, **options: Any) -> None:
        super().__init__(handle, **options)
        self.handle, self.at_once, self.heads = handle, at_once, Heads()

    def __call__(self) -> Connection:
        """The protocol of one more connection."""
        return Connection(self, self._loop, **self._kwargs)
