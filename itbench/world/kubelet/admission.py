"""Whether a node takes a pod that names it from the start: a kubelet refuses what does not fit. Called by `kubelets`.

Pods that the scheduler bound are not looked at again: it has asked the same questions of the same sums.
"""

from collections.abc import Iterable

from itbench.kube.client import Obj
from itbench.kube.controllers.cache import key_of
from itbench.kube.controllers.pods import is_finished
from itbench.kube.scheduler.filters import Refusal, admit
from itbench.kube.scheduler.nodes import NodeInfo, PodFacts

REFUSED_AFTER_S = 1.0
"""How long a kubelet takes to say so; controllers that try again at once do so at this pace."""


def refusal(pod: Obj, node: Obj, others: Iterable[Obj]) -> tuple[str, str]:
    """Reason and message of a refusal, empty when the pod is taken.

    Args:
        pod: the pod.
        node: its node.
        others: pods that the node has already.
    """
    info = NodeInfo(node["metadata"]["name"])
    info.set_node(node)
    for other in others:
        if not is_finished(other) and other["metadata"]["uid"] != pod["metadata"]["uid"]:
            info.add(key_of(other), PodFacts(other))
    facts = PodFacts(pod)
    found = admit(facts, info)
    return ("", "") if found is None else _words(found, facts, info)


def _words(found: Refusal, facts: PodFacts, info: NodeInfo) -> tuple[str, str]:
    if found.plugin != "NodeResourcesFit":
        return found.plugin, f"Predicate {found.plugin} failed: {found.reasons[0]}"
    first = found.reasons[0]
    name = "pods" if first == "Too many pods" else first.removeprefix("Insufficient ")
    asked = 1 if name == "pods" else facts.requests[name]
    used = len(info.pods) if name == "pods" else info.used.get(name, 0)
    room = info.allocatable.get(name, 0)
    text = f"Node didn't have enough resource: {name}, requested: {asked}, used: {used}, capacity: {room}"
    return f"OutOf{name}", text


def refused_status(pod: Obj, reason: str, message: str, stamp: str) -> Obj:
    """The status that a kubelet writes for a pod that it does not take."""
    kept = {key: value for key, value in (pod.get("status") or {}).items() if key in ("qosClass", "conditions")}
    status = {"phase": "Failed", "reason": reason, "message": f"Pod was rejected: {message}", "startTime": stamp}
    return {**kept, **status}
