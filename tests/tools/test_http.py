"""The doors for child processes: HTTP with a token, MCP in both eras, and the client for Python agents."""

import asyncio

import aiohttp
import pytest

from itbench.core.documents.task import Submission, Task
from itbench.core.errors import EnvironmentFault, UsageError
from itbench.tools.catalog import toolbox
from itbench.tools.http import ToolServer
from itbench.tools.remote import Connection, RemoteToolbox


@pytest.fixture
async def server(make_context):
    """A running server with its toolbox and task."""
    box = toolbox(make_context())

    def make_task(url, token):
        return Task(trial="t", domain="sre", page="broken", answers=("verdict",), tools=box.specs)

    server = ToolServer(box)
    await server.open(make_task)
    yield server
    await server.close()


async def send(server, method, path, token=None, **more):
    """One request with the right token unless another is given."""
    headers = {"Authorization": f"Bearer {server.token if token is None else token}", **more.pop("headers", {})}
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, server.url + path, headers=headers, **more) as got,
    ):
        return got.status, (await got.json() if got.content_length else None)


async def test_a_python_agent_sees_task_and_tools_and_submits(server):
    """The remote toolbox behaves as the one in process."""
    tools = RemoteToolbox(Connection(server.url, server.token))
    task = await asyncio.to_thread(tools.connection.task)
    assert task.page == "broken"
    specs = await asyncio.to_thread(lambda: tools.specs)
    assert [spec.name for spec in specs] == [spec.name for spec in server.toolbox.specs]
    assert (await tools.call("wait", {"seconds": 2})).structured == {"seconds": 2}
    assert not (await tools.call("nothing")).ok
    assert (await tools.submit(Submission(verdict="recovered"))).ok
    assert server.toolbox.context.submission == Submission(verdict="recovered")


@pytest.mark.parametrize("path", ["/task", "/tools", "/nothing"])
async def test_without_the_token_nothing_is_told(server, path):
    """Not even which paths there are."""
    assert (await send(server, "GET", path, token="wrong"))[0] == 401
    assert (await send(server, "GET", path, token=""))[0] == 401


async def test_a_browser_cannot_be_used_against_it(server):
    """Foreign host names and origins are refused although they carry the token."""
    assert (await send(server, "GET", "/task", headers={"Host": "evil.example"}))[0] == 403
    assert (await send(server, "GET", "/task", headers={"Origin": "http://evil.example"}))[0] == 403


async def test_bad_bodies_are_errors_of_the_caller(server):
    """Not JSON, not an object, too long."""
    assert (await send(server, "POST", "/tools/wait", data=b"{"))[0] == 400
    assert (await send(server, "POST", "/tools/wait", data=b"[1]"))[0] == 400
    assert (await send(server, "POST", "/submit", data=b" " * 300_000))[0] == 413
    assert server.toolbox.context.submission is None


async def test_the_client_explains_itself(server):
    """Outside a trial, with a wrong token, and when the server is gone."""
    with pytest.raises(UsageError, match="not inside a trial"):
        Connection.from_environment({})
    with pytest.raises(UsageError, match="401"):
        await asyncio.to_thread(Connection(server.url, "wrong").task)
    await server.close()
    with pytest.raises(EnvironmentFault, match="no answer"):
        await asyncio.to_thread(Connection(server.url, server.token).task)


async def rpc(server, method, params=None, identity=1):
    """One MCP request."""
    body = {"jsonrpc": "2.0", "id": identity, "method": method, "params": params or {}}
    return (await send(server, "POST", "/mcp", json=body))[1]


async def test_mcp_handshake_list_and_call(server):
    """Initialize, list, call; a failing tool is a result, an unknown one a protocol error."""
    hello = await rpc(server, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {}})
    assert hello["result"]["protocolVersion"] == "2025-06-18"
    assert (await send(server, "POST", "/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"}))[
        0
    ] == 202
    tools = (await rpc(server, "tools/list"))["result"]["tools"]
    assert {"wait", "submit"} <= {tool["name"] for tool in tools}
    assert all(tool["inputSchema"]["type"] == "object" for tool in tools)
    called = (await rpc(server, "tools/call", {"name": "wait", "arguments": {"seconds": 1}}))["result"]
    assert (called["isError"], called["content"][0]["text"]) == (False, "1 seconds have passed")
    assert (await rpc(server, "tools/call", {"name": "wait", "arguments": {}}))["result"]["isError"]
    assert (await rpc(server, "tools/call", {"name": "x"}))["error"]["code"] == -32602
    assert (await rpc(server, "no/such"))["error"]["code"] == -32601


async def test_mcp_without_a_handshake(server):
    """The stateless era: discover, then calls that carry the version and get a result type."""
    assert "2026-07-28" in (await rpc(server, "server/discover"))["result"]["supportedVersions"]
    meta = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
    assert (await rpc(server, "tools/list", meta))["result"]["resultType"] == "complete"
    assert (await send(server, "POST", "/mcp", json=[{"jsonrpc": "1.0"}]))[1][0]["error"]["code"] == -32600


@pytest.mark.parametrize("body", [b"", b"{}", b'{"x": 1}', b"[]", b"null"])
async def test_an_empty_answer_is_refused_and_the_agent_may_go_on(server, body):
    """Only an object with a key of a submission is an answer."""
    assert (await send(server, "POST", "/submit", data=body))[0] == 400
    assert server.toolbox.context.submission is None
