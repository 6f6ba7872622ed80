"""Everything that is no resource: version, health, discovery, OpenAPI; called by `server`. Costs no world time."""

import hashlib
from collections.abc import Callable

import orjson
from aiohttp import web

from itbench.kube import discovery
from itbench.kube.api import documents, health, remotes, wellknown
from itbench.kube.api.answers import JSON, wants_pretty
from itbench.kube.api.door import Call
from itbench.kube.api.wire import NOSNIFF
from itbench.kube.resources import server_version
from itbench.kube.status import Problem, failure

_V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
_V2_ANSWER = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


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


def _json(call: Call, value: object, *, pretty: bool = False) -> web.Response:
    return web.Response(body=_dump(call, value, pretty=pretty), content_type=JSON)


def _dump(call: Call, value: object, *, pretty: bool = False) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 if pretty or wants_pretty(call.query, call.agent) else 0)


def _raw(call: Call, body: bytes, kind: str = JSON, *, cached: bool = False) -> web.Response:
    """An answer with an ETag; only what is asked for by its hash, and aggregated discovery, may be kept by others."""
    tag = f'"{hashlib.sha512(body).hexdigest().upper()}"'
    found = {"Content-Type": kind, "ETag": tag, "Vary": "Accept"}
    if cached:
        found["Cache-Control"] = "public"
    elif "hash" in call.query:
        found["Cache-Control"] = "public, immutable"
    if call.request.headers.get("If-None-Match") == tag:
        return web.Response(status=304, headers={"ETag": tag, "Vary": "Accept"})
    return web.Response(body=body, headers=found)


def not_found() -> web.Response:
    """What the real server says to paths that it does not know."""
    return web.Response(text="404 page not found\n", status=404, headers=NOSNIFF)


def _groups(call: Call) -> web.Response:
    core = call.target.path.rstrip("/") == "/api"
    table = call.door.registry.table
    wanted = discovery.wanted_version(call.request.headers.get("Accept", ""))
    if wanted:
        body = discovery.aggregated(table, core=core, version=wanted, stale=remotes.groups(call.door.registry))
        return _raw(call, _dump(call, body), discovery.AGGREGATED.format(version=wanted), cached=True)
    if core:
        return _json(call, discovery.api_versions(call.request.headers.get("Host", "")))
    return _json(call, discovery.group_list(table, remotes.groups(call.door.registry)))


def _group(call: Call, name: str) -> web.Response:
    versions = [
        *dict(call.door.registry.table.groups()).get(name, ()),
        *remotes.groups(call.door.registry).get(name, ()),
    ]
    if not versions:
        return not_found()
    return _json(call, {"kind": "APIGroup", "apiVersion": "v1", **discovery.group(name, versions)})


def _resources(call: Call, group: str, version: str) -> web.Response:
    body = discovery.resource_list(call.door.registry.table, group, version)
    if body is None and remotes.is_remote(call.door.registry, group, version):
        return remotes.unavailable()
    if body is None and group in dict(call.door.registry.table.groups()):
        raise failure(404, "NotFound", "the server could not find the requested resource", Problem())
    return not_found() if body is None else _json(call, body)


def _openapi(call: Call, parts: list[str]) -> web.Response:
    table = call.door.registry.table
    accept = call.request.headers.get("Accept", "")
    if parts == ["openapi", "v2"]:
        if _V2_PROTOBUF in accept:
            return _raw(call, b"", _V2_ANSWER)
        return _raw(call, documents.v2(table))
    if parts == ["openapi", "v3"]:
        return web.Response(body=_dump(call, documents.index(table)), content_type="text/plain", charset="utf-8")
    body = documents.v3(table, "/".join(parts[2:]))
    return not_found() if body is None else _raw(call, body)


def _root(call: Call) -> web.Response:
    table = call.door.registry.table
    paths = [wellknown.CONFIGURATION, "/api", "/api/v1", "/apis", *health.PATHS, "/openapi/v2", "/openapi/v3"]
    paths += [wellknown.KEYS, "/version"]
    for group, versions in table.groups():
        if group:
            paths += [f"/apis/{group}", *(f"/apis/{group}/{v}" for v in versions)]
    return _json(call, {"paths": sorted(paths)}, pretty=True)


def serve(call: Call) -> web.Response:
    """GET of any path that is no resource."""
    path = call.target.path.rstrip("/")
    parts = path.strip("/").split("/")
    simple: dict[str, Callable[[Call], web.Response]] = {
        "": _root,
        "/api": _groups,
        "/apis": _groups,
        wellknown.CONFIGURATION: wellknown.configuration,
        wellknown.KEYS: wellknown.keys,
    }
    if path in simple:
        return simple[path](call)
    if path == "/version":
        return _json(call, version(), pretty=True)
    if f"/{parts[0]}" in health.PATHS:
        return health.serve(call)
    if parts[0] == "openapi":
        return _openapi(call, parts)
    if parts[0] == "api" and len(parts) == 2:
        return _resources(call, "", parts[1])
    if parts[0] == "apis":
        return _group(call, parts[1]) if len(parts) == 2 else _resources(call, parts[1], parts[2])
    return not_found()
