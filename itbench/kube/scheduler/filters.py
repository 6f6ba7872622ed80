"""Which nodes a pod may run on: filters in the real order, each with its reason. Pure; called by `cycle` and `preemption`."""

from collections.abc import Callable
from dataclasses import dataclass

from itbench.kube.client import Obj
from itbench.kube.controllers.selectors import pairs_match, requirement_matches
from itbench.kube.scheduler.nodes import NodeInfo, PodFacts


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a node does not do.

    Attributes:
        plugin: the filter, which decides what wakes the pod again.
        reasons: as counted in the FailedScheduling sentence.
        final: no eviction of pods would help.
    """

    plugin: str
    reasons: tuple[str, ...]
    final: bool


Filter = Callable[[PodFacts, NodeInfo], Refusal | None]

UNSCHEDULABLE_TAINT = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def tolerates(toleration: Obj, taint: Obj) -> bool:
    """Whether one toleration covers a taint."""
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return True
    return bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")


def untolerated(pod: Obj, taints: list[Obj], effects: tuple[str, ...]) -> list[Obj]:
    """Taints with one of the effects that the pod does not tolerate."""
    tolerations = pod["spec"].get("tolerations") or ()
    return [t for t in taints if t["effect"] in effects and not any(tolerates(o, t) for o in tolerations)]


def _unschedulable(pod: PodFacts, info: NodeInfo) -> Refusal | None:
    spec = (info.node or {}).get("spec") or {}
    if not spec.get("unschedulable") or not untolerated(pod.pod, [UNSCHEDULABLE_TAINT], ("NoSchedule",)):
        return None
    return Refusal("NodeUnschedulable", ("node(s) were unschedulable",), True)


def _name(pod: PodFacts, info: NodeInfo) -> Refusal | None:
    wanted = pod.pod["spec"].get("nodeName")
    if not wanted or wanted == info.name:
        return None
    return Refusal("NodeName", ("node(s) didn't match the requested node name",), True)


def _taints(pod: PodFacts, info: NodeInfo) -> Refusal | None:
    taints = ((info.node or {}).get("spec") or {}).get("taints") or []
    if not taints or not untolerated(pod.pod, taints, ("NoSchedule", "NoExecute")):
        return None
    return Refusal("TaintToleration", ("node(s) had untolerated taint(s)",), True)


def term_matches(term: Obj, info: NodeInfo) -> bool:
    """One node selector term: all expressions and fields; an empty term matches nothing."""
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    names = {"metadata.name": info.name}
    return all(requirement_matches(r, info.labels) for r in expressions) and all(
        requirement_matches(r, names) for r in fields
    )


def matches_node(pod: Obj, info: NodeInfo) -> bool:
    """`nodeSelector` and required node affinity."""
    spec = pod["spec"]
    if not pairs_match(spec.get("nodeSelector") or {}, info.labels):
        return False
    node_affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or any(term_matches(term, info) for term in required.get("nodeSelectorTerms") or ())


def _affinity(pod: PodFacts, info: NodeInfo) -> Refusal | None:
    if matches_node(pod.pod, info):
        return None
    return Refusal("NodeAffinity", ("node(s) didn't match Pod's node affinity/selector",), True)


def _ports(pod: PodFacts, info: NodeInfo) -> Refusal | None:
    if not pod.ports:
        return None
    for ip, protocol, number in info.taken_ports():
        for wanted in pod.ports:
            anywhere = "0.0.0.0" in (ip, wanted[0])
            if (protocol, number) == wanted[1:] and (anywhere or ip == wanted[0]):
                return Refusal("NodePorts", ("node(s) didn't have free ports for the requested pod ports",), False)
    return None


def _resources(pod: PodFacts, info: NodeInfo) -> Refusal | None:
    reasons, final = [], False
    if len(info.pods) + 1 > info.allocatable.get("pods", 0):
        reasons.append("Too many pods")
    for name in sorted(pod.requests, key=_resource_order):
        asked, room = pod.requests[name], info.allocatable.get(name, 0)
        if asked > room - info.used.get(name, 0):
            reasons.append(f"Insufficient {name}")
            final = final or asked > room
    return Refusal("NodeResourcesFit", tuple(reasons), final) if reasons else None


def _resource_order(name: str) -> tuple[int, str]:
    fixed = ("cpu", "memory", "ephemeral-storage")
    return (fixed.index(name) if name in fixed else len(fixed), name)


FILTERS: tuple[Filter, ...] = (_unschedulable, _name, _taints, _affinity, _ports, _resources)
"""Filters that look at one node alone; volumes, spreading and pod affinity come after them (`cycle`)."""


def fit(pod: PodFacts, info: NodeInfo) -> Refusal | None:
    """Only the resources (what a kubelet checks too)."""
    return _resources(pod, info)


def admit(pod: PodFacts, info: NodeInfo) -> Refusal | None:
    """What a kubelet asks of a pod that was bound to its node: affinity, ports, resources."""
    for check in (_affinity, _ports, _resources):
        found = check(pod, info)
        if found is not None:
            return found
    return None
