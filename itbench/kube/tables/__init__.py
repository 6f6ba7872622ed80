"""Tables: what `kubectl get` shows, rendered on the server.

    render(resource, entries, now)                            # a whole Table object
    render(resource, entries, now, "Object", metadata={...})  # rows carry whole objects; list metadata as given
    columns(resource), row(resource, entry, now)              # the parts, for watch events

Cells are computed once per object version and kept with the entry; only ages are made anew. Called by the API server.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Literal

from itbench.kube import versions
from itbench.kube.client import Obj
from itbench.kube.custom import columns as printer
from itbench.kube.data import read
from itbench.kube.resources import Resource
from itbench.kube.store import Entry
from itbench.kube.tables import certificates, cluster, flowcontrol, network, pods, workloads
from itbench.kube.tables.autoscaler import autoscaler
from itbench.kube.tables.cells import Age, Cells, age

Include = Literal["Metadata", "Object", "None"]

_PRINTERS: dict[str, Callable[[Obj], Cells]] = {
    "pods": pods.pod,
    "services": network.service,
    "endpoints": network.endpoints,
    "endpointslices.discovery.k8s.io": network.endpointslice,
    "ingresses.networking.k8s.io": network.ingress,
    "ingressclasses.networking.k8s.io": network.ingressclass,
    "networkpolicies.networking.k8s.io": network.networkpolicy,
    "deployments.apps": workloads.deployment,
    "replicasets.apps": workloads.replicaset,
    "replicationcontrollers": workloads.replicaset,
    "statefulsets.apps": workloads.statefulset,
    "daemonsets.apps": workloads.daemonset,
    "controllerrevisions.apps": workloads.revision,
    "jobs.batch": workloads.job,
    "cronjobs.batch": workloads.cronjob,
    "nodes": cluster.node,
    "namespaces": cluster.namespace,
    "configmaps": cluster.configmap,
    "secrets": cluster.secret,
    "serviceaccounts": cluster.serviceaccount,
    "events": cluster.event,
    "persistentvolumeclaims": cluster.claim,
    "persistentvolumes": cluster.volume,
    "storageclasses.storage.k8s.io": cluster.storageclass,
    "rolebindings.rbac.authorization.k8s.io": cluster.binding,
    "clusterrolebindings.rbac.authorization.k8s.io": cluster.binding,
    "poddisruptionbudgets.policy": cluster.budget,
    "resourcequotas": cluster.quota,
    "priorityclasses.scheduling.k8s.io": cluster.priorityclass,
    "leases.coordination.k8s.io": cluster.lease,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": cluster.webhooks,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": cluster.webhooks,
    "validatingadmissionpolicies.admissionregistration.k8s.io": cluster.policy,
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": cluster.policybinding,
    "certificatesigningrequests.certificates.k8s.io": certificates.request,
    "runtimeclasses.node.k8s.io": cluster.runtimeclass,
    "apiservices.apiregistration.k8s.io": cluster.apiservice,
    "horizontalpodautoscalers.autoscaling": autoscaler,
    "servicecidrs.networking.k8s.io": network.servicecidr,
    "flowschemas.flowcontrol.apiserver.k8s.io": flowcontrol.schema,
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": flowcontrol.level,
}
_ORDERS: dict[str, Callable[[Obj], Any]] = {"flowschemas.flowcontrol.apiserver.k8s.io": flowcontrol.precedence}
"""Resources whose rows come in an order of their own."""


def _created(obj: Obj) -> Cells:
    return [obj["metadata"]["name"], obj["metadata"].get("creationTimestamp", "")]


def _aged(obj: Obj) -> Cells:
    return [obj["metadata"]["name"], age(obj)]


@lru_cache(1)
def _definitions() -> dict[str, list[Obj]]:
    found: dict[str, list[Obj]] = read("columns")
    return found


_AGE: Obj = {
    "name": "Age",
    "type": "date",
    "format": "",
    "description": "Time since the object was created.",
    "priority": 0,
}


def columns(resource: Resource) -> list[Obj]:
    """Column definitions (shared: do not change)."""
    if resource.model is not None:
        return [printer.NAME, *(column.header for column in resource.model.columns)]
    if resource.storage in _PRINTERS:
        return _definitions()[f"{resource.name}/{resource.version}"]
    plain = _definitions()["limitranges/v1"]
    return [plain[0], _AGE] if resource.custom else plain


def _cells(resource: Resource, entry: Entry) -> Cells:
    if resource.model is not None:
        return printer.cells(resource.model.columns, versions.to_served(entry.object, resource))
    if entry.cells is None:
        cells_of = _PRINTERS.get(resource.storage) or (_aged if resource.custom else _created)
        entry.cells = cells_of(entry.object)
    cells: Cells = entry.cells
    return cells


def _shown(resource: Resource, entry: Entry, include: Include, version: str) -> Obj | None:
    if include == "None":
        return None
    if include == "Object":
        return versions.to_served(entry.object, resource)
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": entry.object["metadata"],
    }


def row(resource: Resource, entry: Entry, now: float, include: Include = "Metadata", version: str = "v1") -> Obj:
    """One row."""
    cells = [cell.text(now) if type(cell) is Age else cell for cell in _cells(resource, entry)]
    out: dict[str, Any] = {"cells": cells}
    if resource.storage == "pods":
        finished = pods.conditions(entry.object)
        if finished:
            out["conditions"] = finished
    out["object"] = _shown(resource, entry, include, version)
    return out


def render(
    resource: Resource,
    entries: Iterable[Entry],
    now: float,
    include: Include = "Metadata",
    *,
    version: str = "v1",
    metadata: Obj | None = None,
) -> Obj:
    """A Table.

    Args:
        resource: whose columns.
        entries: one row each.
        now: world seconds, for ages.
        include: what `rows[].object` holds.
        version: of meta.k8s.io (`v1` or `v1beta1`).
        metadata: list metadata.
    """
    order = _ORDERS.get(resource.storage)
    if order is not None:
        entries = sorted(entries, key=lambda entry: order(entry.object))
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": metadata or {},
        "columnDefinitions": columns(resource),
        "rows": [row(resource, entry, now, include, version) for entry in entries],
    }
