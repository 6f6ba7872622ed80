"""APIService objects: one per group-version that is served here, and the verdict on those that point elsewhere."""

from collections.abc import Iterator

from itbench.kube.client import Change, Obj
from itbench.kube.controllers.base import Context, Controller, own_key
from itbench.kube.controllers.cache import Cache, Key
from itbench.kube.controllers.conditions import upsert
from itbench.kube.custom.cleanup import DEFINITIONS
from itbench.kube.custom.serving import is_true

SERVICES = "apiservices.apiregistration.k8s.io"
AUTOMANAGED = "kube-aggregator.kubernetes.io/automanaged"
_UPDATE = "update"
"""Key of the pass over all definitions."""
_PRIORITIES = {
    ("", "v1"): (18000, 1),
    ("apps", "v1"): (17800, 15),
    ("events.k8s.io", "v1"): (17750, 15),
    ("authentication.k8s.io", "v1"): (17700, 15),
    ("authorization.k8s.io", "v1"): (17600, 15),
    ("autoscaling", "v1"): (17500, 15),
    ("autoscaling", "v2"): (17500, 30),
    ("batch", "v1"): (17400, 15),
    ("certificates.k8s.io", "v1"): (17300, 15),
    ("networking.k8s.io", "v1"): (17200, 15),
    ("policy", "v1"): (17100, 15),
    ("rbac.authorization.k8s.io", "v1"): (17000, 15),
    ("storage.k8s.io", "v1"): (16800, 15),
    ("apiextensions.k8s.io", "v1"): (16700, 15),
    ("admissionregistration.k8s.io", "v1"): (16700, 15),
    ("scheduling.k8s.io", "v1"): (16600, 15),
    ("coordination.k8s.io", "v1"): (16500, 15),
    ("node.k8s.io", "v1"): (16300, 15),
    ("discovery.k8s.io", "v1"): (16200, 15),
    ("resource.k8s.io", "v1"): (16200, 21),
    ("flowcontrol.apiserver.k8s.io", "v1"): (16100, 21),
}
"""Group and version priorities of what the server itself serves."""


def _object(group: str, version: str, priorities: tuple[int, int], managed: str) -> Obj:
    spec: Obj = {"group": group} if group else {}
    spec |= {"version": version, "groupPriorityMinimum": priorities[0], "versionPriority": priorities[1]}
    metadata = {"name": f"{version}.{group}", "labels": {AUTOMANAGED: managed}}
    return {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": metadata, "spec": spec}


def objects() -> Iterator[tuple[str, Obj]]:
    """What a cluster starts with, for `bootstrap`."""
    for (group, version), priorities in _PRIORITIES.items():
        yield SERVICES, _object(group, version, priorities, "onstart")


def _keys_of_definitions(change: Change, cache: Cache) -> list[Key]:
    return [("", _UPDATE)]


def _reconcile(context: Context, _: str, name: str) -> None:
    if name == _UPDATE:
        _follow_definitions(context)
        return
    service = context.cache.get(SERVICES, "", name)
    if service is None:
        _follow_definitions(context)
        return
    status, reason, message = _verdict(context, service)
    row = {
        "type": "Available",
        "status": status,
        "lastTransitionTime": context.stamp(),
        "reason": reason,
        "message": message,
    }
    state = service.get("status") or {}
    conditions = upsert(state.get("conditions"), row)
    if conditions != state.get("conditions"):
        new = {**service, "status": {**state, "conditions": conditions}}
        context.client.update(SERVICES, new, subresource="status")


def _verdict(context: Context, service: Obj) -> tuple[str, str, str]:
    """Whether a group-version is there: ours always, others only as far as their Service and its endpoints are."""
    target = service["spec"].get("service")
    if target is None:
        return "True", "Local", "Local APIServices are always available"
    namespace, name, port = target.get("namespace", ""), target.get("name", ""), target.get("port", 443)
    found = context.cache.get("services", namespace, name)
    if found is None:
        return "False", "ServiceNotFound", f'service/{name} in "{namespace}" is not present'
    spec = found.get("spec") or {}
    if spec.get("type") != "ExternalName" and not any(row["port"] == port for row in spec.get("ports") or ()):
        text = f'service/{name} in "{namespace}" is not listening on port {port}'
        return "False", "ServicePortError", text
    slices = [
        one
        for one in context.cache.list("endpointslices.discovery.k8s.io", namespace)
        if (one["metadata"].get("labels") or {}).get("kubernetes.io/service-name") == name
    ]
    if not slices:
        return "False", "EndpointsNotFound", f'cannot find endpointslices for service/{name} in "{namespace}"'
    if not any(_has_ready(one) for one in slices):
        port_name = next((row.get("name", "") for row in spec.get("ports") or () if row["port"] == port), "")
        text = f'endpointslices for service/{name} in "{namespace}" have no addresses with port name "{port_name}"'
        return "False", "MissingEndpoints", text
    address = f"https://{spec.get('clusterIP', '')}:{port}/apis/{service['spec']['group']}/{service['spec']['version']}"
    text = f'failing or missing response from {address}: Get "{address}": context deadline exceeded'
    return "False", "FailedDiscoveryCheck", text


def _has_ready(one: Obj) -> bool:
    return any(
        (row.get("conditions") or {}).get("ready", True) and row.get("addresses") for row in one.get("endpoints") or ()
    )


def _follow_definitions(context: Context) -> None:
    """One object per group-version of established definitions, and none for what is gone."""
    wanted: dict[str, Obj] = {}
    for definition in context.cache.list(DEFINITIONS):
        spec = definition["spec"]
        if is_true(definition, "Established"):
            for version in spec["versions"]:
                if version["served"]:
                    made = _object(spec["group"], version["name"], (1000, 100), "true")
                    wanted[made["metadata"]["name"]] = made
    known = {obj["metadata"]["name"]: obj for obj in context.cache.list(SERVICES)}
    for name in sorted(wanted.keys() - known.keys()):
        context.client.create(SERVICES, wanted[name])
    for name in sorted(known.keys() - wanted.keys()):
        if (known[name]["metadata"].get("labels") or {}).get(AUTOMANAGED) == "true":
            context.client.delete(SERVICES, name)


def _keys_of_service(change: Change, cache: Cache) -> list[Key]:
    """APIServices that point to the Service of this name (or of this EndpointSlice)."""
    meta = change.object["metadata"]
    of_slice = (meta.get("labels") or {}).get("kubernetes.io/service-name", "")
    wanted = (meta.get("namespace"), meta["name"] if change.resource == "services" else of_slice)
    found = []
    for one in cache.list(SERVICES):
        target = one["spec"].get("service")
        if target is not None and (target.get("namespace"), target.get("name")) == wanted:
            found.append(("", one["metadata"]["name"]))
    return found


CONTROLLER = Controller(
    "apiservice-controller",
    {
        SERVICES: own_key,
        DEFINITIONS: _keys_of_definitions,
        "services": _keys_of_service,
        "endpointslices.discovery.k8s.io": _keys_of_service,
    },
    _reconcile,
    "kube-aggregator",
)
