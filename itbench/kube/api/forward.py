"""Port-forward in its three dialects: SPDY in a websocket (kubectl 1.31 on), SPDY (before), websocket channels (Python)."""

import asyncio
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from aiohttp import WSMsgType, web

from itbench.kube.api.exec import drain
from itbench.kube.api.wires import Hijacked, Pipe, SocketBytes, SpdyLink
from itbench.kube.client import ApiError
from itbench.kube.door import Pacer, Session
from itbench.kube.status import bad_request

TUNNEL = "SPDY/3.1+portforward.k8s.io"
CHANNELS = ("v4.channel.k8s.io", "v5.channel.k8s.io", "portforward.k8s.io")
Connect = Callable[[int], Session]


@dataclass(slots=True)
class _Connection:
    """One forwarded TCP connection: its pair of streams, and the session behind it once both are open."""

    port: int = 0
    streams: dict[str, int] = field(default_factory=dict)
    session: Session | None = None
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    early: list[bytes] = field(default_factory=list)


class Forwarder:
    """Pairs the streams of one SPDY connection by request id and moves their bytes."""

    def __init__(self, link: SpdyLink, connect: Connect, pacer: Pacer) -> None:
        self._link, self._connect, self._pacer = link, connect, pacer
        self._by_request: dict[str, _Connection] = {}
        self._by_stream: dict[int, _Connection] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until the client is gone."""
        try:
            async for event in self._link.events():
                if event.kind == "open":
                    self._open(event.stream, event.headers)
                elif event.kind == "data":
                    self._data(event.stream, event.data, fin=event.fin)
                elif event.kind == "reset":
                    self._end(event.stream)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _open(self, stream: int, headers: dict[str, str]) -> None:
        connection = self._by_request.setdefault(headers.get("requestid", ""), _Connection())
        connection.port = int(headers.get("port", 0))
        connection.streams[headers.get("streamtype", "")] = stream
        self._by_stream[stream] = connection
        if {"error", "data"} <= connection.streams.keys():
            task = asyncio.get_running_loop().create_task(self._serve(connection))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _data(self, stream: int, data: bytes, *, fin: bool) -> None:
        connection = self._by_stream.get(stream)
        if connection is None or stream != connection.streams.get("data"):
            return
        if connection.session is None:
            connection.early.append(data)
            return
        self._pacer.enter(outside=True, free=True)
        if data:
            connection.session.write(data)
        if fin:
            connection.session.close()
        connection.wake.set()

    def _end(self, stream: int) -> None:
        connection = self._by_stream.get(stream)
        if connection is not None and connection.session is not None:
            connection.session.close()
            connection.wake.set()

    async def _serve(self, connection: _Connection) -> None:
        data, error = connection.streams["data"], connection.streams["error"]

        async def send(_channel: int, body: bytes) -> None:
            self._link.spdy.send(data, body)
            await self._link.flush()

        problem = b""
        try:
            connection.session = session = self._connect(connection.port)
            for body in connection.early:
                session.write(body)
            await drain(session, self._pacer, send, connection.wake)
        except ApiError as failure:
            problem = str(failure).encode()
        self._link.spdy.send(error, problem, fin=True)
        self._link.spdy.send(data, fin=True)
        await self._link.flush()


async def serve_forward(
    request: web.BaseRequest, ports: list[int], connect: Connect, pacer: Pacer
) -> web.StreamResponse:
    """Upgrade the request in the dialect that it asks for and forward until the client leaves."""
    if request.headers.get("Upgrade", "").lower().startswith("spdy/3.1"):
        head = [("Connection", "Upgrade"), ("Upgrade", "SPDY/3.1"), ("X-Stream-Protocol-Version", "portforward.k8s.io")]
        link = SpdyLink(Pipe.take_over(request, head))
        await Forwarder(link, connect, pacer).run()
        await link.close()
        return Hijacked()
    socket = web.WebSocketResponse(protocols=(TUNNEL, *CHANNELS), compress=False, max_msg_size=0)
    if not socket.can_prepare(request).ok:
        raise bad_request("Upgrade request required")
    await socket.prepare(request)
    if socket.ws_protocol == TUNNEL:
        await Forwarder(SpdyLink(SocketBytes(socket)), connect, pacer).run()
    else:
        await _Channels(socket, ports, connect, pacer).run()
    if not socket.closed:
        await socket.close()
    return socket


class _Channels:
    """The websocket dialect: port i has channels 2i (data) and 2i + 1 (error), each begins with the port, little endian."""

    def __init__(self, socket: web.WebSocketResponse, ports: list[int], connect: Connect, pacer: Pacer) -> None:
        self._socket, self._ports, self._connect, self._pacer = socket, ports, connect, pacer
        self._sessions: dict[int, tuple[Session, asyncio.Event]] = {}

    async def run(self) -> None:
        """Until the client is gone or all sessions ended."""
        tasks = [asyncio.ensure_future(self._serve(i, port)) for i, port in enumerate(self._ports)]
        listener = asyncio.ensure_future(self._listen())
        try:
            await asyncio.wait([listener, asyncio.ensure_future(_all(tasks))], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (*tasks, listener):
                task.cancel()
            await asyncio.gather(*tasks, listener, return_exceptions=True)

    async def _listen(self) -> None:
        while (message := await self._socket.receive()).type is WSMsgType.BINARY:
            session, wake = self._sessions.get(message.data[0] // 2, (None, None))
            if session is not None and wake is not None and message.data[0] % 2 == 0:
                self._pacer.enter(outside=True, free=True)
                session.write(message.data[1:])
                wake.set()

    async def _serve(self, index: int, port: int) -> None:
        wake = asyncio.Event()
        failure = self._start(index, port, wake)
        for channel in (2 * index, 2 * index + 1):
            await self._socket.send_bytes(bytes([channel]) + struct.pack("<H", port))

        async def send(_channel: int, body: bytes) -> None:
            await self._socket.send_bytes(bytes([2 * index]) + body)

        if failure:
            await self._socket.send_bytes(bytes([2 * index + 1]) + failure.encode())
        else:
            await drain(self._sessions[index][0], self._pacer, send, wake)

    def _start(self, index: int, port: int, wake: asyncio.Event) -> str:
        """Connect before the client can send anything; the text of the failure, if it fails."""
        try:
            self._sessions[index] = self._connect(port), wake
        except ApiError as failure:
            return str(failure)
        return ""


async def _all(tasks: "Sequence[asyncio.Future[None]]") -> None:
    await asyncio.gather(*tasks, return_exceptions=True)
