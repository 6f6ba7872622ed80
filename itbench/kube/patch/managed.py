"""Ownership of fields: managedFields for Update and Apply, and the merge of server-side apply.

Entries are kept in their wire form. The registry calls `record_update` after every other write and `apply` for apply patches.
"""

from dataclasses import dataclass, replace
from typing import Any

from itbench.kube.client import ApiError, Obj
from itbench.kube.decode import clone
from itbench.kube.patch import lastapplied
from itbench.kube.patch.fields import (
    Fields,
    compare,
    difference,
    field_set,
    granular,
    intersection,
    item_key,
    ordered,
    paths,
    strip,
    union,
    with_parents,
)
from itbench.kube.schema import Node
from itbench.kube.status import Cause, failure

Entries = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes, through what, and when (RFC 3339; empty: the entry carries no time, as for scale)."""

    manager: str
    api_version: str
    time: str
    subresource: str = ""


def _is(entry: Obj, writer: Writer, operation: str) -> bool:
    return (
        entry.get("operation") == operation
        and entry.get("manager") == writer.manager
        and entry.get("subresource", "") == writer.subresource
        and (operation == "Apply" or entry.get("apiVersion") == writer.api_version)
    )


def _entry(writer: Writer, operation: str, fields: Fields) -> Obj:
    entry = {
        "manager": writer.manager,
        "operation": operation,
        "apiVersion": writer.api_version,
        **({"time": writer.time} if writer.time else {}),
        "fieldsType": "FieldsV1",
        "fieldsV1": ordered(fields),
    }
    if writer.subresource:
        entry["subresource"] = writer.subresource
    return entry


def _sort(entries: Entries) -> Entries:
    def key(entry: Obj) -> tuple[str, ...]:
        names = ("operation", "time", "manager", "apiVersion", "subresource")
        return tuple(str(entry.get(name, "")) for name in names)

    return sorted(entries, key=key)


def accept(sent: Any, known: Entries) -> Entries:
    """Entries that a client wrote: an empty one resets them, malformed ones are ignored."""
    if sent in ([], [{}]):
        return []
    good = isinstance(sent, list) and all(
        isinstance(row, dict)
        and row.get("operation") in ("Apply", "Update")
        and row.get("fieldsType") == "FieldsV1"
        and isinstance(row.get("fieldsV1"), dict)
        for row in sent
    )
    return sent if good else known


def record_update(entries: Entries, old: Obj, new: Obj, node: Node | None, writer: Writer) -> Entries:
    """Ownership after an Update: changed paths move to the writer, removed paths leave everyone.

    An existing object without entries is not tracked until somebody applies.
    """
    if old and not entries:
        return entries
    changed, removed = compare(strip(old), strip(new), node)
    if not changed and not removed:
        return entries
    lost = union(changed, removed)
    own: Fields = changed
    out: Entries = []
    kept: Obj | None = None
    for entry in entries:
        fields = entry.get("fieldsV1", {})
        if _is(entry, writer, "Update"):
            kept = entry
            own = union(difference(fields, removed), changed)
            continue
        left = difference(fields, lost)
        if left == fields:
            out.append(entry)
        elif left:
            out.append({**entry, "fieldsV1": ordered(left)})
    if own:
        unchanged = kept is not None and own == kept.get("fieldsV1") and not changed
        out.append(kept if unchanged and kept is not None else _entry(writer, "Update", own))
    return _sort(out)


@dataclass(frozen=True, slots=True)
class Applied:
    """The outcome of a server-side apply before defaults."""

    object: Obj
    entries: Entries


def apply(live: Obj, config: Obj, node: Node | None, writer: Writer, *, force: bool) -> Applied:
    """Merge a configuration into the live object (`{}` when there is none) on behalf of a manager.

    Raises:
        ApiError: 409 with one cause per path that another manager owns with a different value.
    """
    sent = field_set(config, node)
    merged = merge(live, config, node)
    changed, removed = compare(strip(live), strip(merged), node)
    wanted = intersection(changed, sent)
    others: Entries = []
    prior: Obj | None = None
    conflicts: list[tuple[Obj, Fields]] = []
    for entry in live.get("metadata", {}).get("managedFields", ()) or _before_first(live, node, writer):
        if _is(entry, writer, "Apply"):
            prior = entry
            continue
        clash = intersection(entry.get("fieldsV1", {}), wanted)
        if clash:
            conflicts.append((entry, clash))
            left = difference(entry["fieldsV1"], clash)
            if left:
                others.append({**entry, "fieldsV1": ordered(left)})
        else:
            others.append(entry)
    if conflicts and not force:
        mine = lastapplied.allowed(live, node, writer.manager)
        left_over = [(entry, rest) for entry, clash in conflicts if (rest := difference(clash, mine))]
        if left_over:
            raise conflict(left_over)
    # Who applies what is there already is not dated: the entry keeps its time, or has none.
    idle = bool(live) and not changed and not removed
    if prior is not None:
        keep = union(sent, {"f:metadata": {".": {}}})  # whatever it owned in there, the metadata itself stays
        for entry in others:
            keep = union(keep, entry.get("fieldsV1", {}))
        gone = difference(with_parents(prior.get("fieldsV1", {})), with_parents(keep))
        whole, merged = merged, _prune(merged, gone, node)
        idle = idle and merged == whole
    if sent:
        time = (prior or {}).get("time", "") if idle else writer.time
        others.append(_entry(replace(writer, time=time), "Apply", sent))
    return Applied(merged, _sort(others))


def keep_times(obj: Obj, before: Obj) -> None:
    """Take the old entries of an applied object when nothing but times tells it from what it was (changed in place)."""
    metadata, known = obj["metadata"], before["metadata"]
    new, old = metadata.get("managedFields") or [], known.get("managedFields") or []
    if new == old or [{**row, "time": ""} for row in new] != [{**row, "time": ""} for row in old]:
        return
    was = {**before, "metadata": {**known, "managedFields": new, "resourceVersion": metadata.get("resourceVersion")}}
    if {**obj, "metadata": {**metadata, "resourceVersion": metadata.get("resourceVersion")}} == was:
        metadata["managedFields"] = old


def merge(live: Any, config: Any, node: Node | None) -> Any:
    """The live value with everything that the configuration names set to it."""
    if isinstance(config, dict):
        if not isinstance(live, dict) or (node is not None and node.atomic):
            live = {}
        out = dict(live)
        for key, value in config.items():
            child = node.child(key) if node is not None else None
            out[key] = merge(live.get(key), value, child)
        return out
    if isinstance(config, list) and node is not None and node.list_type in ("map", "set"):
        return _merge_items(live if isinstance(live, list) else [], config, node)
    return clone(config)


def _merge_items(live: list[Any], config: list[Any], node: Node) -> list[Any]:
    """Both lists in one: the server's own items keep their place, shared ones follow the order sent."""
    before = {item_key(row, node): row for row in live}
    sent = {item_key(row, node): row for row in config}
    shared = [key for key in sent if key in before]
    left, right = list(before), list(sent)
    out: list[Any] = []
    while left or right:
        if left and left[0] not in sent:
            out.append(before[left.pop(0)])
            continue
        if left and right and left[0] != right[0] and left[0] != (shared[0] if shared else None):
            left.pop(0)
            continue
        if not right:
            left.pop(0)
            continue
        key = right.pop(0)
        out.append(merge(before.get(key), sent[key], node.items))
        if shared and shared[0] == key:
            shared.pop(0)
        if left and left[0] == key:
            left.pop(0)
    return out


