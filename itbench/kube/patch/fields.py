"""Sets of field paths in the FieldsV1 form of managedFields, and their algebra.

A set is a nested dictionary: `{"f:spec": {"f:replicas": {}}}`. An empty dictionary is a member without members below it;
`"."` says that a path with members below it is itself a member. Called by `managed`.
"""

from collections.abc import Iterator
from typing import Any

import orjson

from itbench.kube.client import Obj
from itbench.kube.schema import Node

Fields = dict[str, Any]

_UNTRACKED = frozenset(
    {
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "generation",
        "managedFields",
        "resourceVersion",
    }
)


def _is_member(fields: Fields) -> bool:
    return not fields or "." in fields


def _make(member: bool, below: Fields) -> Fields | None:
    if below:
        return {".": {}, **below} if member else below
    return {} if member else None


def union(left: Fields, right: Fields) -> Fields:
    """Members of either set."""
    if not left:
        return right
    if not right:
        return left
    out = dict(left)
    for key, value in right.items():
        if key == ".":
            out[key] = value
            continue
        mine = out.get(key)
        if mine is None:
            out[key] = value
        elif mine is not value:
            below = union(_below(mine), _below(value))
            out[key] = _make(_is_member(mine) or _is_member(value), below)
    return out


def _below(fields: Fields) -> Fields:
    if "." not in fields:
        return fields
    return {key: value for key, value in fields.items() if key != "."}


def difference(left: Fields, right: Fields) -> Fields:
    """Members of the first set that are not in the second."""
    if not right:
        return left
    out: Fields = {}
    for key, value in left.items():
        if key == ".":
            continue
        other = right.get(key)
        if other is None:
            out[key] = value
            continue
        made = _make(_is_member(value) and not _is_member(other), difference(_below(value), _below(other)))
        if made is not None:
            out[key] = made
    return out


def intersection(left: Fields, right: Fields) -> Fields:
    """Members of both sets."""
    out: Fields = {}
    for key, value in left.items():
        other = right.get(key)
        if other is None or key == ".":
            continue
        made = _make(_is_member(value) and _is_member(other), intersection(_below(value), _below(other)))
        if made is not None:
            out[key] = made
    return out


def with_parents(fields: Fields) -> Fields:
    """The set with every named field on the way to a member made a member too."""
    out: Fields = {}
    for key, value in fields.items():
        if key == ".":
            continue
        below = with_parents(_below(value))
        member = _is_member(value) or key.startswith("f:")
        out[key] = {".": {}, **below} if member and below else below
    return out


def paths(fields: Fields, prefix: str = "") -> Iterator[str]:
    """Readable member paths, those of each level before those below: `.spec.template.spec.containers[name="web"].image`."""
    for key in sorted(fields):
        if key == ".":
            continue
        where = prefix + _readable(key)
        if _is_member(fields[key]):
            yield where
    for key in sorted(fields):
        if key != ".":
            yield from paths(fields[key], prefix + _readable(key))


def _readable(key: str) -> str:
    form, text = key[:2], key[2:]
    if form == "f:":
        return "." + text
    if form == "k:":
        rows = orjson.loads(text)
        return "[" + ",".join(f"{name}={orjson.dumps(value).decode()}" for name, value in sorted(rows.items())) + "]"
    return f"[{text}]" if form == "i:" else f"[={text}]"


def ordered(fields: Fields) -> Fields:
    """The set with its keys in the order in which a server prints them."""
    return {key: ordered(fields[key]) if fields[key] else {} for key in sorted(fields)}


def item_key(row: Any, node: Node) -> str:
    """Path element of an item of a list of type map or set."""
    if node.list_type == "set":
        return "v:" + orjson.dumps(row).decode()
    defaults = node.key_defaults
    keys = {key: row.get(key, defaults.get(key)) for key in node.map_keys}
    found = {key: value for key, value in keys.items() if value is not None}
    return "k:" + orjson.dumps(found, option=orjson.OPT_SORT_KEYS).decode()


def granular(value: Any, node: Node | None) -> bool:
    """Whether members of the value are owned one by one."""
    if not value or node is None or node.atomic:
        return isinstance(value, dict) and bool(value) and node is None
    if node.kind in ("struct", "map", "any"):
        return isinstance(value, dict)
    return node.kind == "list" and node.list_type in ("map", "set") and isinstance(value, list)


def members(value: Any, node: Node | None) -> Iterator[tuple[str, Any, Node | None]]:
    """Path element, value and schema of each member of a granular value."""
    if isinstance(value, dict):
        for key, row in value.items():
            yield "f:" + key, row, node.child(key) if node is not None else None
    elif node is not None:
        for row in value:
            yield item_key(row, node), row, node.items


def _sent(value: Any, node: Node | None) -> Fields:
    if not granular(value, node):
        return {}
    out: Fields = {}
    for key, row, child in members(value, node):
        below = _sent(row, child)
        out[key] = {".": {}, **below} if below and key[0] != "f" else below
    return out


def strip(obj: Obj) -> Obj:
    """The part of an object whose ownership is tracked."""
    out = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata")}
    metadata = {key: value for key, value in obj.get("metadata", {}).items() if key not in _UNTRACKED}
    if metadata:
        out["metadata"] = metadata
    return out


def field_set(obj: Obj, node: Node | None) -> Fields:
    """The paths that an applied configuration names."""
    return _sent(strip(obj), node)


def compare(old: Obj, new: Obj, node: Node | None) -> tuple[Fields, Fields]:
    """What differs between two tracked objects.

    Returns:
        Paths added or changed, and paths removed.
    """
    changed: Fields = {}
    removed: Fields = {}
    _compare(old, new, node, changed, removed)
    return changed, removed


def _all(value: Any, node: Node | None) -> Fields:
    """Every path of a value, itself included."""
    if not granular(value, node):
        return {}
    out: Fields = {".": {}}
    for key, row, child in members(value, node):
        out[key] = _all(row, child)
    return out


def _added(value: Any, node: Node | None, printed: bool) -> Fields:
    """Paths of a value that was not there; a field that is always printed counts as having been there, empty."""
    found = _all(value, node)
    if printed and found and "." in found:
        if node is not None and node.kind == "struct":
            changed: Fields = {}
            _compare({}, value, node, changed, {})
            return changed
        del found["."]
    return found


def _compare(old: Any, new: Any, node: Node | None, changed: Fields, removed: Fields) -> None:
    before = {key: (row, child) for key, row, child in members(old, node)} if old else {}
    required = node.required if node is not None and isinstance(new, dict) else ()
    for key, row, child in members(new, node):
        if key not in before:
            printed = child is not None and key[0] == "f" and (child.fill or key[2:] in required)
            fresh = _added(row, child, printed)
            if fresh or not (printed and row == {}):
                changed[key] = fresh
            continue
        was = before.pop(key)[0]
        if was == row and type(was) is type(row):
            continue
        if granular(row, child) and granular(was, child):
            below: Fields = {}
            gone: Fields = {}
            _compare(was, row, child, below, gone)
            if below:
                changed[key] = below
            if gone:
                removed[key] = gone
            continue
        if granular(row, child):
            changed[key] = _added(row, child, child is not None and child.fill)
        elif granular(was, child):
            removed[key] = _below(_all(was, child))
            changed[key] = {}
        else:
            changed[key] = {}
    for key, (row, child) in before.items():
        removed[key] = _all(row, child)
