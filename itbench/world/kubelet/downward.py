"""The downward API: what a container is told of its own pod, in its environment and in volumes. Called by both."""

import re
from json import dumps
from math import ceil

from itbench.kube.client import Obj
from itbench.kube.quantity import parse_quantity
from itbench.world.kubelet.state import PodState


def field_of(obj: Obj, pod: PodState, path: str) -> str:
    """A downward-API field of a pod."""
    meta = obj["metadata"]
    simple = {
        "metadata.name": pod.name,
        "metadata.namespace": pod.namespace,
        "metadata.uid": pod.uid,
        "spec.nodeName": pod.node,
        "spec.serviceAccountName": obj["spec"].get("serviceAccountName", "default"),
        "status.podIP": pod.ip,
        "status.podIPs": pod.ip,
        "status.hostIP": pod.node,
    }
    if path in simple:
        return str(simple[path])
    if path in ("metadata.labels", "metadata.annotations"):
        rows = sorted((meta.get(path.partition(".")[2]) or {}).items())
        return "\n".join(f"{key}={dumps(value, ensure_ascii=False)}" for key, value in rows)
    found = re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path)
    return str((meta.get(found[1]) or {}).get(found[2], "")) if found else ""


def resource_of(spec: Obj, reference: Obj) -> str:
    """A request or limit of a container, in units of the divisor."""
    kind, _, name = str(reference["resource"]).partition(".")
    quantity = ((spec.get("resources") or {}).get(kind) or {}).get(name)
    if quantity is None:
        return "0"
    divisor = float(parse_quantity(str(reference.get("divisor") or "1"))) or 1.0
    amount = float(parse_quantity(str(quantity))) / divisor
    return f"{ceil(amount)}"
