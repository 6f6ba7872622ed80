"""Who has to leave: taint eviction after the tolerated time, and the pod garbage collector for pods without a node."""

from math import ceil, inf

from itbench.kube.client import ApiError, Change, Obj, Objs
from itbench.kube.controllers.base import Context, Controller, is_deleting, seconds
from itbench.kube.controllers.cache import Cache, Key, key_of
from itbench.kube.controllers.pods import is_finished
from itbench.kube.scheduler.filters import tolerates

GC_PERIOD_S = 20.0
QUARANTINE_S = 40.0


def disrupt(context: Context, pod: Obj, reason: str, message: str, phase: str = "") -> None:
    """Mark a pod as target of a disruption (and as failed, when nobody will ever report about it)."""
    new = {"type": "DisruptionTarget", "status": "True", "lastProbeTime": None, "lastTransitionTime": context.stamp()}
    new |= {"reason": reason, "message": message}
    if pod["metadata"].get("generation"):
        new["observedGeneration"] = pod["metadata"]["generation"]
    status = pod.get("status") or {}
    others = [c for c in status.get("conditions") or () if c["type"] != "DisruptionTarget"]
    patch: Obj = {"conditions": [*others, new]}
    if phase:
        patch["phase"] = phase
    namespace, name = key_of(pod)
    context.client.patch("pods", name, namespace, {"status": patch}, subresource="status")


def _keys_of_node(change: Change, cache: Cache) -> list[Key]:
    def evicting(obj: Obj | None) -> Objs:
        return [t for t in ((obj or {}).get("spec") or {}).get("taints") or () if t["effect"] == "NoExecute"]

    if change.type == "DELETED" or evicting(change.object) == evicting(change.previous):
        return []
    return [key_of(pod) for pod in cache.pods_on(change.object["metadata"]["name"])]


def _keys_of_pod(change: Change, cache: Cache) -> list[Key]:
    pod, before = change.object, change.previous
    node = pod["spec"].get("nodeName")
    if change.type == "DELETED" or not node or (before is not None and before["spec"].get("nodeName") == node):
        return []
    return [key_of(pod)]


def _since(context: Context, node: str, taints: Objs) -> list[float]:
    """When each taint came: its own time, or when it was first seen (people's taints carry none)."""
    seen = context.state.setdefault("seen", {})
    names = ["|".join((t["key"], t.get("value", ""), t["effect"])) for t in taints]
    old = seen.get(node, {})
    seen[node] = {name: old.get(name, context.now) for name in names}
    if not taints:
        del seen[node]
    return [seconds(t.get("timeAdded"), seen[node][n]) for t, n in zip(taints, names, strict=True)]


def _leave_at(pod: Obj, taints: Objs, since: list[float], now: float) -> float:
    """World second at which the pod must go; inf when it tolerates everything for ever."""
    tolerations = pod["spec"].get("tolerations") or ()
    leave = inf
    for taint, added in zip(taints, since, strict=True):
        fitting = [t for t in tolerations if tolerates(t, taint)]
        if not fitting:
            return now
        limits = [max(0, t["tolerationSeconds"]) for t in fitting if t.get("tolerationSeconds") is not None]
        if limits:
            leave = min(leave, added + min(limits))
    return leave


def reconcile_taints(context: Context, namespace: str, name: str) -> None:
    """Delete one pod when its tolerations have run out."""
    pod = context.cache.get("pods", namespace, name)
    marked = context.state.setdefault("marked", {})
    text = f"{namespace}/{name}"
    if pod is None or is_deleting(pod):
        marked.pop(text, None)
        return
    node = context.cache.get("nodes", "", pod["spec"].get("nodeName", ""))
    taints = [t for t in ((node or {}).get("spec") or {}).get("taints") or () if t["effect"] == "NoExecute"]
    since = _since(context, pod["spec"].get("nodeName", ""), taints)
    leave = _leave_at(pod, taints, since, context.now)
    if leave > context.now:
        if leave < inf:
            marked[text] = True
            context.requeue((namespace, name), leave)
        elif marked.pop(text, None):
            context.event(pod, "TaintManagerEviction", f"Cancelling deletion of Pod {text}")
        return
    marked.pop(text, None)
    context.event(pod, "TaintManagerEviction", f"Marking for deletion Pod {text}")
    disrupt(context, pod, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")
    _delete(context, pod, None)


def _delete(context: Context, pod: Obj, grace_s: int | None) -> None:
    namespace, name = key_of(pod)
    try:
        context.client.delete("pods", name, namespace, grace_s=grace_s, uid=pod["metadata"]["uid"])
    except ApiError as error:
        if error.code not in (404, 409):
            raise


def _gc_keys_of_node(change: Change, cache: Cache) -> list[Key]:
    return [("", change.object["metadata"]["name"])] if change.type != "MODIFIED" else []


def _gc_keys_of_pod(change: Change, cache: Cache) -> list[Key]:
    """Pods bound to a node that does not exist."""
    node = change.object["spec"].get("nodeName")
    if change.type == "DELETED" or not node or cache.get("nodes", "", node) is not None:
        return []
    return [("", node)]


def reconcile_orphans(context: Context, _: str, name: str) -> None:
    """Pods of a node that is gone are force-deleted at the second look after the quarantine."""
    found = context.state.setdefault("missing", {})
    if context.cache.get("nodes", "", name) is not None or not context.cache.pods_on(name):
        found.pop(name, None)
        return
    if name not in found:
        found[name] = ceil(context.now / GC_PERIOD_S) * GC_PERIOD_S + QUARANTINE_S
    if context.now < found[name]:
        context.requeue(("", name), found[name])
        return
    for pod in context.cache.pods_on(name):
        if not is_finished(pod):
            disrupt(context, pod, "DeletionByPodGC", "PodGC: node no longer exists", "Failed")
        _delete(context, pod, 0)


TAINTS = Controller("taint-eviction-controller", {"nodes": _keys_of_node, "pods": _keys_of_pod}, reconcile_taints)
POD_GC = Controller("pod-garbage-collector", {"nodes": _gc_keys_of_node, "pods": _gc_keys_of_pod}, reconcile_orphans)
