"""Forgives an update the faults of parts that it did not change; called by `model`.

As on the real server, a fault counts as old when the value that its schema looks at is the same before and after. Items of
lists of type map are found again by their keys; other lists are compared as a whole.
"""

import re
from typing import Any

from itbench.kube.client import Obj
from itbench.kube.custom.schemas import Schema, child_of
from itbench.kube.custom.validation import Fault

_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
_MISSING = object()


def _old_item(rows: Any, row: Any, part: Schema, index: int) -> Any:
    """The item of before that an item now is to be compared with."""
    if part.get("x-kubernetes-list-type") != "map" or not isinstance(row, dict) or not isinstance(rows, list):
        return _MISSING
    keys = part.get("x-kubernetes-list-map-keys") or ()
    return next(
        (old for old in rows if isinstance(old, dict) and all(old.get(k) == row.get(k) for k in keys)), _MISSING
    )


def unchanged(new: Obj, old: Obj, part: Schema, fault: Fault) -> bool:
    """Whether the value that a fault is about was there before as it is."""
    left: Any = new
    right: Any = old
    schema: Schema = part
    steps = _STEP.findall(fault.at)
    if fault.cause.reason == "FieldValueRequired" and steps:
        steps = steps[:-1]
    for index, name in steps:
        if index:
            row = left[int(index)] if isinstance(left, list) and int(index) < len(left) else _MISSING
            if schema.get("x-kubernetes-list-type") != "map":
                return bool(left == right)
            right = _old_item(right, row, schema, int(index))
            left, schema = row, schema.get("items") or {}
        else:
            schema = child_of(schema, name) or {}
            left = left.get(name, _MISSING) if isinstance(left, dict) else _MISSING
            right = right.get(name, _MISSING) if isinstance(right, dict) else _MISSING
        if right is _MISSING:
            return False
    return bool(left == right) and type(left) is type(right)
