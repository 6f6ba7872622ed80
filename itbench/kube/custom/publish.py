"""Schemas of custom resources as OpenAPI documents carry them; called by `itbench.kube.openapi` and `api.documents`."""

from typing import Any

from itbench.kube.client import Obj
from itbench.kube.custom.schemas import Schema, is_embedded, is_int_or_string, keeps_unknown
from itbench.kube.resources import Resource

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_DOCS = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
_VERSION_TEXT = (
    "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to "
    f"the latest internal value, and may reject unrecognized values. More info: {_DOCS}#resources"
)
_KIND_TEXT = (
    "Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the "
    f"client submits requests to. Cannot be updated. In CamelCase. More info: {_DOCS}#types-kinds"
)
_INNER_VERSION = (
    f"apiVersion defines the versioned schema of this representation of an object. More info: {_DOCS}#resources"
)
_INNER_KIND = (
    f"kind is a string value representing the type of this object. In CamelCase. More info: {_DOCS}#types-kinds"
)
_OBJECT_TEXT = f"Standard object's metadata. More info: {_DOCS}#metadata"
_LIST_TEXT = f"Standard list metadata. More info: {_DOCS}#types-kinds"
_DROPPED = ("example", "externalDocs", "$schema", "id")
_LOGIC = ("allOf", "anyOf", "oneOf", "not")
_MAPPED = ("properties", "items", "additionalProperties")


def name_of(resource: Resource, *, of_list: bool = False) -> str:
    """The name of a kind's definition: `io.example.v1.Widget`."""
    kind = resource.list_kind if of_list else resource.kind
    return ".".join([*reversed(resource.group.split(".")), resource.version, kind])


def _text(description: str) -> Obj:
    return {"description": description, "type": "string"}


def _metadata(name: str, description: str, root: str) -> Obj:
    ref = {"$ref": f"{root}{_META}{name}"}
    return {"description": description, **(ref if root == "#/definitions/" else {"allOf": [ref]})}


def definitions(resource: Resource, *, v2: bool = False) -> dict[str, Obj]:
    """The definitions of a kind and its list.

    Args:
        resource: a row with a model.
        v2: in the vocabulary of OpenAPI v2, which knows less.
    """
    root = "#/definitions/" if v2 else "#/components/schemas/"
    return {
        name_of(resource): _decorated(resource, resource.kind, _object(resource, root, v2=v2)),
        name_of(resource, of_list=True): _decorated(resource, resource.list_kind, _list(resource, root)),
    }


def _decorated(resource: Resource, kind: str, part: Obj) -> Obj:
    gvk = {"group": resource.group, "kind": kind, "version": resource.version}
    fields = [{"fieldPath": path} for path in (resource.model.selectable if resource.model is not None else ())]
    extra: Obj = {"x-kubernetes-selectable-fields": fields} if fields else {}
    return {**part, "x-kubernetes-group-version-kind": [gvk], **extra}


def _object(resource: Resource, root: str, *, v2: bool) -> Obj:
    assert resource.model is not None
    schema = resource.model.schema
    if v2 and keeps_unknown(schema):
        return {"type": "object"}
    part = _v2(schema) if v2 else _v3(schema)
    rest = {
        key: value for key, value in part.get("properties", {}).items() if key not in ("apiVersion", "kind", "metadata")
    }
    metadata = _metadata("ObjectMeta", _OBJECT_TEXT, root)
    properties = {"apiVersion": _text(_VERSION_TEXT), "kind": _text(_KIND_TEXT), "metadata": metadata, **rest}
    return {**part, "type": "object", "properties": properties}


def _list(resource: Resource, root: str) -> Obj:
    items = {
        "description": f"List of {resource.plural}. More info: {_DOCS}",
        "type": "array",
        "items": {"$ref": root + name_of(resource)},
    }
    return {
        "description": f"{resource.list_kind} is a list of {resource.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": _text(_VERSION_TEXT),
            "items": items,
            "kind": _text(_KIND_TEXT),
            "metadata": _metadata("ListMeta", _LIST_TEXT, root),
        },
    }


def _mapped(part: Schema, convert: Any) -> Schema:
    out = {key: value for key, value in part.items() if key not in _DROPPED and key not in _MAPPED}
    if part.get("properties"):
        out["properties"] = {key: convert(below) for key, below in part["properties"].items()}
    for key in ("items", "additionalProperties"):
        if key in part:
            out[key] = convert(part[key]) if isinstance(part[key], dict) else part[key]
    return out


def _v3(part: Schema) -> Schema:
    out = _mapped(part, _v3)
    if is_int_or_string(part) and not part.get("anyOf") and not part.get("allOf"):
        out = {"anyOf": [{"type": "integer"}, {"type": "string"}], **out}
    if is_embedded(part):
        known = {
            "apiVersion": _text(_INNER_VERSION),
            "kind": _text(_INNER_KIND),
            "metadata": _metadata("ObjectMeta", _OBJECT_TEXT, "#/components/schemas/"),
        }
        out["properties"] = {**out.get("properties", {}), **known}
        out["required"] = [
            *out.get("required", []),
            *(key for key in ("kind", "apiVersion") if key not in out.get("required", [])),
        ]
    return out


def _v2(part: Schema) -> Schema:
    """What version 2 cannot say is left out: nulls, alternatives, unknown fields, defaults."""
    out = {key: value for key, value in _mapped(part, _v2).items() if key not in (*_LOGIC, "default", "nullable")}
    if part.get("nullable") or keeps_unknown(part) or is_int_or_string(part):
        for key in ("type", "items", "properties", "additionalProperties", "required"):
            out.pop(key, None)
    return out
