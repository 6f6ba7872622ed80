"""What all telemetry servers have in common."""

from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from itbench.telemetry import door
from itbench.telemetry.door import application


@pytest.mark.parametrize("path", ["/", "/fault", "/nosuch"])
async def test_answers_do_not_name_the_program_that_serves_them(path: str) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def fault(_: web.Request) -> web.Response:
        raise web.HTTPBadRequest(text="no")

    app = application()
    app.router.add_get("/", answer)
    app.router.add_get("/fault", fault)
    async with TestClient(TestServer(app)) as client:
        reply = await client.get(path)
        assert reply.status == {"/": 200, "/fault": 400, "/nosuch": 404}[path]
        assert "Server" not in reply.headers


def test_every_telemetry_server_is_such_an_application() -> None:
    texts = {path.name: path.read_text() for path in Path(door.__file__).parent.rglob("*.py")}
    assert {name for name, text in texts.items() if "web.Application(" in text} == {"door.py"}
