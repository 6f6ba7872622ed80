"""Discovery documents: what resources there are, in the four forms that clients ask for; called by `itbench.kube.api`.

kubectl 1.27 to 1.29 understand aggregated discovery only as v2beta1, 1.37 only as v2; everybody understands the plain lists.
"""

import base64
import hashlib
from typing import Any

from itbench.kube.resources import Resource, ResourceTable, Subresource

Obj = dict[str, Any]
_DRA = ("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices")
_STORED_AS = {
    ("events.k8s.io", "events"): "/v1",
    ("autoscaling", "horizontalpodautoscalers"): "autoscaling/v2",
    ("storage.k8s.io", "volumeattributesclasses"): "storage.k8s.io/v1beta1",
    ("apiextensions.k8s.io", "customresourcedefinitions"): "apiextensions.k8s.io/v1beta1",
    **{("resource.k8s.io", name): "resource.k8s.io/v1beta2" for name in _DRA},
}
"""Group and version of stored objects where it is not the one served first."""
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"


def wanted_version(accept: str) -> str:
    """`v2`, `v2beta1` or `` (plain) from an Accept header, the first that the client names."""
    for part in accept.split(","):
        fields = dict(f.strip().partition("=")[::2] for f in part.split(";")[1:])
        if fields.get("as") == "APIGroupDiscoveryList" and fields.get("v") in ("v2", "v2beta1"):
            return fields["v"]
    return ""


def _sub_row(resource: Resource, sub: Subresource) -> Obj:
    own = (
        (resource.group, resource.version) if resource.model is not None and not sub.group else (sub.group, sub.version)
    )
    kind = {"group": own[0], "version": own[1], "kind": sub.kind}
    return {"subresource": sub.name, "responseKind": kind, "verbs": list(sub.verbs)}


def _row(resource: Resource) -> Obj:
    group, version = (resource.group, resource.version) if resource.model is not None else ("", "")
    row: Obj = {
        "resource": resource.plural,
        "responseKind": {"group": group, "version": version, "kind": resource.kind},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        row["shortNames"] = list(resource.short_names)
    if resource.categories:
        row["categories"] = list(resource.categories)
    if resource.subresources:
        row["subresources"] = [_sub_row(resource, sub) for sub in resource.subresources]
    return row


def aggregated(table: ResourceTable, *, core: bool, version: str, stale: dict[str, list[str]] | None = None) -> Obj:
    """`GET /api` (core) or `/apis` as an APIGroupDiscoveryList of the version asked for.

    Args:
        stale: groups and versions of other servers, which do not answer.
    """
    items = []
    for group, versions in table.groups():
        if (group == "") is not core:
            continue
        rows = [
            {"version": v, "resources": [_row(r) for r in table.of(group, v)], "freshness": "Current"} for v in versions
        ]
        rows += [{"version": v, "freshness": "Stale"} for v in (stale or {}).get(group, ())]
        items.append({"metadata": {} if core else {"name": group}, "versions": rows})
    known = dict(table.groups())
    for group, others in ({} if core else stale or {}).items():
        if group not in known:
            rows = [{"version": v, "freshness": "Stale"} for v in others]
            items.append({"metadata": {"name": group}, "versions": rows})
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": items,
    }


def api_versions(address: str) -> Obj:
    """`GET /api` in plain form."""
    cidrs = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": cidrs}


def group(name: str, versions: list[str]) -> Obj:
    """One APIGroup without kind and apiVersion, as in a list of them."""
    rows = [{"groupVersion": f"{name}/{v}", "version": v} for v in versions]
    return {"name": name, "versions": rows, "preferredVersion": rows[0]}


def group_list(table: ResourceTable, stale: dict[str, list[str]] | None = None) -> Obj:
    """`GET /apis` in plain form; `stale`: groups of other servers."""
    known = dict(table.groups())
    for name, others in (stale or {}).items():
        known[name] = [*known.get(name, []), *others]
    groups = [group(name, versions) for name, versions in known.items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def resource_list(table: ResourceTable, group_name: str, version: str) -> Obj | None:
    """`GET /apis/GROUP/VERSION` or `/api/v1`: the APIResourceList, None when nothing is served there."""
    resources = table.of(group_name, version)
    if not resources:
        return None
    rows: list[Obj] = []
    for resource in resources:
        rows += _legacy_rows(resource)
    title = f"{group_name}/{version}" if group_name else version
    head: Obj = {"kind": "APIResourceList"} | ({"apiVersion": "v1"} if group_name else {})
    return head | {"groupVersion": title, "resources": rows}


def _storage_hash(resource: Resource) -> str:
    """What clients compare to see that two resources are one kind of stored object: a digest of how it is stored."""
    version = _STORED_AS.get((resource.group, resource.plural), f"{resource.group}/{resource.version}")
    return base64.b64encode(hashlib.sha256(f"{version}/{resource.kind}".encode()).digest()[:8]).decode()


def _legacy_rows(resource: Resource) -> list[Obj]:
    row: Obj = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        row["shortNames"] = list(resource.short_names)
    if resource.categories:
        row["categories"] = list(resource.categories)
    if "watch" in resource.verbs:
        row["storageVersionHash"] = _storage_hash(resource)
    return [row, *(_legacy_sub(resource, sub) for sub in resource.subresources)]


def _legacy_sub(resource: Resource, sub: Subresource) -> Obj:
    row: Obj = {"name": f"{resource.plural}/{sub.name}", "singularName": "", "namespaced": resource.namespaced}
    if sub.group or sub.version:
        row |= {"group": sub.group, "version": sub.version}
    return row | {"kind": sub.kind, "verbs": list(sub.verbs)}
