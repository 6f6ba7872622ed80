"""Node lifecycle: heartbeats that stop, conditions that turn Unknown, taints that follow conditions, pods that stop being ready.

Source: kube-controller-manager 1.34 (grace 50 s, one NoExecute taint per zone and 10 s, none while a whole cluster is silent).
"""

from itbench.core.clock import rfc3339
from itbench.kube.client import ApiError, Change, Obj, Objs
from itbench.kube.controllers.base import Context, Controller, seconds, with_meta
from itbench.kube.controllers.cache import Cache, Key, key_of, labels_of
from itbench.kube.controllers.conditions import find, upsert
from itbench.kube.controllers.pods import condition, is_ready

LEASES = "leases.coordination.k8s.io"
LEASE_NAMESPACE = "kube-node-lease"
GRACE_S = 50.0
TAINT_PERIOD_S = 10.0
DISRUPTED_SHARE = 0.55
LARGE_CLUSTER = 50

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
PRESSURE_TAINTS = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}
OURS = frozenset({NOT_READY, UNREACHABLE, UNSCHEDULABLE, *PRESSURE_TAINTS.values()})
WATCHED = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
TTL = "node.alpha.kubernetes.io/ttl"


def _keys_of_lease(change: Change, cache: Cache) -> list[Key]:
    namespace, name = key_of(change.object)
    return [("", name)] if namespace == LEASE_NAMESPACE and change.type != "DELETED" else []


def _keys_of_node(change: Change, cache: Cache) -> list[Key]:
    """The node; when its readiness changed all nodes, since a zone's state decides about evictions."""
    own = [("", change.object["metadata"]["name"])]
    if change.type == "MODIFIED" and change.previous and _ready(change.previous) == _ready(change.object):
        return own
    return own + [("", node["metadata"]["name"]) for node in cache.list("nodes")]


def _ready(node: Obj) -> str:
    return str((condition(node, "Ready") or {}).get("status", "Unknown"))


def reconcile(context: Context, _: str, name: str) -> None:
    """One look at one node."""
    node = context.cache.get("nodes", "", name)
    known = context.state.setdefault("known", {})
    if node is None:
        if known.pop(name, None):
            _say(
                context,
                {"kind": "Node", "name": name, "uid": name},
                "RemovingNode",
                f"Removing Node {name} from Controller",
            )
        return
    if name not in known:
        known[name] = _ready(node)
        subject = {"kind": "Node", "name": name, "uid": node["metadata"]["uid"]}
        _say(context, subject, "RegisteredNode", f"Registered Node {name} in Controller")
    node = _note_ttl(context, node)
    node = _watch_heartbeat(context, node)
    _follow_readiness(context, node)
    _taint(context, node)


def _say(context: Context, subject: Obj, reason: str, text: str) -> None:
    context.event({**subject, "apiVersion": "v1"}, reason, f"Node {subject['name']} event: {text}")


def _note_ttl(context: Context, node: Obj) -> Obj:
    annotations = node["metadata"].get("annotations") or {}
    if TTL in annotations:
        return node
    return context.client.update("nodes", with_meta(node, annotations={**annotations, TTL: "0"}))


def _heartbeat(context: Context, node: Obj) -> float:
    """World second of the last sign of life."""
    name = node["metadata"]["name"]
    lease = context.cache.get(LEASES, LEASE_NAMESPACE, name)
    beats = [seconds(node["metadata"]["creationTimestamp"])]
    if lease is not None:
        beats.append(seconds((lease.get("spec") or {}).get("renewTime")))
    ready = condition(node, "Ready")
    if ready is not None and ready.get("lastHeartbeatTime"):
        beats.append(seconds(ready["lastHeartbeatTime"]))
    return max(beats)


def _watch_heartbeat(context: Context, node: Obj) -> Obj:
    silent_at = _heartbeat(context, node) + GRACE_S
    if context.now < silent_at:
        context.requeue(("", node["metadata"]["name"]), silent_at)
        return node
    status = node.get("status") or {}
    conditions = status.get("conditions")
    for kind in WATCHED:
        old = find(conditions, kind)
        if old is None or old["status"] != "Unknown":
            conditions = upsert(conditions, _silence(context, kind, old, node))
    if conditions == status.get("conditions"):
        return node
    return context.client.update(
        "nodes", {**node, "status": {**status, "conditions": conditions}}, subresource="status"
    )


