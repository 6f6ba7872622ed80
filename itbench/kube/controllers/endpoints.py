"""Endpoints and EndpointSlice controllers: which pod addresses stand behind a Service, on which ports, and in which state."""

from collections.abc import Callable
from typing import Any

from itbench.kube.client import ApiError, Change, Obj, Objs
from itbench.kube.controllers.base import Context, Controller, is_deleting, own_key, owner_reference
from itbench.kube.controllers.cache import Cache, Key, key_of, labels_of
from itbench.kube.controllers.pods import is_finished, is_ready

SLICES = "endpointslices.discovery.k8s.io"
SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
SLICE_MANAGER = "endpointslice-controller.k8s.io"
MIRRORED_BY = "endpointslicemirroring-controller.k8s.io"
HEADLESS = "service.kubernetes.io/headless"
TRIGGER = "endpoints.kubernetes.io/last-change-trigger-time"
ZONE = "topology.kubernetes.io/zone"
PER_SLICE = 100

Ports = tuple[tuple[str, str, int, str], ...]
"""(name, protocol, number, appProtocol) of each port that a pod offers."""


def _facts(pod: Obj) -> tuple[object, ...]:
    """What of a pod endpoints show."""
    status, spec = pod.get("status") or {}, pod["spec"]
    return (
        status.get("podIP"),
        is_ready(pod),
        is_deleting(pod),
        is_finished(pod),
        spec.get("nodeName"),
        labels_of(pod),
    )


def _keys_of_pod(change: Change, cache: Cache) -> list[Key]:
    pod, before = change.object, change.previous
    if change.type == "MODIFIED" and before is not None and _facts(pod) == _facts(before):
        return []
    namespace = pod["metadata"]["namespace"]
    found: dict[Key, None] = {}
    for labels in (labels_of(pod), labels_of(before) if before else {}):
        for service in cache.services_selecting(namespace, labels):
            found[key_of(service)] = None
    return list(found)


def _keys_of_slice(change: Change, cache: Cache) -> list[Key]:
    name = labels_of(change.object).get(SERVICE_NAME)
    return [(change.object["metadata"]["namespace"], name)] if name else []


def _port_of(pod: Obj, target: Any, protocol: str) -> int | None:
    """The number of a target port in a pod; names are looked up in its containers (restartable init containers too)."""
    if not isinstance(target, str):
        return int(target)
    sidecars = [c for c in pod["spec"].get("initContainers") or () if c.get("restartPolicy") == "Always"]
    for container in [*pod["spec"]["containers"], *sidecars]:
        for port in container.get("ports") or ():
            if port.get("name") == target and port.get("protocol", "TCP") == protocol:
                return int(port["containerPort"])
    return int(target) if target.isdigit() else None


def _ports(service: Obj, pod: Obj) -> Ports:
    found = []
    for port in service["spec"].get("ports") or ():
        protocol = port.get("protocol", "TCP")
        number = _port_of(pod, port.get("targetPort") or port["port"], protocol)
        if number is not None:
            found.append((port.get("name", ""), protocol, number, port.get("appProtocol", "")))
    return tuple(found)


def _members(context: Context, service: Obj) -> Objs:
    pods = context.cache.pods_with(service["metadata"]["namespace"], service["spec"]["selector"])
    return [p for p in pods if (p.get("status") or {}).get("podIP") and not is_finished(p)]


def _labels(service: Obj, extra: Obj) -> Obj:
    headless = {HEADLESS: ""} if service["spec"].get("clusterIP") == "None" else {}
    return {**labels_of(service), **headless, **extra}