def _prune(value: Any, gone: Fields, node: Node | None) -> Any:
    """The value without the members of a set (each with all that is below it)."""
    if not gone or not granular(value, node):
        return value
    if isinstance(value, dict):
        out: Obj = {}
        for key, row in value.items():
            below = gone.get("f:" + key)
            if below is None:
                out[key] = row
            elif below and "." not in below:
                out[key] = _prune(row, below, node.child(key) if node is not None else None)
        return out
    kept: list[Any] = []
    for row in value:
        below = gone.get(item_key(row, node)) if node is not None else None
        if below is None:
            kept.append(row)
        elif below and "." not in below:
            kept.append(_prune(row, below, node.items if node is not None else None))
    return kept


def _before_first(live: Obj, node: Node | None, writer: Writer) -> Entries:
    """The owner of what an untracked object holds when it is applied for the first time."""
    if not live:
        return []
    return [_entry(Writer("before-first-apply", writer.api_version, writer.time), "Update", field_set(live, node))]


def _who(entry: Obj) -> str:
    text = f'"{entry.get("manager", "")}"'
    if entry.get("subresource"):
        text += f' with subresource "{entry["subresource"]}"'
    if entry.get("operation") == "Update":
        text += f" using {entry.get('apiVersion', '')}"
    return text


def conflict(rows: list[tuple[Obj, Fields]]) -> ApiError:
    """409 of an apply: who owns what."""
    causes: list[Cause] = []
    groups: list[str] = []
    for entry, fields in sorted(rows, key=lambda row: _who(row[0])):
        who = _who(entry)
        found = list(paths(fields))
        causes += [Cause("FieldManagerConflict", path, f"conflict with {who}") for path in found]
        if len(found) == 1:
            groups.append(f"conflict with {who}: {found[0]}")
        else:
            groups.append(f"conflicts with {who}:\n" + "\n".join(f"- {path}" for path in found))
    count = len(causes)
    plural = "conflict" if count == 1 else "conflicts"
    if len(groups) == 1:
        text = groups[0]
    else:
        text = "\n".join(groups)
    return failure(409, "Conflict", f"Apply failed with {count} {plural}: {text}", None, causes)
