"""Structural schemas as plain data, with what the server adds to them; called by all modules of this package.

A schema is the `openAPIV3Schema` of a version. `rooted` puts in `apiVersion`, `kind` and `metadata`, which every object has.
"""

from collections.abc import Iterator
from typing import Any

from itbench.kube.schema import OBJECT_META, Node

Schema = dict[str, Any]
_REF = {"allOf": [{"$ref": f"#/components/schemas/{OBJECT_META}"}]}
_STRING = {"type": "string"}
_NODE_KEYS = ("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type", "default", "format")
TYPE_META = ("apiVersion", "kind")
ROOT = (*TYPE_META, "metadata")


def is_int_or_string(part: Schema) -> bool:
    """Whether a value may be an integer or a string."""
    return bool(part.get("x-kubernetes-int-or-string"))


def keeps_unknown(part: Schema) -> bool:
    """Whether fields that the schema does not name stay."""
    return bool(part.get("x-kubernetes-preserve-unknown-fields"))


def is_embedded(part: Schema) -> bool:
    """Whether a value is itself an object with kind and metadata."""
    return bool(part.get("x-kubernetes-embedded-resource"))


def values_of(part: Schema) -> Schema | None:
    """The schema of a map's values (`{}` for any), None where it is no map."""
    found = part.get("additionalProperties")
    if isinstance(found, dict):
        return found
    return {} if found else None


def child_of(part: Schema, key: str) -> Schema | None:
    """The schema of a field or map value, None when it is not specified."""
    found = (part.get("properties") or {}).get(key)
    return found if found is not None else values_of(part)


def walk(part: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """All structural parts below a schema with their paths in objects: `.spec.list[*].name`."""
    yield path, part
    for key, below in (part.get("properties") or {}).items():
        yield from walk(below, f"{path}.{key}")
    items, values = part.get("items"), part.get("additionalProperties")
    if isinstance(items, dict):
        yield from walk(items, f"{path}[*]")
    if isinstance(values, dict):
        yield from walk(values, f"{path}[*]")


def node_of(part: Schema | None) -> Node:
    """The index that patches and server-side apply walk: list keys, map types, ObjectMeta at the root."""
    raw = _bare(part or {"x-kubernetes-preserve-unknown-fields": True})
    properties = {**raw.get("properties", {}), "apiVersion": _STRING, "kind": _STRING, "metadata": _REF}
    return Node({**raw, "type": "object", "properties": properties})


def _bare(part: Schema) -> Schema:
    """What decides about ownership, without what is only checked (Go structs print required fields, these do not)."""
    out: Schema = {key: part[key] for key in _NODE_KEYS if key in part}
    if is_int_or_string(part):
        return out
    out["type"] = part.get("type", "")
    if part.get("properties"):
        out["properties"] = {key: _bare(below) for key, below in part["properties"].items()}
    if is_embedded(part):
        out["properties"] = {
            **out.get("properties", {}),
            **dict.fromkeys(TYPE_META, _STRING),
            "metadata": _REF,
        }
    values = values_of(part)
    if values is not None:
        out["additionalProperties"] = _bare(values)
    if part.get("type") == "array":
        out["items"] = _bare(part.get("items") or {})
    return out
