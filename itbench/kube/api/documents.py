"""The index of OpenAPI v3 and the one v2 document, both made of the v3 documents; called by `public`."""

import hashlib
from typing import Any

import orjson

from itbench.kube import openapi
from itbench.kube.custom import publish
from itbench.kube.resources import ResourceTable, server_version

Obj = dict[str, Any]


def index(table: ResourceTable) -> Obj:
    """`GET /openapi/v3`: a path and a content hash for each group-version."""
    paths: Obj = {}
    for title in openapi.group_versions(table):
        path = f"apis/{title}" if "/" in title else f"api/{title}"
        group, _, version = title.rpartition("/")
        digest = hashlib.sha256(f"{server_version()} {table.of(group, version)!r}".encode()).hexdigest().upper()
        paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
    return {"paths": paths}


def v3(table: ResourceTable, path: str) -> bytes | None:
    """The document of `api/v1`, `apis/apps/v1`, ...; None when nothing is served there."""
    root, _, title = path.partition("/")
    if root not in ("api", "apis") or (root == "api") == ("/" in title):
        return None
    found = openapi.document(title, table)
    return None if found is None else orjson.dumps(found)


def v2(table: ResourceTable) -> bytes:
    """A `swagger: 2.0` document with all paths and definitions."""
    definitions: Obj = {}
    paths: Obj = {}
    info: Obj = {}
    for title in openapi.group_versions(table):
        document = openapi.document(title, table)
        if document is not None:
            definitions |= document["components"]["schemas"]
            paths |= document["paths"]
            info = document["info"]
    for resource in table:
        if resource.model is not None:
            definitions |= publish.definitions(resource, v2=True)
    body = orjson.dumps({"swagger": "2.0", "info": info, "paths": paths, "definitions": definitions})
    return body.replace(b"#/components/schemas/", b"#/definitions/")
