"""kube-state-metrics of one cluster: what the objects say. Recomputed only when an object has changed."""

from collections.abc import Callable, Iterator

from itbench.core.clock import parse_rfc3339, unix
from itbench.kube.client import Obj
from itbench.kube.quantity import parse_quantity
from itbench.telemetry.labels import freeze
from itbench.telemetry.metrics import MetricStore
from itbench.world.metrics.sheet import Row, Sheet
from itbench.world.metrics.state_more import more_rows
from itbench.world.objects import Objects

JOB = {"job": "kube-state-metrics", "instance": "kube-state-metrics:8080"}
PHASES = ("Pending", "Succeeded", "Failed", "Unknown", "Running")
UNITS = {"cpu": "core", "memory": "byte", "ephemeral_storage": "byte", "pods": "integer"}


def _row(name: str, value: float, /, **labels: str) -> Row:
    return freeze({"__name__": name, **JOB, **labels}), float(value)


def _created(meta: Obj) -> float:
    return unix(parse_rfc3339(meta["creationTimestamp"]))


def _node_info(status: Obj) -> dict[str, str]:
    info = status.get("nodeInfo") or {}
    addresses = {each["type"]: each["address"] for each in status.get("addresses") or ()}
    return {
        "kernel_version": info.get("kernelVersion", ""),
        "os_image": info.get("osImage", ""),
        "container_runtime_version": info.get("containerRuntimeVersion", ""),
        "kubelet_version": info.get("kubeletVersion", ""),
        "internal_ip": addresses.get("InternalIP", ""),
    }


class StateMetrics:
    """The exporter of one cluster."""

    def __init__(self, store: MetricStore, objects: Objects, plane: str) -> None:
        suffix = "" if plane == "main" else f"/{plane}"
        self._sheet, self._objects = Sheet(store, f"kube-state-metrics{suffix}"), objects
        self._seen, self._rows = -1, list[Row]()
        self._made: dict[str, dict[str, tuple[Obj, list[Row]]]] = {}
        """By resource and uid: an object as it was when its rows were made, and the rows."""

    def scrape(self, now: float) -> None:
        """One scrape."""
        if self._objects.version != self._seen:
            self._rows = [
                *self._of("nodes", _node),
                *self._of("pods", _pod),
                *self._of("deployments.apps", _deployment),
                *self._of("replicasets.apps", _replica_set),
                *more_rows(self._objects, JOB),
            ]
            self._seen = self._objects.version
        self._sheet.write(now, self._rows)

    def _of(self, resource: str, rows: Callable[[Obj], Iterator[Row]]) -> Iterator[Row]:
        """The rows of every object of a resource; those of objects that are still the same are not made anew."""
        before, now = self._made.get(resource, {}), dict[str, tuple[Obj, list[Row]]]()
        for obj in self._objects.all(resource):
            known = before.get(obj["metadata"]["uid"])
            if known is None or known[0] is not obj:
                known = obj, list(rows(obj))
            now[obj["metadata"]["uid"]] = known
            yield from known[1]
        self._made[resource] = now


def _node(node: Obj) -> Iterator[Row]:
    name, status = node["metadata"]["name"], node.get("status") or {}
    yield _row("kube_node_info", 1, node=name, **_node_info(status))
    yield _row("kube_node_created", _created(node["metadata"]), node=name)
    yield _row("kube_node_spec_unschedulable", bool(node["spec"].get("unschedulable")), node=name)
    for condition in status.get("conditions") or ():
        for state in ("true", "false", "unknown"):
            value = condition["status"].lower() == state
            yield _row("kube_node_status_condition", value, node=name, condition=condition["type"], status=state)
    for taint in node["spec"].get("taints") or ():
        labels = {"key": taint["key"], "value": taint.get("value", ""), "effect": taint["effect"]}
        yield _row("kube_node_spec_taint", 1, node=name, **labels)
    for kind in ("allocatable", "capacity"):
        for resource, amount in (status.get(kind) or {}).items():
            resource = resource.replace("-", "_")
            if unit := UNITS.get(resource):
                size = float(parse_quantity(str(amount)))
                yield _row(f"kube_node_status_{kind}", size, node=name, resource=resource, unit=unit)


