"""The documents of `/openapi/v3`, built from the generated tables when somebody asks (`kubectl apply`, `diff`, `explain`).

The API server calls `group_versions` and `document`; `schema.openapi_v3` is the same for built-in groups.
"""

from functools import lru_cache
from typing import Any

from itbench.kube.client import Obj
from itbench.kube.custom import publish
from itbench.kube.data import read
from itbench.kube.resources import Resource, ResourceTable, builtin_table

_PREFIX = "#/components/schemas/"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_OPERATIONS = {"get": "get", "update": "put", "patch": "patch", "delete": "delete"}
_WRITE_PARAMETERS = (("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string"))
_PATCH_TYPES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)


@lru_cache(1)
def _prose() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = read("descriptions")
    return found


@lru_cache(1)
def _schemas() -> dict[str, Any]:
    found: dict[str, Any] = read("schemas")
    return found


def group_versions(table: ResourceTable) -> list[str]:
    """Group-versions with a document, such as `v1`, `apps/v1`, in the order of discovery."""
    return list(dict.fromkeys(resource.api_version for resource in table))


def _described(name: str) -> Obj:
    """A definition with its prose put back, keys in the order of a real document."""
    bare, prose = _schemas()["definitions"][name], _prose().get(name, {})
    out: Obj = {}
    if "" in prose:
        out["description"] = prose[""]
    for key, value in bare.items():
        if key != "properties":
            out[key] = value
            continue
        out["properties"] = {
            field: {"description": prose[field], **part} if field in prose else part for field, part in value.items()
        }
    return out


def _custom_schema(resource: Resource) -> Obj:
    gvk = {"group": resource.group, "kind": resource.kind, "version": resource.version}
    return {
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"allOf": [{"$ref": f"{_PREFIX}{_META}ObjectMeta"}], "default": {}},
        },
        "x-kubernetes-preserve-unknown-fields": True,
        "x-kubernetes-group-version-kind": [gvk],
    }


def _reachable(names: list[str]) -> list[str]:
    """The definitions named and all that they refer to."""
    found: set[str] = set()
    todo = list(names)
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += _refs(_schemas()["definitions"][name])
    return sorted(found)


def _refs(value: Any) -> list[str]:
    if isinstance(value, dict):
        ref = value.get("$ref")
        own = [ref.removeprefix(_PREFIX)] if isinstance(ref, str) else []
        return own + [name for row in value.values() for name in _refs(row)]
    return [name for row in value for name in _refs(row)] if isinstance(value, list) else []


def _parameters(method: str) -> list[Obj]:
    rows: tuple[tuple[str, str], ...] = ()
    if method in ("post", "put", "patch"):
        rows = _WRITE_PARAMETERS + ((("force", "boolean"),) if method == "patch" else ())
    elif method == "delete":
        rows = (("dryRun", "string"), ("gracePeriodSeconds", "integer"), ("propagationPolicy", "string"))
    return [{"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": True}} for name, kind in rows]


def _operation(resource: Resource, method: str, ref: str, action: str) -> Obj:
    gvk = {"group": resource.group, "kind": resource.kind, "version": resource.version}
    schema = {"$ref": ref}
    out: Obj = {
        "parameters": _parameters(method),
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": schema}}}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": gvk,
    }
    if method in ("post", "put"):
        out["requestBody"] = {"content": {"*/*": {"schema": schema}}, "required": True}
    elif method == "patch":
        patch = {"schema": {"$ref": f"{_PREFIX}{_META}Patch"}}
        kinds = _PATCH_TYPES[:3] if resource.custom else _PATCH_TYPES
        out["requestBody"] = {"content": dict.fromkeys(kinds, patch), "required": True}
    return out


def _paths(resource: Resource, ref: str) -> Obj:
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    base = f"{root}/namespaces/{{namespace}}/{resource.plural}" if resource.namespaced else f"{root}/{resource.plural}"
    one = {
        method: _operation(resource, method, ref, method)
        for verb, method in _OPERATIONS.items()
        if verb in resource.verbs
    }
    many: Obj = {}
    if "list" in resource.verbs:
        many["get"] = _operation(resource, "get", ref, "list")
    if "create" in resource.verbs:
        many["post"] = _operation(resource, "post", ref, "post")
    if "deletecollection" in resource.verbs:
        many["delete"] = _operation(resource, "delete", ref, "deletecollection")
    shared = (
        [{"name": "namespace", "in": "path", "required": True, "schema": {"type": "string"}}]
        if resource.namespaced
        else []
    )
    name = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
    out: Obj = {}
    if resource.model is not None:
        many["get"] = _operation(resource, "get", _PREFIX + publish.name_of(resource, of_list=True), "list")
        for sub in resource.subresources:
            of = f"{_PREFIX}io.k8s.api.autoscaling.v1.Scale" if sub.name == "scale" else ref
            verbs = {method: _operation(resource, method, of, method) for method in ("get", "put", "patch")}
            out[f"{base}/{{name}}/{sub.name}"] = {**verbs, "parameters": [name, *shared]}
    if resource.namespaced and "get" in many:
        out[f"{root}/{resource.plural}"] = {"get": many["get"]}
    if many:
        out[base] = {**many, "parameters": shared}
    if one:
        out[f"{base}/{{name}}"] = {**one, "parameters": [name, *shared]}
    return out


def document(group_version: str, table: ResourceTable) -> Obj | None:
    """One OpenAPI v3 document, None for an unknown group-version.

    Args:
        group_version: `v1`, `apps/v1`, ...
        table: what is served.
    """
    rows = [resource for resource in table if resource.api_version == group_version]
    if not rows:
        return None
    documents = _schemas()["documents"]
    names: list[str] = documents.get(f"apis/{group_version}" if "/" in group_version else f"api/{group_version}", [])
    schemas: Obj = {name: _described(name) for name in names}
    if not names:
        needed = [_META + name for name in ("ObjectMeta", "ListMeta", "Patch", "DeleteOptions", "Status")]
        if any(row.subresource("scale") for row in rows):
            needed.append("io.k8s.api.autoscaling.v1.Scale")
        schemas = {name: _described(name) for name in _reachable(needed)}
    known = {
        (row["group"], row["version"], row["kind"]): name
        for name in names
        for row in _schemas()["definitions"][name].get("x-kubernetes-group-version-kind", ())
    }
    paths: Obj = {}
    for resource in rows:
        name = known.get((resource.group, resource.version, resource.kind), "")
        if resource.model is not None:
            name = publish.name_of(resource)
            schemas.update(publish.definitions(resource))
        elif not name:
            name = ".".join([*reversed(resource.group.split(".")), resource.version, resource.kind])
            schemas[name] = _custom_schema(resource)
        paths.update(_paths(resource, _PREFIX + name))
    return {"openapi": "3.0.0", "info": _schemas()["info"], "paths": paths, "components": {"schemas": schemas}}


def openapi_v3(group_version: str) -> Obj | None:
    """The document of a built-in group-version."""
    return document(group_version, builtin_table())
