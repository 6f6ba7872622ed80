"""OpenAPI documents: `/openapi/v3` per group-version and one `/openapi/v2`; called by `itbench.kube.api`.

Schemas and descriptions are the recorded ones (`itbench.kube.data`); paths are synthesised from the resource table, as deep as
clients look: kind, action and query parameters of each operation.
"""

import hashlib
from functools import lru_cache
from typing import Any

import orjson

from itbench.kube.data import read
from itbench.kube.resources import Resource, ResourceTable

Obj = dict[str, Any]
_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_STRING = {"type": "string", "uniqueItems": True}
_ACTIONS = {
    "get": ("get", "get", ()),
    "update": ("put", "put", ("dryRun", "fieldManager", "fieldValidation")),
    "patch": ("patch", "patch", ("dryRun", "fieldManager", "fieldValidation", "force")),
    "delete": ("delete", "delete", ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")),
}
_COLLECTION = {
    "list": ("get", "list", ("continue", "fieldSelector", "labelSelector", "limit", "resourceVersion", "watch")),
    "create": ("post", "post", ("dryRun", "fieldManager", "fieldValidation")),
    "deletecollection": ("delete", "deletecollection", ("dryRun", "fieldSelector", "labelSelector", "limit")),
}
_TYPES: dict[str, Obj] = {
    "force": {"type": "boolean", "uniqueItems": True},
    "watch": {"type": "boolean", "uniqueItems": True},
    "orphanDependents": {"type": "boolean", "uniqueItems": True},
    "limit": {"type": "integer", "uniqueItems": True},
    "gracePeriodSeconds": {"type": "integer", "uniqueItems": True},
}
_PATCHES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)


@lru_cache(1)
def _kinds() -> dict[tuple[str, str, str], str]:
    """Definition name by group, version, kind."""
    found: dict[tuple[str, str, str], str] = {}
    for name, raw in read("schemas")["definitions"].items():
        for row in raw.get("x-kubernetes-group-version-kind", ()):
            found.setdefault((row["group"], row["version"], row["kind"]), name)
    return found


def path_of(group: str, version: str) -> str:
    """`api/v1` or `apis/apps/v1`."""
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _described(name: str, raw: Obj, texts: dict[str, Any]) -> Obj:
    """A schema with the descriptions that are kept apart from it."""
    own = texts.get(name, {})
    if not own:
        return raw
    properties = {
        key: {"description": own[key], **value} if key in own else value
        for key, value in raw.get("properties", {}).items()
    }
    described = {"description": own[""], **raw} if "" in own else dict(raw)
    return described | ({"properties": properties} if properties else {})


def _schema_ref(resource: Resource) -> Obj:
    name = _kinds().get((resource.group, resource.version, resource.kind))
    return {"$ref": f"#/components/schemas/{name}"} if name else {"type": "object"}


def _operation(resource: Resource, method: tuple[str, str, tuple[str, ...]], gvk: Obj) -> Obj:
    verb, action, names = method
    schema = _schema_ref(resource)
    parameters = [{"name": n, "in": "query", "schema": _TYPES.get(n, _STRING)} for n in names]
    operation: Obj = {
        "tags": [resource.api_version.replace("/", "_")],
        "operationId": f"{action}{resource.version}{gvk['kind']}{resource.plural}",
        "parameters": parameters,
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": schema}}}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": gvk,
    }
    if verb == "patch":
        patch = {"schema": {"$ref": f"#/components/schemas/{_META}.Patch"}}
        operation["requestBody"] = {"content": dict.fromkeys(_PATCHES, patch), "required": True}
    elif verb in ("post", "put"):
        operation["requestBody"] = {"content": {"*/*": {"schema": schema}}, "required": True}
    return operation


def _path_parameters(item: bool, namespaced: bool) -> list[Obj]:
    names = [*(["name"] if item else []), *(["namespace"] if namespaced else [])]
    return [{"name": n, "in": "path", "required": True, "schema": _STRING} for n in names]


def _methods(resource: Resource, verbs: tuple[str, ...], table: dict[str, Any], gvk: Obj) -> Obj:
    return {table[v][0]: _operation(resource, table[v], gvk) for v in verbs if v in table}


