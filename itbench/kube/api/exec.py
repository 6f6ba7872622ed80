"""exec and attach: moves bytes between a client's channels and a session behind the node door; called by `server`."""

import asyncio
from collections.abc import Awaitable, Callable
from math import isfinite
from typing import Any

from aiohttp import web

from itbench.kube.api.wires import (
    ERROR,
    EXEC_PROTOCOLS,
    RESIZE,
    STDERR,
    STDIN,
    STDOUT,
    Hijacked,
    Pipe,
    SocketWire,
    SpdyLink,
    SpdyWire,
    Wire,
)
from itbench.kube.client import ApiError
from itbench.kube.door import Pacer, Session
from itbench.kube.status import bad_request, internal

Obj = dict[str, Any]
OPENING_S = 0.02
"""Wall seconds between the upgrade and the first frame: kubectl 1.30 to 1.33 discard what comes before their streams are made."""
IDLE_S = 0.25
"""How often a session that only waits for input is looked at, in wall seconds: its container may have gone."""


def exit_status(code: int) -> Obj:
    """The Status that ends an exec, from its exit code."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


async def drain(
    session: Session, pacer: Pacer, send: Callable[[int, bytes], Awaitable[None]], wake: asyncio.Event
) -> int:
    """Forward a session's output until it ends; `wake` is set whenever input was written. Returns the exit code."""
    while True:
        wake.clear()
        for channel, data in session.read():
            if data:
                await send(channel, data)
        if session.exit_code is not None:
            return session.exit_code
        await _idle(session, pacer, wake)


async def _idle(session: Session, pacer: Pacer, wake: asyncio.Event) -> None:
    """Until there is input, or the second at which the session wants to be polled."""
    timer = pacer.wait(session.due) if isfinite(session.due) else asyncio.sleep(IDLE_S)
    tasks = [asyncio.ensure_future(wake.wait()), asyncio.ensure_future(timer)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


async def converse(wire: Wire, session: Session, pacer: Pacer) -> None:
    """Run one exec or attach to its end."""
    wake = asyncio.Event()

    async def listen() -> None:
        while (frame := await wire.receive()) is not None:
            channel, data = frame
            if channel == STDIN:
                pacer.enter(outside=True, free=True)
                if data:
                    session.write(data)
                else:
                    session.close()
                wake.set()
            elif channel == RESIZE:
                continue

    listener = asyncio.ensure_future(listen())
    drainer = asyncio.ensure_future(drain(session, pacer, wire.send, wake))
    try:
        await asyncio.wait([listener, drainer], return_when=asyncio.FIRST_COMPLETED)
        if not drainer.done():  # the client left
            session.close()
            return
        await _finish(wire, drainer, listener)
    finally:
        for task in (listener, drainer):
            task.cancel()


async def _finish(wire: Wire, drainer: "asyncio.Future[int]", listener: "asyncio.Future[None]") -> None:
    """Two readers of one wire would clash, so the listener ends before the status is sent."""
    listener.cancel()
    await asyncio.gather(listener, return_exceptions=True)
    error = drainer.exception()
    if error is None:
        await wire.finish(exit_status(drainer.result()))
    elif isinstance(error, ApiError):
        await wire.finish(error.status)
    else:
        await wire.finish({"metadata": {}, "status": "Failure", "message": str(error), "reason": "InternalError"})
        raise error


def wanted_channels(query: dict[str, str]) -> set[int]:
    """Channels that a client asked for by query parameters; raises a 400 when it asked for none."""
    truth = ("true", "1", "True")
    tty = query.get("tty") in truth
    channels = {c for name, c in (("stdin", STDIN), ("stdout", STDOUT), ("stderr", STDERR)) if query.get(name) in truth}
    if not channels:
        raise bad_request("you must specify at least 1 of stdin, stdout, stderr")
    if tty:
        channels = (channels - {STDERR}) | {RESIZE}
    return channels | {ERROR}


async def serve_session(
    request: web.BaseRequest, query: dict[str, str], session: Session, pacer: Pacer
) -> web.StreamResponse:
    """Upgrade the request (websocket or SPDY) and run the session on it."""
    if request.headers.get("Upgrade", "").lower().startswith("spdy/3.1"):
        return await _serve_spdy(request, query, session, pacer)
    socket = web.WebSocketResponse(protocols=EXEC_PROTOCOLS, compress=False, max_msg_size=0)
    if not socket.can_prepare(request).ok:
        raise bad_request("Upgrade request required")
    await socket.prepare(request)
    if socket.ws_protocol == EXEC_PROTOCOLS[0]:
        await asyncio.sleep(OPENING_S)
    await converse(SocketWire(socket), session, pacer)
    if not socket.closed:
        await socket.close()
    return socket


_PREFIX = "unable to upgrade connection: "


async def serve_failure(request: web.BaseRequest, error: ApiError) -> web.StreamResponse:
    """What a kubelet refused: told on the error channel of a websocket, as an HTTP answer before a SPDY upgrade.

    The real server upgrades websockets before it asks the kubelet; SPDY clients put the prefix there themselves.
    """
    text = str(error).removeprefix(_PREFIX)
    if request.headers.get("Upgrade", "").lower().startswith("spdy/3.1"):
        return web.Response(status=error.code, text=text)
    socket = web.WebSocketResponse(protocols=EXEC_PROTOCOLS, compress=False, max_msg_size=0)
    if not socket.can_prepare(request).ok:
        raise error
    await socket.prepare(request)
    await SocketWire(socket).finish(internal(_PREFIX + text).status)
    return socket


async def _serve_spdy(
    request: web.BaseRequest, query: dict[str, str], session: Session, pacer: Pacer
) -> web.StreamResponse:
    offered = [p.strip() for value in request.headers.getall("X-Stream-Protocol-Version", []) for p in value.split(",")]
    chosen = next((p for p in EXEC_PROTOCOLS[1:] if p in offered), "channel.k8s.io")
    head = [("Connection", "Upgrade"), ("Upgrade", "SPDY/3.1"), ("X-Stream-Protocol-Version", chosen)]
    link = SpdyLink(Pipe.take_over(request, head))
    wire = SpdyWire(link, wanted_channels(query), plain=not chosen.startswith("v4"))
    try:
        if await wire.ready():
            await converse(wire, session, pacer)
    finally:
        await link.close()
    return Hijacked()