def _target(pod: Obj) -> Obj:
    meta = pod["metadata"]
    return {"kind": "Pod", "namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]}


def _has_hostname(service: Obj, pod: Obj) -> bool:
    spec = pod["spec"]
    return bool(spec.get("hostname") and spec.get("subdomain") == service["metadata"]["name"])


def _endpoint(context: Context, service: Obj, pod: Obj) -> Obj:
    serving, terminating = is_ready(pod), is_deleting(pod)
    ready = bool(service["spec"].get("publishNotReadyAddresses")) or (serving and not terminating)
    found: Obj = {
        "addresses": [pod["status"]["podIP"]],
        "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
    }
    if _has_hostname(service, pod):
        found["hostname"] = pod["spec"]["hostname"]
    node = pod["spec"].get("nodeName", "")
    if node:
        found["nodeName"] = node
    found["targetRef"] = _target(pod)
    zone = labels_of(context.cache.get("nodes", "", node) or {"metadata": {}}).get(ZONE)
    if zone:
        found["zone"] = zone
    return found


def _slice_port(port: tuple[str, str, int, str]) -> Obj:
    name, protocol, number, app = port
    return {"name": name, "port": number, "protocol": protocol, **({"appProtocol": app} if app else {})}


def _wanted_slices(context: Context, service: Obj) -> list[tuple[Objs | None, Objs | None]]:
    """(ports, endpoints) of each slice; a Service without endpoints has one empty slice."""
    groups: dict[Ports, Objs] = {}
    for pod in _members(context, service):
        groups.setdefault(_ports(service, pod), []).append(_endpoint(context, service, pod))
    wanted: list[tuple[Objs | None, Objs | None]] = []
    for ports, endpoints in groups.items():
        for start in range(0, len(endpoints), PER_SLICE):
            wanted.append(([_slice_port(p) for p in ports] or None, endpoints[start : start + PER_SLICE]))
    return wanted or [(None, None)]


def _owned_slices(context: Context, namespace: str, name: str, uid: str) -> Objs:
    found = context.cache.owned(uid, SLICES)
    return [
        s for s in found if labels_of(s).get(SERVICE_NAME) == name and labels_of(s).get(MANAGED_BY) == SLICE_MANAGER
    ]


def reconcile_slices(context: Context, namespace: str, name: str) -> None:
    """Bring the slices of a Service up to date; slices of a Service that is gone are garbage and collected."""
    service = context.cache.get("services", namespace, name)
    if service is None or is_deleting(service):
        return
    have = _owned_slices(context, namespace, name, service["metadata"]["uid"])
    if not service["spec"].get("selector") or service["spec"].get("type") == "ExternalName":
        for obj in have:
            context.client.delete(SLICES, obj["metadata"]["name"], namespace)
        return
    labels = _labels(service, {SERVICE_NAME: name, MANAGED_BY: SLICE_MANAGER})
    for ports, endpoints in _wanted_slices(context, service):
        match = _closest(have, ports)
        if match is None:
            _create_slice(context, service, labels, ports, endpoints)
            continue
        have.remove(match)
        if _content(match) != (endpoints, ports, labels):
            _update_slice(context, match, labels, ports, endpoints)
    for obj in have:
        context.client.delete(SLICES, obj["metadata"]["name"], namespace)


def _content(obj: Obj) -> tuple[Objs | None, Objs | None, Obj]:
    return obj.get("endpoints") or None, _slice_ports(obj), labels_of(obj)


def _slice_ports(obj: Obj) -> Objs | None:
    """Ports with their names, also where a server leaves empty ones out."""
    return [{**port, "name": port.get("name", "")} for port in obj.get("ports") or ()] or None


def _closest(have: Objs, ports: Objs | None) -> Obj | None:
    same = [s for s in have if _slice_ports(s) == ports]
    empty = [s for s in have if not s.get("endpoints")]
    found = same or empty or (have if ports is None else [])
    return found[0] if found else None


def _create_slice(context: Context, service: Obj, labels: Obj, ports: Objs | None, endpoints: Objs | None) -> None:
    meta = service["metadata"]
    body = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "generateName": meta["name"] + "-",
            "namespace": meta["namespace"],
            "labels": labels,
            "annotations": {TRIGGER: context.stamp()},
            "ownerReferences": [owner_reference(service)],
        },
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": ports,
    }
    context.client.create(SLICES, body, meta["namespace"])


def _update_slice(context: Context, old: Obj, labels: Obj, ports: Objs | None, endpoints: Objs | None) -> None:
    annotations = {**(old["metadata"].get("annotations") or {}), TRIGGER: context.stamp()}
    meta = {**old["metadata"], "labels": labels, "annotations": annotations}
    context.client.update(SLICES, {**old, "metadata": meta, "ports": ports, "endpoints": endpoints})


def _address(service: Obj, pod: Obj) -> Obj:
    found: Obj = {"ip": pod["status"]["podIP"]}
    if _has_hostname(service, pod):
        found["hostname"] = pod["spec"]["hostname"]
    if pod["spec"].get("nodeName"):
        found["nodeName"] = pod["spec"]["nodeName"]
    found["targetRef"] = _target(pod)
    return found


def _subsets(context: Context, service: Obj) -> Objs:
    """Pods with equal ports share a subset; ready and not ready addresses apart."""
    groups: dict[Ports, tuple[Objs, Objs]] = {}
    publish = bool(service["spec"].get("publishNotReadyAddresses"))
    for pod in _members(context, service):
        if is_deleting(pod) and not publish:
            continue
        ready, unready = groups.setdefault(_ports(service, pod), ([], []))
        (ready if publish or is_ready(pod) else unready).append(_address(service, pod))
    return [_subset(ports, ready, unready) for ports, (ready, unready) in groups.items()]


