"""Strategic merge patch: merge by the schema's patch strategies and merge keys, with the `$patch` family of directives.

Lists that merge keep the server's relative order; patched items follow the patch (or `$setElementOrder`), and new items come
before the server's own, as on a real server.
"""

from typing import Any

from itbench.kube.client import Obj
from itbench.kube.decode import clone
from itbench.kube.schema import Node
from itbench.kube.status import failure

_DELETE_LIST = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"
_MERGEABLE = "merge"


def _bad(message: str) -> Exception:
    return failure(500, "", message)


def apply_strategic_patch(target: Obj, patch: Obj, node: Node | None) -> Obj:
    """The patched object; `target` is a private copy and may be changed.

    Raises:
        ApiError: a list item lacks its merge key, or a directive is malformed.
    """
    return _merge_map(target, patch, node)


def _directive(patch: Obj) -> str:
    directive = patch.get("$patch", "")
    if directive not in ("", "replace", "delete", "merge"):
        raise _bad(f"unknown patch type: {directive} in map: {go_map(patch)}")
    return str(directive)


def _merge_map(target: Obj, patch: Obj, node: Node | None) -> Obj:
    directive = _directive(patch)
    if directive == "delete":
        return {}
    if directive == "replace":
        return _plain({key: value for key, value in patch.items() if key != "$patch"})  # type: ignore[no-any-return]
    if "$retainKeys" in patch:
        kept = set(patch["$retainKeys"])
        if any(not key.startswith("$") and value is not None and key not in kept for key, value in patch.items()):
            raise _bad("the keys of the patch must be a subset of $retainKeys")
        for key in [key for key in target if key not in kept]:
            del target[key]
    for key, value in patch.items():
        if key.startswith(_DELETE_LIST):
            name = key.removeprefix(_DELETE_LIST)
            if name in target:
                target[name] = [row for row in target[name] if row not in value]
        elif not key.startswith("$"):
            _merge_key(target, key, value, node.child(key) if node else None, patch.get(_ORDER + key))
    for key, order in patch.items():
        name = key.removeprefix(_ORDER)
        if key.startswith(_ORDER) and name not in patch and isinstance(target.get(name), list):
            child = node.child(name) if node else None
            target[name] = _arrange(target[name], order, target[name], child.merge_key if child else "")
    return target


def _merge_key(target: Obj, key: str, value: Any, child: Node | None, order: list[Any] | None) -> None:
    if value is None:
        target.pop(key, None)
        return
    old = target.get(key)
    strategies = child.strategies if child else ()
    if isinstance(value, dict) and "replace" not in strategies:
        target[key] = _merge_map(old if isinstance(old, dict) else {}, value, child)
    elif isinstance(value, list) and _MERGEABLE in strategies and child is not None:
        target[key] = _merge_list(old if isinstance(old, list) else [], value, child, order)
    else:
        target[key] = _plain(value)


def _merge_list(target: list[Any], patch: list[Any], node: Node, order: list[Any] | None) -> list[Any]:
    key = node.merge_key
    if not key:
        merged = target + [row for row in dict.fromkeys(map(_hashable, patch)) if row not in target]
        return _arrange(merged, order if order is not None else patch, target, key)
    if any(isinstance(row, dict) and row.get("$patch") == "replace" for row in patch):
        return [_plain(row) for row in patch if not (isinstance(row, dict) and row.get("$patch") == "replace")]
    before, merged = list(target), list(target)
    added: list[Any] = []
    for row in patch:
        if not isinstance(row, dict) or key not in row:
            raise _bad(f"map: {go_map(row)} does not contain declared merge key: {key}")
        place = next((index for index, item in enumerate(merged) if item.get(key) == row[key]), None)
        if row.get("$patch") == "delete":
            merged = [item for item in merged if item.get(key) != row[key]]
            continue
        added.append(row)
        body = {name: value for name, value in row.items() if name != "$patch"}
        base = (
            _plain(body)
            if row.get("$patch") == "replace" or place is None
            else _merge_map(merged[place], body, node.items)
        )
        if place is None:
            merged.append(base if row.get("$patch") == "replace" else _merge_map({}, body, node.items))
        else:
            merged[place] = base
    return _arrange(merged, order if order is not None else added, before, key)


def _hashable(row: Any) -> Any:
    return row if not isinstance(row, (dict, list)) else str(row)


def _identity(row: Any, key: str) -> Any:
    return row.get(key) if key and isinstance(row, dict) else row


def _arrange(merged: list[Any], order: list[Any], before: list[Any], key: str) -> list[Any]:
    """Items named by `order` in that order; the others keep their place relative to the items that were there before."""
    rank = {_identity(row, key): index for index, row in reversed(list(enumerate(order)))}
    place = {_identity(row, key): index for index, row in enumerate(before)}
    named = sorted((row for row in merged if _identity(row, key) in rank), key=lambda row: rank[_identity(row, key)])
    others = [row for row in merged if _identity(row, key) not in rank]
    out: list[Any] = []
    left, right = 0, 0
    while left < len(named) and right < len(others):
        here, there = place.get(_identity(named[left], key)), place.get(_identity(others[right], key))
        if here is not None and there is not None and here > there:
            out.append(others[right])
            right += 1
        else:
            out.append(named[left])
            left += 1
    return out + named[left:] + others[right:]


def _plain(value: Any) -> Any:
    """A copy without directives and nulls: what a patch says about a place where nothing was."""
    if isinstance(value, dict):
        return {key: _plain(row) for key, row in value.items() if row is not None and not key.startswith("$")}
    if isinstance(value, list):
        return [_plain(row) for row in value if not (isinstance(row, dict) and row.get("$patch") == "delete")]
    return clone(value)


def go_map(value: Any) -> str:
    """A value as Go prints it: `map[spec:map[replicas:3]]`."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{go_map(row)}" for key, row in sorted(value.items())) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(go_map, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)