def _silence(context: Context, kind: str, old: Obj | None, node: Obj) -> Obj:
    new = {"type": kind, "status": "Unknown", "lastTransitionTime": context.stamp()}
    if old is None:
        beat = node["metadata"]["creationTimestamp"]
        text = {"reason": "NodeStatusNeverUpdated", "message": "Kubelet never posted node status."}
    else:
        beat = old.get("lastHeartbeatTime")
        text = {"reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
    return {**new, **({"lastHeartbeatTime": beat} if beat else {}), **text}


def _follow_readiness(context: Context, node: Obj) -> None:
    """When a node stops being ready: say so, and mark its pods."""
    name, now = node["metadata"]["name"], _ready(node)
    before = context.state["known"][name]
    context.state["known"][name] = now
    if before == "True" and now != "True":
        subject = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}
        context.event(subject, "NodeNotReady", f"Node {name} status is now: NodeNotReady")
    if now != "True":
        for pod in context.cache.pods_on(name):
            if is_ready(pod):
                _mark_pod(context, pod)


def _mark_pod(context: Context, pod: Obj) -> None:
    conditions = []
    for found in (pod.get("status") or {}).get("conditions") or ():
        if found["type"] == "Ready":
            found = {**found, "status": "False", "lastTransitionTime": context.stamp()}
        conditions.append(found)
    namespace, name = key_of(pod)
    try:
        context.client.patch("pods", name, namespace, {"status": {"conditions": conditions}}, subresource="status")
    except ApiError as error:
        if error.code != 404:
            raise
        return
    context.event(pod, "NodeNotReady", "Node is not ready", "Warning")


def _taint(context: Context, node: Obj) -> None:
    """Taints of the node follow its conditions."""
    old: Objs = (node.get("spec") or {}).get("taints") or []
    wanted = _no_schedule(node) | _no_execute(context, node, old)
    kept = [t for t in old if t["key"] not in OURS or (t["key"], t["effect"]) in wanted]
    have = {(t["key"], t["effect"]) for t in kept}
    added = [
        {"key": key, "effect": effect, "timeAdded": rfc3339(context.now)}
        for key, effect in sorted(wanted - have, key=lambda t: (t[1] != "NoSchedule", t[0]))
    ]
    if kept != old or added:
        context.client.update("nodes", {**node, "spec": {**(node.get("spec") or {}), "taints": kept + added}})


def _no_schedule(node: Obj) -> set[tuple[str, str]]:
    ready = _ready(node)
    found = set()
    if ready != "True":
        found.add((NOT_READY if ready == "False" else UNREACHABLE, "NoSchedule"))
    for kind, key in PRESSURE_TAINTS.items():
        if (condition(node, kind) or {}).get("status") == "True":
            found.add((key, "NoSchedule"))
    if (node.get("spec") or {}).get("unschedulable"):
        found.add((UNSCHEDULABLE, "NoSchedule"))
    return found


def _no_execute(context: Context, node: Obj, old: Objs) -> set[tuple[str, str]]:
    """The evicting taint, unless too much of the cluster is silent to believe it, or its zone had one just now."""
    ready = _ready(node)
    if ready == "True":
        return set()
    key = NOT_READY if ready == "False" else UNREACHABLE
    state, name = _zone_state(context, node), node["metadata"]["name"]
    if state == "all":
        return set()
    wanted = (key, "NoExecute")
    if any(t["effect"] == "NoExecute" and t["key"] in (NOT_READY, UNREACHABLE) for t in old):
        return {wanted}
    if state == "partial":
        return set()
    zone = labels_of(node).get("topology.kubernetes.io/zone", "")
    next_at = context.state.setdefault("next", {})
    if context.now < next_at.get(zone, 0.0):
        context.requeue(("", name), next_at[zone])
        return set()
    next_at[zone] = context.now + TAINT_PERIOD_S
    return {wanted}


def _zone_state(context: Context, node: Obj) -> str:
    """`all`: nothing in the whole cluster is ready; `partial`: most of a small cluster's zone is not; else `normal`."""
    zone = labels_of(node).get("topology.kubernetes.io/zone", "")
    nodes = context.cache.list("nodes")
    if not any(_ready(n) == "True" for n in nodes):
        return "all"
    near = [n for n in nodes if labels_of(n).get("topology.kubernetes.io/zone", "") == zone]
    bad = sum(_ready(n) != "True" for n in near)
    if bad > 2 and bad < len(near) and bad / len(near) >= DISRUPTED_SHARE and len(near) <= LARGE_CLUSTER:
        return "partial"
    return "normal"


CONTROLLER = Controller(
    "node-lifecycle-controller",
    {"nodes": _keys_of_node, LEASES: _keys_of_lease},
    reconcile,
    component="node-controller",
)
