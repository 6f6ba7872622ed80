"""Whether a body is of the right kind, and whether a configuration to apply fits its schema; called by `model`, `registry`."""

from typing import Any

import orjson

from itbench.kube.client import ApiError, Obj
from itbench.kube.custom.schemas import ROOT, TYPE_META, Schema, child_of, is_int_or_string
from itbench.kube.custom.validation import kind_of
from itbench.kube.kinds.check import printed
from itbench.kube.schema import Node
from itbench.kube.status import Cause, bad_request, failure, invalid

_SHOWN = 30
_EXPECTED = {
    "string": "string",
    "integer": "numeric (int or float)",
    "number": "numeric (int or float)",
    "boolean": "boolean",
}
_FITS = {
    "string": ("string",),
    "integer": ("integer", "number"),
    "number": ("integer", "number"),
    "boolean": ("boolean",),
}
_GO = {"integer": "int", "number": "float64", "boolean": "bool", "array": "list", "object": "map"}


def check_type(body: Obj, api_version: str, kind: str) -> None:
    """Refuse a body of another kind or version.

    Raises:
        ApiError: 400 or 422.
    """
    if not body.get("kind"):
        text = orjson.dumps(body).decode()
        start = text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ..."
        why = f"Object 'Kind' is missing in '{text}' ({start})"
        raise bad_request(f"the object provided is unrecognized (must be of type {kind}): {why}")
    found = body.get("apiVersion") or ""
    if found != api_version:
        text = f"the API version in the data ({found}) does not match the expected API version ({api_version})"
        raise bad_request(text)
    if body["kind"] != kind:
        name = str((body.get("metadata") or {}).get("name", ""))
        cause = Cause("FieldValueInvalid", "kind", f"Invalid value: {printed(body['kind'])}: must be {kind}")
        raise invalid(str(body["kind"]), api_version.rpartition("/")[0], name, [cause])


class Misfit(Exception):
    """A configuration does not fit its schema; the text is the merge library's."""


def check_config(obj: Obj, part: Schema) -> None:
    """Refuse a configuration whose parts have types that the schema does not allow; raises Misfit."""
    for key in sorted(obj):
        below = None if key in ROOT else child_of(part, key)
        if below is not None:
            _check(obj[key], below, f".{key}")


def typed_error(config: Obj, name: str, text: str) -> ApiError:
    """500: the configuration cannot be merged."""
    place = (config.get("metadata") or {}).get("namespace", "")
    version = str(config.get("apiVersion"))
    what = f"({place}/{name}; {version if '/' in version else f'/{version}'}, Kind={config.get('kind')})"
    return failure(500, "", f"failed to create typed patch object {what}: {text}")


_NODE_KINDS = {"integer": "numeric (int or float)", "number": "numeric (int or float)", "boolean": "boolean"}


def check_nodes(config: Obj, node: Node, name: str) -> None:
    """Like `check_config` for built-in kinds, whose schema is a tree of nodes; raises ApiError 500."""
    try:
        for key in sorted(config):
            below = None if key in TYPE_META else node.child(key)
            if below is not None:
                _check_node(config[key], below, f".{key}")
    except Misfit as error:
        raise typed_error(config, name, str(error)) from None


def _check_node(value: Any, node: Node, path: str) -> None:
    kind = kind_of(value)
    if value is None:
        return
    if node.kind in ("struct", "map", "list"):
        if kind != ("array" if node.kind == "list" else "object"):
            shown = "&{" + _go(value) + "}" if kind in ("object", "array") else _valued(value)
            raise Misfit(f"{path}: expected {'list' if node.kind == 'list' else 'map'}, got {shown}")
        _check_below(value, node, path)
    elif node.kind in ("string", "time") and kind != "string":
        raise Misfit(f"{path}: expected string, got {_valued(value)}")
    elif node.kind in _NODE_KINDS and kind not in _FITS[node.kind]:
        raise Misfit(f"{path}: expected {_NODE_KINDS[node.kind]}, got {_GO.get(kind, kind)}")


def _valued(value: Any) -> str:
    """A scalar as Go's `%#v` prints the merge library's wrapper."""
    shown = printed(value) if isinstance(value, str) else _go(value)
    return f"&value.valueUnstructured{{Value:{shown}}}"


def _check_below(value: Any, node: Node, path: str) -> None:
    if node.kind != "list":
        for key in sorted(value):
            below = node.child(key)
            if below is not None:
                _check_node(value[key], below, f"{path}.{key}")
        return
    seen: set[str] = set()
    for index, row in enumerate(value):
        at = f"[{index}]"
        if node.list_type == "map" and isinstance(row, dict):
            found = {key: row.get(key, node.key_defaults.get(key)) for key in sorted(node.map_keys)}
            at = "[" + ",".join(f"{key}={printed(one)}" for key, one in found.items() if one is not None) + "]"
            if at in seen:
                raise Misfit(f"{path}: duplicate entries for key {at}")
        seen.add(at)
        if node.items is not None:
            _check_node(row, node.items, path + at)


def _check(value: Any, part: Schema, path: str) -> None:
    kind, wanted = kind_of(value), part.get("type", "")
    if value is None or is_int_or_string(part) or not wanted:
        return
    if wanted in _FITS:
        if kind not in _FITS[wanted]:
            shown = "&{" + _go(value) + "}" if kind in ("object", "array") else _GO.get(kind, kind)
            raise Misfit(f"{path}: expected {_EXPECTED[wanted]}, got {shown}")
    elif kind != wanted:
        word = "map" if wanted == "object" else "list"
        raise Misfit(f"{path}: expected {word}, got &{{{_go(value)}}}")
    elif kind == "object":
        for key in sorted(value):
            below = child_of(part, key)
            if below is not None:
                _check(value[key], below, f"{path}.{key}")
    elif isinstance(part.get("items"), dict):
        _check_list(value, part, path)


def _check_list(rows: list[Any], part: Schema, path: str) -> None:
    kind, keys = part.get("x-kubernetes-list-type"), part.get("x-kubernetes-list-map-keys") or []
    seen: set[str] = set()
    for index, row in enumerate(rows):
        if kind == "set":
            at = f"[={printed(row)}]"
        elif kind == "map" and isinstance(row, dict):
            at = _key_of(row, keys, part["items"], path, index)
        else:
            at = f"[{index}]"
        if at in seen:
            raise Misfit(f"{path}: duplicate entries for key {at}")
        seen.add(at)
        _check(row, part["items"], path + at)


def _key_of(row: Obj, keys: list[str], items: Schema, path: str, index: int) -> str:
    properties = items.get("properties") or {}
    found = {key: row.get(key, (properties.get(key) or {}).get("default")) for key in sorted(keys)}
    if all(value is None for value in found.values()):
        names = ", ".join(printed(key) for key in keys)
        text = f"associative list with keys has an element that omits all key fields [{names}]"
        raise Misfit(f"{path}: element {index}: {text} (and doesn't have default values for any key fields)")
    return "[" + ",".join(f"{key}={printed(value)}" for key, value in found.items() if value is not None) + "]"


def _go(value: Any) -> str:
    """A value as Go's `%v` prints it."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{_go(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(_go(row) for row in value) + "]"
    return (
        {True: "true", False: "false"}[value] if isinstance(value, bool) else "<nil>" if value is None else str(value)
    )
