"""Defaults of structural schemas; called by `model` after pruning and when objects are read.

A null where none is allowed counts as absent: a default takes its place, without one it goes away.
"""

from typing import Any

from itbench.kube.client import Obj
from itbench.kube.custom.schemas import ROOT, Schema, child_of
from itbench.kube.decode import clone


def fill(obj: Obj, part: Schema) -> Obj:
    """The object with all defaults; the same object when there is nothing to do, parts that do not change are shared."""
    out: Obj = _object(obj, part, skip=ROOT)
    return out


def _value(value: Any, part: Schema) -> Any:
    if isinstance(value, dict):
        return _object(value, part)
    items = part.get("items")
    if isinstance(value, list) and isinstance(items, dict):
        rows = [_value(_present(row, items), items) for row in value]
        return rows if any(new is not old for new, old in zip(rows, value, strict=True)) else value
    return value


def _present(value: Any, part: Schema) -> Any:
    """The value, or its default where it is a null that is not allowed."""
    if value is None and "default" in part and not part.get("nullable"):
        return clone(part["default"])
    return value


def _object(value: Obj, part: Schema, skip: tuple[str, ...] = ()) -> Obj:
    changed: Obj = {}
    dropped: set[str] = set()
    for key, below in value.items():
        schema = None if key in skip else child_of(part, key)
        if schema is None:
            continue
        if below is None and not schema.get("nullable") and "default" not in schema and _names_fields(schema):
            dropped.add(key)
            continue
        new = _value(_present(below, schema), schema)
        if new is not below:
            changed[key] = new
    for key, schema in (part.get("properties") or {}).items():
        if key not in value and "default" in schema and key not in skip:
            changed[key] = _value(clone(schema["default"]), schema)
    if not changed and not dropped:
        return value
    return {**{key: row for key, row in value.items() if key not in dropped}, **changed}


def _names_fields(part: Schema) -> bool:
    """A schema that says nothing about the value takes nulls as they are."""
    return bool(part)
