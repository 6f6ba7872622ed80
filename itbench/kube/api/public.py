"""Everything that is no resource: version, health, discovery, OpenAPI; called by `server`. Costs no world time."""

import hashlib
from collections.abc import Callable

import orjson
from aiohttp import web

from itbench.kube import discovery
from itbench.kube.api import documents, remotes
from itbench.kube.api.answers import JSON, wants_pretty
from itbench.kube.api.door import Call
from itbench.kube.resources import server_version

_V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
_V2_ANSWER = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_HEALTH = ("/healthz", "/livez", "/readyz")


def version() -> dict[str, str]:
    """`GET /version`."""
    git = server_version()
    major, minor, _ = git.lstrip("v").split(".", 2)
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(minor) - 1),
        "gitVersion": git,
        "gitCommit": hashlib.sha1(git.encode(), usedforsecurity=False).hexdigest(),
        "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z",
        "goVersion": "go1.24.12",
        "compiler": "gc",
        "platform": "linux/amd64",
    }


def _json(call: Call, value: object, kind: str = JSON, *, pretty: bool = False) -> web.Response:
    option = orjson.OPT_INDENT_2 if pretty or wants_pretty(call.query, call.agent) else 0
    return _raw(call, orjson.dumps(value, option=option), kind)


def _raw(call: Call, body: bytes, kind: str = JSON) -> web.Response:
    """An answer that clients may cache by its ETag."""
    tag = f'"{hashlib.sha256(body).hexdigest()[:32].upper()}"'
    found = {"Content-Type": kind, "ETag": tag, "Vary": "Accept", "Cache-Control": "public"}
    if call.request.headers.get("If-None-Match") == tag:
        return web.Response(status=304, headers={"ETag": tag, "Vary": "Accept"})
    return web.Response(body=body, headers=found)


def not_found() -> web.Response:
    """What the real server says to paths that it does not know."""
    return web.Response(text="404 page not found\n", status=404)


def _groups(call: Call) -> web.Response:
    core = call.target.path.rstrip("/") == "/api"
    table = call.door.registry.table
    wanted = discovery.wanted_version(call.request.headers.get("Accept", ""))
    if wanted:
        body = discovery.aggregated(table, core=core, version=wanted, stale=remotes.groups(call.door.registry))
        return _json(call, body, discovery.AGGREGATED.format(version=wanted))
    if core:
        return _json(call, discovery.api_versions(call.request.headers.get("Host", "")))
    return _json(call, discovery.group_list(table, remotes.groups(call.door.registry)))


def _group(call: Call, name: str) -> web.Response:
    versions = [*dict(call.door.registry.table.groups()).get(name, ()), *remotes.groups(call.door.registry).get(name, ())]
    if not versions:
        return not_found()
    return _json(call, {"kind": "APIGroup", "apiVersion": "v1", **discovery.group(name, versions)})


def _resources(call: Call, group: str, version: str) -> web.Response:
    body = discovery.resource_list(call.door.registry.table, group, version)
    if body is None and remotes.is_remote(call.door.registry, group, version):
        return remotes.unavailable()
    return not_found() if body is None else _json(call, body)


def _openapi(call: Call, parts: list[str]) -> web.Response:
    table = call.door.registry.table
    accept = call.request.headers.get("Accept", "")
    if parts == ["openapi", "v2"]:
        if _V2_PROTOBUF in accept:
            return _raw(call, b"", _V2_ANSWER)
        return _raw(call, documents.v2(table))
    if parts == ["openapi", "v3"]:
        return _json(call, documents.index(table))
    body = documents.v3(table, "/".join(parts[2:]))
    return not_found() if body is None else _raw(call, body)


def _health(call: Call) -> web.Response:
    if "verbose" in call.query:
        name = call.target.path.strip("/").split("/")[0]
        return web.Response(text=f"[+]ping ok\n[+]log ok\n[+]etcd ok\n{name} check passed\n")
    return web.Response(text="ok")


def _root(call: Call) -> web.Response:
    table = call.door.registry.table
    paths = ["/api", "/api/v1", "/apis", *_HEALTH, "/openapi/v2", "/openapi/v3", "/version"]
    for group, versions in table.groups():
        if group:
            paths += [f"/apis/{group}", *(f"/apis/{group}/{v}" for v in versions)]
    return _json(call, {"paths": sorted(paths)}, pretty=True)


def serve(call: Call) -> web.Response:
    """GET of any path that is no resource."""
    path = call.target.path.rstrip("/")
    parts = path.strip("/").split("/")
    simple: dict[str, Callable[[Call], web.Response]] = {"": _root, "/api": _groups, "/apis": _groups}
    if path in simple:
        return simple[path](call)
    if path == "/version":
        return _json(call, version(), pretty=True)
    if f"/{parts[0]}" in _HEALTH:
        return _health(call)
    if parts[0] == "openapi":
        return _openapi(call, parts)
    if parts[0] == "api" and len(parts) == 2:
        return _resources(call, "", parts[1])
    if parts[0] == "apis":
        return _group(call, parts[1]) if len(parts) == 2 else _resources(call, parts[1], parts[2])
    return not_found()