def _paths(resource: Resource) -> Obj:
    """Paths of one resource and its subresources."""
    root = f"/{path_of(resource.group, resource.version)}"
    scope = f"{root}/namespaces/{{namespace}}" if resource.namespaced else root
    own = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    parameters = _path_parameters(False, resource.namespaced)
    item = _path_parameters(True, resource.namespaced)
    paths: Obj = {
        f"{scope}/{resource.plural}": {
            **_methods(resource, resource.verbs, _COLLECTION, own),
            "parameters": parameters,
        },
        f"{scope}/{resource.plural}/{{name}}": {
            **_methods(resource, resource.verbs, _ACTIONS, own),
            "parameters": item,
        },
    }
    for sub in resource.subresources:
        kind = {"group": sub.group or resource.group, "version": sub.version or resource.version, "kind": sub.kind}
        methods = _methods(resource, sub.verbs, {**_ACTIONS, "create": _COLLECTION["create"]}, kind)
        paths[f"{scope}/{resource.plural}/{{name}}/{sub.name}"] = {**methods, "parameters": item}
    if resource.namespaced:
        listing = _methods(resource, ("list",), _COLLECTION, own) if "list" in resource.verbs else {}
        paths[f"{root}/{resource.plural}"] = {**listing, "parameters": []}
    return {path: rows for path, rows in paths.items() if rows.keys() - {"parameters"}}


def _custom_schemas(resources: list[Resource]) -> Obj:
    """Open schemas of kinds that no recorded definition describes."""
    found: Obj = {}
    meta = {"allOf": [{"$ref": f"#/components/schemas/{_META}.ObjectMeta"}]}
    for resource in resources:
        gvk = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        if tuple(gvk.values()) in _kinds():
            continue
        reverse = ".".join([*reversed(resource.group.split(".")), resource.version, resource.kind])
        open_object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        found[reverse] = {
            "type": "object",
            "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "metadata": meta,
                "spec": open_object,
                "status": open_object,
            },
            "x-kubernetes-preserve-unknown-fields": True,
            "x-kubernetes-group-version-kind": [gvk],
        }
    return found


def document(table: ResourceTable, path: str) -> bytes | None:
    """The v3 document of `api/v1`, `apis/apps/v1`, ...; None when nothing is served there."""
    parts = path.split("/")
    group, version = ("", parts[1]) if parts[0] == "api" else (parts[1], parts[2]) if len(parts) == 3 else ("-", "-")
    resources = table.of(group, version)
    names = read_tables()[0]["documents"].get(path)
    if not resources and names is None:
        return None
    schemas, texts = read_tables()
    definitions = schemas["definitions"]
    wanted = names if names is not None else _meta_names()
    body = {
        "openapi": "3.0.0",
        "info": schemas["info"],
        "paths": {key: value for resource in resources for key, value in _paths(resource).items()},
        "components": {
            "schemas": {name: _described(name, definitions[name], texts) for name in wanted if name in definitions}
            | _custom_schemas(resources)
        },
    }
    return orjson.dumps(body)


@lru_cache(1)
def read_tables() -> tuple[Obj, Obj]:
    """(schemas, descriptions), read once and only when somebody asks."""
    return read("schemas"), read("descriptions")


def _meta_names() -> list[str]:
    """What ObjectMeta needs, for groups of custom kinds only."""
    return [
        f"{_META}.{kind}"
        for kind in ("ObjectMeta", "ManagedFieldsEntry", "OwnerReference", "Time", "FieldsV1", "Patch")
    ]


def index(table: ResourceTable) -> Obj:
    """`GET /openapi/v3`: a path and a content hash for each group-version."""
    paths: Obj = {}
    for group, versions in table.groups():
        for version in versions:
            path = path_of(group, version)
            rows = repr(table.of(group, version))
            digest = hashlib.sha256(f"{read_version()}{rows}".encode()).hexdigest().upper()
            paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
    return {"paths": paths}


@lru_cache(1)
def read_version() -> str:
    """The recorded version, which the hashes depend on."""
    return str(read("discovery")["version"])


def v2(table: ResourceTable) -> bytes:
    """A `swagger: 2.0` document with all definitions."""
    schemas, texts = read_tables()
    raw = orjson.dumps({n: _described(n, d, texts) for n, d in schemas["definitions"].items()})
    definitions = orjson.loads(raw.replace(b"#/components/schemas/", b"#/definitions/"))
    paths = {key: value for resource in table for key, value in _paths(resource).items()}
    trimmed = orjson.loads(orjson.dumps(paths).replace(b"#/components/schemas/", b"#/definitions/"))
    return orjson.dumps({"swagger": "2.0", "info": schemas["info"], "paths": trimmed, "definitions": definitions})
