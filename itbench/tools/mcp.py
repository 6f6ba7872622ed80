"""The tools of a trial for MCP clients: JSON-RPC over streamable HTTP, stateless, without an SDK.

`itbench.tools.http` serves it at `/mcp`. Both eras of the protocol are answered: `initialize` with its handshake, and
`server/discover` of the stateless one. A tool that fails is a result with `isError`, not a protocol error.
"""

from collections.abc import Mapping
from typing import Any

import itbench
from itbench.core.documents.task import ToolSpec
from itbench.tools.registry import Toolbox, ToolResult

HANDSHAKE_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
STATELESS_VERSION = "2026-07-28"
INSTRUCTIONS = "Tools for working on the estate of your task. Call submit once, when you are done."
_CAPABILITIES: dict[str, Any] = {"tools": {"listChanged": False}}
_PARSE, _REQUEST, _METHOD, _PARAMS = -32700, -32600, -32601, -32602


class _Refused(Exception):
    def __init__(self, code: int, message: str) -> None:
        self.code, self.message = code, message
        super().__init__(message)


def tool_data(spec: ToolSpec) -> dict[str, Any]:
    """A tool as `tools/list` shows it."""
    return {
        "name": spec.name,
        "description": spec.description,
        "inputSchema": spec.input_schema,
        "annotations": {"readOnlyHint": spec.read_only, "destructiveHint": spec.destructive, "openWorldHint": False},
    }


def call_data(result: ToolResult) -> dict[str, Any]:
    """A result as `tools/call` answers it; only objects may be structured content."""
    data: dict[str, Any] = {"content": [{"type": "text", "text": result.text}], "isError": not result.ok}
    if isinstance(result.structured, dict):
        data["structuredContent"] = result.structured
    return data


async def answer(message: Any, toolbox: Toolbox) -> Any:
    """Answer one message or a batch; None when nothing is to be answered (notifications)."""
    if isinstance(message, list):
        answers = [item for item in [await answer(one, toolbox) for one in message] if item is not None]
        return answers or None
    if (
        not isinstance(message, Mapping)
        or message.get("jsonrpc") != "2.0"
        or not isinstance(message.get("method"), str)
    ):
        return _error(None, _REQUEST, "not a JSON-RPC 2.0 request")
    if "id" not in message:
        return None
    params = message.get("params", {})
    try:
        if not isinstance(params, Mapping):
            raise _Refused(_PARAMS, "params is not an object")
        result = await _result(message["method"], params, toolbox)
        if _stateless(params):
            result["resultType"] = "complete"
    except _Refused as refused:
        return _error(message["id"], refused.code, refused.message)
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def _stateless(params: Mapping[str, Any]) -> bool:
    meta = params.get("_meta")
    return isinstance(meta, Mapping) and meta.get("io.modelcontextprotocol/protocolVersion") == STATELESS_VERSION


async def _result(method: str, params: Mapping[str, Any], toolbox: Toolbox) -> dict[str, Any]:
    server = {"name": "operations", "version": itbench.__version__}
    if method == "initialize":
        asked = params.get("protocolVersion")
        version = asked if asked in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[0]
        common = {"capabilities": _CAPABILITIES, "serverInfo": server, "instructions": INSTRUCTIONS}
        return {"protocolVersion": version, **common}
    if method == "server/discover":
        versions = [STATELESS_VERSION, *HANDSHAKE_VERSIONS]
        return {"supportedVersions": versions, "capabilities": _CAPABILITIES, "instructions": INSTRUCTIONS}
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": [tool_data(spec) for spec in toolbox.specs]}
    if method == "tools/call":
        return await _call(params, toolbox)
    raise _Refused(_METHOD, f"no method {method!r}")


async def _call(params: Mapping[str, Any], toolbox: Toolbox) -> dict[str, Any]:
    name, arguments = params.get("name"), params.get("arguments") or {}
    if not isinstance(name, str) or name not in toolbox.tools:
        raise _Refused(_PARAMS, f"unknown tool {name!r}")
    if not isinstance(arguments, Mapping):
        raise _Refused(_PARAMS, "arguments is not an object")
    return call_data(await toolbox.call(name, arguments))


def _error(identity: Any, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identity, "error": {"code": code, "message": message}}