def _subset(ports: Ports, ready: Objs, unready: Objs) -> Obj:
    found: Obj = {}
    if ready:
        found["addresses"] = ready
    if unready:
        found["notReadyAddresses"] = unready
    if ports:
        found["ports"] = [
            {
                **({"name": name} if name else {}),
                "port": number,
                "protocol": protocol,
                **({"appProtocol": app} if app else {}),
            }
            for name, protocol, number, app in ports
        ]
    return found


def reconcile_endpoints(context: Context, namespace: str, name: str) -> None:
    """Bring the Endpoints object of a Service up to date."""
    service = context.cache.get("services", namespace, name)
    old = context.cache.get("endpoints", namespace, name)
    if service is None:
        if old is not None:
            context.client.delete("endpoints", name, namespace)
        return
    if is_deleting(service) or not service["spec"].get("selector") or service["spec"].get("type") == "ExternalName":
        return
    subsets = _subsets(context, service)
    labels = _labels(service, {"endpoints.kubernetes.io/managed-by": "endpoint-controller"})
    if old is not None and (old.get("subsets") or []) == subsets and labels_of(old) == labels:
        return
    meta = {"name": name, "namespace": namespace, "labels": labels, "annotations": {TRIGGER: context.stamp()}}
    body: Obj = {"apiVersion": "v1", "kind": "Endpoints", "metadata": meta}
    if subsets:
        body["subsets"] = subsets
    if old is None:
        context.client.create("endpoints", body, namespace)
    else:
        body["metadata"] = {**old["metadata"], "labels": labels}
        context.client.update("endpoints", body)


def _mirror_keys(change: Change, cache: Cache) -> list[Key]:
    return [key_of(change.object)] if "endpoints.kubernetes.io/managed-by" not in labels_of(change.object) else []


def reconcile_mirror(context: Context, namespace: str, name: str) -> None:
    """Hand-written Endpoints of a Service without selector appear as a slice of their own."""
    endpoints = context.cache.get("endpoints", namespace, name)
    service = context.cache.get("services", namespace, name)
    if endpoints is None or service is None or service["spec"].get("selector"):
        return
    if labels_of(endpoints).get("endpointslice.kubernetes.io/skip-mirror") == "true":
        return
    have = context.cache.owned(endpoints["metadata"]["uid"], SLICES)
    labels = {**labels_of(endpoints), SERVICE_NAME: name, MANAGED_BY: MIRRORED_BY}
    for subset in endpoints.get("subsets") or ():
        ports = [
            {"name": p.get("name", ""), "port": p["port"], "protocol": p.get("protocol", "TCP")}
            for p in subset["ports"]
        ]
        members = [_mirrored(a, True) for a in subset.get("addresses") or ()]
        members += [_mirrored(a, False) for a in subset.get("notReadyAddresses") or ()]
        if have:
            old = have.pop(0)
            if (old.get("endpoints"), old.get("ports")) != (members, ports):
                _update_slice(context, old, labels, ports, members)
        else:
            _create_slice(context, endpoints, labels, ports, members)
    for obj in have:
        context.client.delete(SLICES, obj["metadata"]["name"], namespace)


def _mirrored(address: Obj, ready: bool) -> Obj:
    return {"addresses": [address["ip"]], "conditions": {"ready": ready}}


def _guard(reconcile: Callable[[Context, str, str], None]) -> Callable[[Context, str, str], None]:
    """A namespace that is going away refuses new objects: not worth a retry."""

    def guarded(context: Context, namespace: str, name: str) -> None:
        try:
            reconcile(context, namespace, name)
        except ApiError as error:
            owner = context.cache.get("namespaces", "", namespace)
            if error.code == 404 or (error.code == 403 and owner is not None and is_deleting(owner)):
                return
            raise

    return guarded


SLICE_CONTROLLER = Controller(
    "endpointslice-controller",
    {"services": own_key, "pods": _keys_of_pod, SLICES: _keys_of_slice},
    _guard(reconcile_slices),
)
ENDPOINTS_CONTROLLER = Controller(
    "endpoint-controller",
    {"services": own_key, "pods": _keys_of_pod, "endpoints": own_key},
    _guard(reconcile_endpoints),
)
MIRROR_CONTROLLER = Controller(
    "endpointslicemirroring-controller", {"endpoints": _mirror_keys, "services": own_key}, _guard(reconcile_mirror)
)
