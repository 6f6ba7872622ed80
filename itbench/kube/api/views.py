"""Tables and metadata-only views of stored objects; called by `rest` and `watch`."""

from collections.abc import Iterable
from typing import Any

from itbench.kube import versions
from itbench.kube.api.answers import partial
from itbench.kube.api.door import Call
from itbench.kube.client import Obj
from itbench.kube.resources import Resource
from itbench.kube.store import Entry


def single(call: Call, resource: Resource, entry: Entry) -> Obj:
    """One object as a Table or as its metadata."""
    if call.form.kind == "partial":
        return partial(versions.to_served(entry.object, resource), call.form.version)
    return table(call, resource, [entry], {"resourceVersion": entry.object["metadata"].get("resourceVersion", "")})


def event_table(call: Call, resource: Resource, entry: Entry, *, columns: bool) -> Obj:
    """The Table of a watch event: column definitions only in the first one."""
    made = single(call, resource, entry)
    return made if columns else {**made, "columnDefinitions": None}


def table(call: Call, resource: Resource, entries: Iterable[Entry], meta: Obj) -> Obj:
    """Objects as rows."""
    columns, rows = [], []
    include = call.query.get("includeObject", "Metadata")
    version = call.form.version
    columns = [{"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0}]
    for entry in entries:
        row: dict[str, Any] = {"cells": [entry.name]}
        row["object"] = shown(resource, entry, include, version)
        rows.append(row)
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": meta,
        "columnDefinitions": columns,
        "rows": rows,
    }


def shown(resource: Resource, entry: Entry, include: str, version: str) -> Obj | None:
    """The `object` of a row: metadata, the whole object, or nothing."""
    if include == "None":
        return None
    obj = versions.to_served(entry.object, resource)
    return obj if include == "Object" else partial(obj, version)
