"""The API server as programs in the world reach it: one request, answered at once.

Made by `server`, asked through `Services.api`. A program in a container runs within a step of the world, so its request may
neither let time pass nor wait: watches, followed logs and connections are not answered (they time out). Everything else is
served as to clients outside: who asks is authenticated, authorized and audited.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from math import inf
from typing import Any

from aiohttp import HttpVersion11, web
from aiohttp.http_parser import RawRequestMessage
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from itbench.kube.api import wire
from itbench.kube.api.paths import CONNECT, parse
from itbench.kube.door import Pacer, Request, Response

_HOST = "kubernetes.default.svc"


class Resting:
    """A pacer that lets no time pass: the world is in the middle of a step."""

    def __init__(self, pacer: Pacer) -> None:
        self._pacer = pacer
        self.now, self.to_wire, self.from_wire = pacer.now, pacer.to_wire, pacer.from_wire

    def enter(self, *, outside: bool, free: bool) -> None:
        """Nothing to catch up with."""

    async def wait(self, until: float = inf) -> None:
        """Never called: nothing waits here."""
        await asyncio.sleep(inf)

    def settle(self) -> None:
        """The step that is going on settles what was written."""


@dataclass(frozen=True, slots=True)
class _Peer:
    """What aiohttp asks of a connection."""

    ssl_context: None = None
    peername: None = None
    sockname: None = None
    transport: None = None


class _Body:
    """What aiohttp asks of a body that is there."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def readany(self) -> bytes:
        """All of it, then nothing."""
        found, self._body = self._body, b""
        return found

    def at_eof(self) -> bool:
        """Whether nothing is left."""
        return not self._body


class Inner:
    """Answers requests from within the world.

    Args:
        handle: the router of a door whose pacer is `Resting`.
        certificate: PEM that the server shows.
    """

    def __init__(self, handle: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]], certificate: bytes) -> None:
        self._handle, self._certificate = handle, certificate

    def __call__(self, request: Request) -> Response | None:
        """The answer; None for what would have to wait."""
        made = _made(request)
        if parse(made.path).subresource in CONNECT or any(made.query.get(n) for n in ("watch", "follow")):
            return None
        answer = _at_once(self._handle(made))
        if not isinstance(answer, web.Response):
            return None
        body = answer.body if isinstance(answer.body, bytes) else b""
        headers = {wire.AUDIT: made.audit_id, "Cache-Control": "no-cache, private", **answer.headers}
        return Response(answer.status, headers, b"" if request.method == "HEAD" else body, self._certificate)


def _made(request: Request) -> wire.WireRequest:
    headers = CIMultiDict({"Host": _HOST, **request.headers})
    raw = tuple((key.encode(), value.encode()) for key, value in headers.items())
    url = URL(request.path, encoded=True)
    message = RawRequestMessage(
        request.method,
        request.path,
        HttpVersion11,
        CIMultiDictProxy(headers),
        raw,
        False,
        None,
        False,
        False,
        url,
    )
    peer: Any = _Peer()
    body: Any = _Body(request.body)
    nothing: Any = None
    return wire.WireRequest(message, body, peer, nothing, nothing, nothing, client_max_size=wire.MAX_BODY_BYTES)


def _at_once(work: Awaitable[web.StreamResponse]) -> web.StreamResponse | None:
    """The outcome of a coroutine that does not wait; None for one that does, which is ended."""
    steps: Generator[Any, None, web.StreamResponse] = work.__await__()
    try:
        next(steps)
    except StopIteration as end:
        found: web.StreamResponse = end.value
        return found
    steps.close()
    return None
