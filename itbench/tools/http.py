"""The tools of a trial over HTTP on the loopback, for agents in child processes, with a bearer token of the trial.

    GET /task            the task as JSON
    GET /tools           the tools: name, description, input_schema, read_only, destructive
    POST /tools/{name}   arguments as JSON -> {"ok", "text", "structured"}
    POST /submit         a submission as JSON -> the same
    POST /mcp            the same tools for MCP clients (`itbench.tools.mcp`)

`itbench.tools.remote` is the client; the adapters in `itbench.agents` start the server.
"""

import hmac
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from aiohttp import web

from itbench.core.documents.task import MAX_SUBMISSION_BYTES, Task
from itbench.tools import mcp
from itbench.tools.registry import Toolbox, ToolResult

_ANSWERS = {"schema", "diagnosis", "chain", "verdict", "answer", "notes"}
"""Keys of a submission, one of which it must have."""
MAX_BODY = 4 * 1024 * 1024
_TASK: web.AppKey[Task] = web.AppKey("task", Task)
_TOOLBOX: web.AppKey[Toolbox] = web.AppKey("toolbox", Toolbox)
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def _json(data: Any, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(data), status=status, content_type="application/json")


def result_data(result: ToolResult) -> dict[str, Any]:
    """A result as JSON data."""
    return {"ok": result.ok, "text": result.text, "structured": result.structured}


def _guard(token: str) -> Any:
    @web.middleware
    async def guard(request: web.Request, handler: _Handler) -> web.StreamResponse:
        given = request.headers.get("Authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
            return _json(
                {"error": "the token is missing or wrong; expected Authorization: Bearer $ITBENCH_TOOLS_TOKEN"}, 401
            )
        host = request.host.rsplit(":", 1)[0]
        if host not in ("127.0.0.1", "localhost", "[::1]") or "Origin" in request.headers:
            return _json({"error": f"host {request.host!r} is not this server"}, 403)
        return await handler(request)

    return guard


async def _body(request: web.Request) -> Any:
    raw = await request.read()
    try:
        return orjson.loads(raw) if raw else {}
    except orjson.JSONDecodeError as error:
        problem = orjson.dumps({"error": f"body is not JSON: {error}"}).decode()
        raise web.HTTPBadRequest(text=problem, content_type="application/json") from error


async def _get_task(request: web.Request) -> web.Response:
    return _json(request.app[_TASK].model_dump(mode="json", by_alias=True))


async def _get_tools(request: web.Request) -> web.Response:
    return _json([spec.model_dump(mode="json") for spec in request.app[_TOOLBOX].specs])


async def _call(request: web.Request) -> web.Response:
    arguments = await _body(request)
    if not isinstance(arguments, dict):
        return _json({"error": "arguments are not an object"}, 400)
    return _json(result_data(await request.app[_TOOLBOX].call(request.match_info["name"], arguments)))


async def _submit(request: web.Request) -> web.Response:
    raw = await request.read()
    if len(raw) > MAX_SUBMISSION_BYTES:
        return _json({"error": f"submission longer than {MAX_SUBMISSION_BYTES} bytes"}, 413)
    submission = await _body(request)
    if not isinstance(submission, dict):
        return _json({"error": "submission is not an object"}, 400)
    if not submission.keys() & _ANSWERS:
        return _json({"error": f"submission is empty; expected at least one of {', '.join(sorted(_ANSWERS))}"}, 400)
    return _json(result_data(await request.app[_TOOLBOX].call("submit", submission)))


async def _mcp(request: web.Request) -> web.Response:
    answer = await mcp.answer(await _body(request), request.app[_TOOLBOX])
    return web.Response(status=202) if answer is None else _json(answer)


def app(task: Task, toolbox: Toolbox, token: str) -> web.Application:
    """The application; every request needs the token."""
    application = web.Application(middlewares=[_guard(token)], client_max_size=MAX_BODY)
    application[_TASK], application[_TOOLBOX] = task, toolbox
    application.add_routes(
        [
            web.get("/task", _get_task),
            web.get("/tools", _get_tools),
            web.post("/tools/{name}", _call),
            web.post("/submit", _submit),
            web.post("/mcp", _mcp),
        ]
    )
    return application


class ToolServer:
    """A running server. `url`, `token`, `port`; `close()` ends it."""

    def __init__(self, toolbox: Toolbox, token: str = "") -> None:
        self.toolbox = toolbox
        self.token = token or secrets.token_urlsafe(24)
        self.port = 0
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """Base address."""
        return f"http://127.0.0.1:{self.port}"

    async def open(self, make_task: Callable[[str, str], Task], port: int = 0) -> Task:
        """Listen on the loopback.

        Args:
            make_task: (url, token) -> the task as served, which names this server among its endpoints.
            port: 0 for any.

        Returns:
            The task as served.
        """
        import socket

        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        self.port = listener.getsockname()[1]
        task = make_task(self.url, self.token)
        self._runner = web.AppRunner(app(task, self.toolbox, self.token), access_log=None, shutdown_timeout=0.5)
        await self._runner.setup()
        await web.SockSite(self._runner, listener).start()
        return task

    async def close(self) -> None:
        """End all connections and stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
