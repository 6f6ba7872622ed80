"""The loopback door through which a playbook asks the runner: judge the baseline, let time pass.

A playbook runs once for stage and inject; its gate and wait tasks block on these requests. Called by the environments.
"""

import hmac
import secrets
from collections.abc import Awaitable, Callable
from types import TracebackType

from aiohttp import web

from itbench.core.errors import ItbenchError

Gate = Callable[[], Awaitable[None]]
"""Returns when the baseline is green; raises when it is not."""
Advance = Callable[[float], Awaitable[None]]
"""Lets so many seconds of world time pass."""
Mark = Callable[[str], None]
"""Told what is about to be done: `noise.1`, `fault.1`, ..."""


class Control:
    """`async with Control(gate, advance, mark) as control:` serves on a free port of 127.0.0.1.

    Attributes:
        url, token: what the playbook needs.
        error: what the gate or the clock raised; it explains the failure better than Ansible can.
        passed: whether the gate let the playbook through.
    """

    def __init__(self, gate: Gate, advance: Advance, mark: Mark = lambda name: None) -> None:
        self._gate, self._advance, self._mark = gate, advance, mark
        self.token, self.url = secrets.token_urlsafe(24), ""
        self.error: BaseException | None = None
        self.passed = False
        self._runner: web.ServerRunner | None = None

    async def __aenter__(self) -> "Control":
        server = web.Server(self._serve, access_log=None, handler_cancellation=True)
        self._runner = web.ServerRunner(server, shutdown_timeout=0.5)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _serve(self, request: web.BaseRequest) -> web.Response:
        given = request.headers.get("Authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {self.token}".encode()):
            return web.Response(status=401, text="not for you")
        try:
            return web.Response(text=await self._answer(request))
        except ItbenchError as error:
            self.error = error
            return web.Response(status=409, text=str(error))
        except Exception as error:
            self.error = error
            return web.Response(status=500, text=f"{type(error).__name__}: {error}")

    async def _answer(self, request: web.BaseRequest) -> str:
        if request.path == "/gate":
            await self._gate()
            self.passed = True
            return "green"
        if request.path == "/wait":
            await self._advance(max(0.0, float(request.query["seconds"])))
            self._mark(request.query.get("mark", ""))
            return "done"
        raise LookupError(f"no such path: {request.path}")
