"""The byte channels of upgraded connections: websockets and hijacked sockets; used by `exec` and `forward`.

After an upgrade no HTTP answer may be written any more: whatever goes wrong has to become a status on the error channel.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from typing import Any, Protocol, cast

from aiohttp import WSMsgType, web
from aiohttp.abc import AbstractStreamWriter

from itbench.kube.api.spdy import Event, Spdy

STDIN, STDOUT, STDERR, ERROR, RESIZE = range(5)
_NAMES = {"stdin": STDIN, "stdout": STDOUT, "stderr": STDERR, "error": ERROR, "resize": RESIZE}
_CLOSED = 255
EXEC_PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io")


class Wire(Protocol):
    """One exec or attach as its client sees it: numbered channels, and a status at the end."""

    async def receive(self) -> tuple[int, bytes] | None:
        """The next (channel, data) from the client, empty data being the end of that channel; None when it is gone."""

    async def send(self, channel: int, data: bytes) -> None:
        """Output to the client."""

    async def finish(self, status: dict[str, Any]) -> None:
        """Send the final Status and end the connection."""


class Hijacked(web.StreamResponse):
    """Stands for an answer that was already given by hand: aiohttp must write nothing."""

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Nothing to prepare."""
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        """Nothing to end."""


class Pipe(asyncio.Protocol):
    """The raw socket of a request whose protocol was switched."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._transport: asyncio.Transport | None = None
        self._former: asyncio.BaseProtocol | None = None

    @classmethod
    def take_over(cls, request: web.BaseRequest, headers: Iterable[tuple[str, str]]) -> "Pipe":
        """Answer `101 Switching Protocols` with these headers and own the socket from now on."""
        transport = cast(asyncio.Transport, request.transport)  # uvloop's is none by class
        pipe = cls()
        pipe._transport, pipe._former = transport, request.protocol
        lines = ["HTTP/1.1 101 Switching Protocols", *(f"{key}: {value}" for key, value in headers)]
        transport.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        transport.set_protocol(pipe)
        transport.resume_reading()
        return pipe

    def data_received(self, data: bytes) -> None:
        """Bytes from the client."""
        self._queue.put_nowait(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone: aiohttp's own protocol has to forget the connection too."""
        self._queue.put_nowait(None)
        if self._former is not None:
            self._former.connection_lost(exc)

    async def recv(self) -> bytes | None:
        """The next bytes, None at the end."""
        return await self._queue.get()

    async def send(self, data: bytes) -> None:
        """Write bytes."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    async def close(self) -> None:
        """Close after what was written has been sent."""
        if self._transport is not None:
            self._transport.close()


class SocketBytes:
    """A byte stream in the binary messages of a websocket (SPDY tunnelled, as kubectl 1.31 and later forward ports)."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket

    async def recv(self) -> bytes | None:
        """The next message's bytes, None at the end."""
        message = await self._socket.receive()
        return message.data if message.type is WSMsgType.BINARY else None

    async def send(self, data: bytes) -> None:
        """One binary message."""
        if not self._socket.closed:
            await self._socket.send_bytes(data)

    async def close(self) -> None:
        """Close the websocket."""
        await self._socket.close()


class SpdyLink:
    """SPDY over a pipe or a websocket."""

    def __init__(self, below: Pipe | SocketBytes) -> None:
        self._below = below
        self.spdy = Spdy()

    async def events(self) -> AsyncIterator[Event]:
        """Everything the peer does, until it is gone. Streams it opens are accepted."""
        while not self.spdy.closed:
            data = await self._below.recv()
            if data is None:
                return
            try:
                found = list(self.spdy.feed(data))
            except ValueError:
                return  # what the peer speaks is no SPDY: as if it had gone
            for event in found:
                if event.kind == "open":
                    self.spdy.reply(event.stream)
                yield event
            await self.flush()

    async def flush(self) -> None:
        """Send what has collected."""
        if data := self.spdy.take():
            await self._below.send(data)

    async def close(self) -> None:
        """Flush and close."""
        await self.flush()
        await self._below.close()


class SocketWire:
    """Channels in a websocket: one byte of channel number before the data (`v4` and `v5.channel.k8s.io`)."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket

    async def receive(self) -> tuple[int, bytes] | None:
        """Next frame; in v5 a message (255, channel) ends that channel."""
        while True:
            message = await self._socket.receive()
            if message.type not in (WSMsgType.BINARY, WSMsgType.TEXT):
                return None
            data = message.data.encode() if isinstance(message.data, str) else message.data
            if len(data) == 2 and data[0] == _CLOSED:
                return data[1], b""
            if len(data) > 1:
                return data[0], data[1:]

    async def send(self, channel: int, data: bytes) -> None:
        """One message."""
        if not self._socket.closed:
            await self._socket.send_bytes(bytes([channel]) + data)

    async def finish(self, status: dict[str, Any]) -> None:
        """Status on channel 3, then close."""
        await self.send(ERROR, json.dumps(status, separators=(",", ":")).encode())
        await self._socket.close()


class SpdyWire:
    """Channels as SPDY streams that the client opens, named by their header `streamtype`."""

    def __init__(self, link: SpdyLink, expected: set[int], *, plain: bool = False) -> None:
        self._link = link
        self._missing = set(expected)
        self._plain = plain
        self._streams: dict[int, int] = {}
        self._events = link.events()

    async def ready(self) -> bool:
        """Wait until all expected streams are open; False when the client left before."""
        while self._missing:
            event = await anext(self._events, None)
            if event is None:
                return False
            channel = _NAMES.get(event.headers.get("streamtype", ""), -1)
            self._streams[channel] = event.stream
            self._missing.discard(channel)
            await self._link.flush()
        return True

    async def receive(self) -> tuple[int, bytes] | None:
        """Next data of any stream."""
        async for event in self._events:
            channel = next((c for c, stream in self._streams.items() if stream == event.stream), -1)
            if event.kind == "data" and (event.data or event.fin):
                return channel, event.data
        return None

    async def send(self, channel: int, data: bytes) -> None:
        """Data on the stream of a channel; nothing when the client did not ask for it."""
        if channel in self._streams:
            self._link.spdy.send(self._streams[channel], data)
            await self._link.flush()

    async def finish(self, status: dict[str, Any]) -> None:
        """Status on the error stream, FIN on all, then close."""
        body = json.dumps(status, separators=(",", ":")).encode()
        if self._plain:
            body = b"" if status["status"] == "Success" else status.get("message", "").encode()
        for channel, stream in self._streams.items():
            if channel in (STDOUT, STDERR, ERROR):
                self._link.spdy.send(stream, body if channel == ERROR else b"", fin=True)
        await self._link.flush()
        await self._linger()
        await self._link.close()

    async def _linger(self) -> None:
        """Let the client read to the end and close first, but not for ever."""
        try:
            async with asyncio.timeout(1.0):
                async for _ in self._events:
                    pass
        except TimeoutError:
            return
