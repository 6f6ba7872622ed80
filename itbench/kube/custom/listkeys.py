"""Uniqueness of lists that are sets or maps, and required keys of their items; called by `model` next to `validation`."""

from typing import Any

from itbench.kube.custom.schemas import Schema, child_of
from itbench.kube.custom.validation import Fault
from itbench.kube.kinds.check import printed
from itbench.kube.status import Cause


def duplicates(value: Any, part: Schema, path: str = "") -> list[Fault]:
    """Items that come twice in lists with `x-kubernetes-list-type` set or map, anywhere below a value."""
    found: list[Fault] = []
    if isinstance(value, dict):
        for key in sorted(value):
            below = child_of(part, key)
            if below is not None:
                found += duplicates(value[key], below, f"{path}.{key}" if path else key)
    items = part.get("items")
    if not isinstance(value, list) or not isinstance(items, dict):
        return found
    kind = part.get("x-kubernetes-list-type")
    if kind in ("set", "map"):
        keys = part.get("x-kubernetes-list-map-keys") or ()
        found += _repeated(value, keys if kind == "map" else None, path)
    for index, row in enumerate(value):
        found += duplicates(row, items, f"{path}[{index}]")
    return found


def _repeated(rows: list[Any], keys: Any, path: str) -> list[Fault]:
    seen: set[str] = set()
    found: list[Fault] = []
    reported: set[str] = set()
    for index, row in enumerate(rows):
        if keys is not None and not isinstance(row, dict):
            continue
        shown = row if keys is None else {key: row[key] for key in sorted(keys) if key in row}
        text = printed(shown)
        if text in seen and text not in reported:
            where = f"{path}[{index}]"
            found.append(Fault(Cause("FieldValueDuplicate", where, f"Duplicate value: {text}"), where))
            reported.add(text)
        seen.add(text)
    return found
