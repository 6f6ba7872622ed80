"""Tables and metadata-only views of stored objects; called by `rest`, `watch` and `metrics`."""

from collections.abc import Iterable
from typing import cast

from itbench.kube import tables, versions
from itbench.kube.api.answers import partial
from itbench.kube.api.door import Call
from itbench.kube.client import Obj
from itbench.kube.resources import Resource
from itbench.kube.status import bad_request
from itbench.kube.store import Entry
from itbench.kube.tables import Include


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
    """Objects as rows; ages are reckoned in world time."""
    include = call.query.get("includeObject") or "Metadata"
    if include not in ("Metadata", "Object", "None"):
        raise bad_request(f'unrecognized includeObject value: "{include}"')
    now, version = call.door.pacer.now(), call.form.version
    return tables.render(resource, entries, now, cast(Include, include), version=version, metadata=meta)