def _pod(pod: Obj) -> Iterator[Row]:
    meta, status = pod["metadata"], pod.get("status") or {}
    who = {"namespace": meta.get("namespace", ""), "pod": meta["name"], "uid": meta["uid"]}
    node, phase = pod["spec"].get("nodeName", ""), status.get("phase", "Pending")
    owner: Obj = next((o for o in meta.get("ownerReferences") or () if o.get("controller")), {})
    made_by = {"created_by_kind": owner.get("kind", ""), "created_by_name": owner.get("name", "")}
    where = {"node": node, "pod_ip": status.get("podIP", ""), "host_ip": status.get("hostIP", "")}
    yield _row("kube_pod_info", 1, **who, **where, **made_by)
    yield _row("kube_pod_created", _created(meta), **who)
    yield _row("kube_pod_owner", 1, **who, owner_kind=owner.get("kind", ""), owner_name=owner.get("name", ""))
    for each in PHASES:
        yield _row("kube_pod_status_phase", each == phase, **who, phase=each)
    yield from _conditions(status, who)
    if status.get("startTime"):
        yield _row("kube_pod_start_time", unix(parse_rfc3339(status["startTime"])), **who)
    yield from _containers(pod, status, who, node)


def _conditions(status: Obj, who: dict[str, str]) -> Iterator[Row]:
    known = {c["type"]: c["status"].lower() for c in status.get("conditions") or ()}
    for kind, name in (("Ready", "kube_pod_status_ready"), ("PodScheduled", "kube_pod_status_scheduled")):
        for state in ("true", "false", "unknown"):
            yield _row(name, known.get(kind, "false") == state, **who, condition=state)


def _containers(pod: Obj, status: Obj, who: dict[str, str], node: str) -> Iterator[Row]:
    for spec in pod["spec"]["containers"]:
        for kind in ("limits", "requests"):
            for resource, amount in ((spec.get("resources") or {}).get(kind) or {}).items():
                labels = {
                    **who,
                    "container": spec["name"],
                    "node": node,
                    "resource": resource,
                    "unit": UNITS.get(resource, ""),
                }
                yield _row(f"kube_pod_container_resource_{kind}", float(parse_quantity(str(amount))), **labels)
    for item in status.get("containerStatuses") or ():
        labels = {**who, "container": item["name"]}
        state = item.get("state") or {}
        yield _row(
            "kube_pod_container_info", 1, **labels, image=item.get("image", ""), image_id=item.get("imageID", "")
        )
        yield _row("kube_pod_container_status_ready", bool(item.get("ready")), **labels)
        yield _row("kube_pod_container_status_restarts_total", item.get("restartCount", 0), **labels)
        for kind in ("running", "waiting", "terminated"):
            yield _row(f"kube_pod_container_status_{kind}", kind in state, **labels)
        for kind in ("waiting", "terminated"):
            if kind in state:
                reason = state[kind].get("reason", "")
                yield _row(f"kube_pod_container_status_{kind}_reason", 1, **labels, reason=reason)
        last = (item.get("lastState") or {}).get("terminated")
        if last:
            yield _row("kube_pod_container_status_last_terminated_reason", 1, **labels, reason=last.get("reason", ""))


def _deployment(item: Obj) -> Iterator[Row]:
    meta, spec, status = item["metadata"], item["spec"], item.get("status") or {}
    who = {"namespace": meta.get("namespace", ""), "deployment": meta["name"]}
    yield _row("kube_deployment_created", _created(meta), **who)
    yield _row("kube_deployment_spec_replicas", spec.get("replicas", 1), **who)
    yield _row("kube_deployment_spec_paused", bool(spec.get("paused")), **who)
    yield _row("kube_deployment_metadata_generation", meta.get("generation", 1), **who)
    yield _row("kube_deployment_status_observed_generation", status.get("observedGeneration", 0), **who)
    fields = {"": "replicas", "_ready": "readyReplicas", "_available": "availableReplicas"}
    fields |= {"_unavailable": "unavailableReplicas", "_updated": "updatedReplicas"}
    for suffix, field in fields.items():
        yield _row(f"kube_deployment_status_replicas{suffix}", status.get(field, 0), **who)
    for condition in status.get("conditions") or ():
        for state in ("true", "false", "unknown"):
            value = condition["status"].lower() == state
            yield _row("kube_deployment_status_condition", value, **who, condition=condition["type"], status=state)


def _replica_set(item: Obj) -> Iterator[Row]:
    meta = item["metadata"]
    who = {"namespace": meta.get("namespace", ""), "replicaset": meta["name"]}
    owner: Obj = next((o for o in meta.get("ownerReferences") or () if o.get("controller")), {})
    yield _row("kube_replicaset_owner", 1, **who, owner_kind=owner.get("kind", ""), owner_name=owner.get("name", ""))
    yield _row("kube_replicaset_spec_replicas", item["spec"].get("replicas", 0), **who)
    yield _row("kube_replicaset_status_ready_replicas", (item.get("status") or {}).get("readyReplicas", 0), **who)
