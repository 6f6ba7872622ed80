"""Facts about pods that several controllers need: ready, available, finished, deletion order, pods from templates."""

from collections.abc import Callable
from math import inf

from itbench.core.clock import parse_rfc3339
from itbench.kube.client import Obj, Objs
from itbench.kube.controllers.base import is_deleting, owner_reference, whole

FINISHED = ("Succeeded", "Failed")


def condition(obj: Obj, kind: str) -> Obj | None:
    """The status condition of a type."""
    for found in (obj.get("status") or {}).get("conditions") or ():
        if found["type"] == kind:
            return dict(found)
    return None


def phase(pod: Obj) -> str:
    """Phase; Pending before anybody wrote one."""
    return (pod.get("status") or {}).get("phase") or "Pending"


def is_finished(pod: Obj) -> bool:
    """Succeeded or Failed."""
    return phase(pod) in FINISHED


def is_active(pod: Obj) -> bool:
    """Neither finished nor on its way out: what counts as a replica."""
    return not is_finished(pod) and not is_deleting(pod)


def is_ready(pod: Obj) -> bool:
    """Condition Ready is True."""
    for found in (pod.get("status") or {}).get("conditions") or ():
        if found["type"] == "Ready":
            return bool(found["status"] == "True")
    return False


def ready_since(pod: Obj) -> float:
    """World second since which the pod is ready; inf when it is not."""
    found = condition(pod, "Ready")
    if found is None or found["status"] != "True":
        return inf
    since = found.get("lastTransitionTime")
    return parse_rfc3339(since) if since else inf


def available_at(pod: Obj, min_ready_s: int) -> float:
    """World second from which the pod counts as available; inf while it is not ready."""
    if not is_ready(pod):
        return inf
    return ready_since(pod) + min_ready_s if min_ready_s else -inf


def is_available(pod: Obj, min_ready_s: int, now: float) -> bool:
    """Ready for at least `min_ready_s` seconds."""
    return available_at(pod, min_ready_s) <= now


_PHASE_RANK = {"Pending": 0, "Unknown": 1, "Running": 2}


def deletion_rank(crowd: Callable[[Obj], int], now: float) -> Callable[[Obj], tuple[object, ...]]:
    """A sort key that puts the pods to delete first.

    Unassigned before assigned, pending before running, not ready before ready, lower deletion cost, more crowded nodes, ready
    for a shorter time (on a logarithmic scale), more restarts, created later. Source: kube-controller-manager 1.34.

    Args:
        crowd: how many pods of the same owner share a pod's node.
        now: world second.
    """

    def rank(pod: Obj) -> tuple[object, ...]:
        meta = pod["metadata"]
        cost = whole((meta.get("annotations") or {}).get("controller.kubernetes.io/pod-deletion-cost"))
        return (
            bool(pod["spec"].get("nodeName")),
            _PHASE_RANK.get(phase(pod), 2),
            is_ready(pod),
            cost,
            -crowd(pod),
            _log_age(ready_since(pod), now),
            -restarts(pod),
            _log_age(parse_rfc3339(meta["creationTimestamp"]), now),
            meta["uid"],
        )

    return rank


def _log_age(since: float, now: float) -> int:
    """Younger sorts first; ages within the same power of two are equal (LogarithmicScaleDown)."""
    age = now - since
    return 0 if age <= 0 or since == inf else int(age * 1e9).bit_length()


def restarts(pod: Obj) -> int:
    """The highest restart count of the containers."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return max((c.get("restartCount", 0) for c in statuses), default=0)


def from_template(owner: Obj, template: Obj, **meta: object) -> Obj:
    """A pod made from an owner's template.

    Args:
        owner: the controlling object.
        template: `{metadata, spec}`.
        meta: further metadata (`generateName` or `name`, more labels merged over the template's).
    """
    source = template.get("metadata") or {}
    labels = {**(source.get("labels") or {}), **(meta.pop("labels", None) or {})}  # type: ignore[dict-item]
    metadata: Obj = {"namespace": owner["metadata"]["namespace"], **meta, "ownerReferences": [owner_reference(owner)]}
    if labels:
        metadata["labels"] = labels
    for field in ("annotations", "finalizers"):
        if source.get(field):
            metadata[field] = [*source[field]] if field == "finalizers" else {**source[field]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def crowd_of(pods: Objs) -> Callable[[Obj], int]:
    """How many of the active pods share a pod's node."""
    counts: dict[str, int] = {}
    for pod in pods:
        if is_active(pod):
            node = pod["spec"].get("nodeName", "")
            counts[node] = counts.get(node, 0) + 1
    return lambda pod: counts.get(pod["spec"].get("nodeName", ""), 0)
