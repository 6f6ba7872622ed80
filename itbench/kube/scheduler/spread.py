"""Topology spread constraints: hard ones filter, soft ones score. Pure; called by `cycle`."""

from itbench.kube.client import Obj
from itbench.kube.controllers.selectors import matches
from itbench.kube.scheduler.filters import Refusal, matches_node, untolerated
from itbench.kube.scheduler.nodes import NodeInfo, PodFacts

MISMATCH = "node(s) didn't match pod topology spread constraints"


def constraints(pod: Obj, action: str) -> list[Obj]:
    """Constraints of one kind (`DoNotSchedule`, `ScheduleAnyway`)."""
    found = pod["spec"].get("topologySpreadConstraints") or ()
    return [c for c in found if c.get("whenUnsatisfiable", "DoNotSchedule") == action]


def _selector(constraint: Obj, pod: PodFacts) -> Obj:
    selector = constraint.get("labelSelector") or {}
    extra = [
        {"key": key, "operator": "In", "values": [pod.labels[key]]}
        for key in constraint.get("matchLabelKeys") or ()
        if key in pod.labels
    ]
    return {**selector, "matchExpressions": [*(selector.get("matchExpressions") or ()), *extra]}


def _eligible(constraint: Obj, pod: PodFacts, info: NodeInfo, keys: set[str]) -> bool:
    if not keys <= info.labels.keys():
        return False
    if constraint.get("nodeAffinityPolicy", "Honor") == "Honor" and not matches_node(pod.pod, info):
        return False
    if constraint.get("nodeTaintsPolicy", "Ignore") == "Honor":
        taints = ((info.node or {}).get("spec") or {}).get("taints") or []
        return not untolerated(pod.pod, taints, ("NoSchedule", "NoExecute"))
    return True


def _counts(constraint: Obj, pod: PodFacts, nodes: list[NodeInfo], keys: set[str]) -> dict[str, int]:
    """Matching pods per topology value, over eligible nodes."""
    selector, key = _selector(constraint, pod), constraint["topologyKey"]
    counts: dict[str, int] = {}
    for info in nodes:
        if not _eligible(constraint, pod, info, keys):
            continue
        found = sum(
            p.namespace == pod.namespace
            and not p.pod["metadata"].get("deletionTimestamp")
            and matches(selector, p.labels)
            for p in info.pods.values()
        )
        counts[info.labels[key]] = counts.get(info.labels[key], 0) + found
    return counts


class Spread:
    """The spreading state of one scheduling cycle."""

    def __init__(self, pod: PodFacts, nodes: list[NodeInfo]) -> None:
        self._pod, self._nodes = pod, nodes
        self._hard = constraints(pod.pod, "DoNotSchedule")
        keys = {c["topologyKey"] for c in self._hard}
        self._counts = [_counts(c, pod, nodes, keys) for c in self._hard]
        self._self = [matches(_selector(c, pod), pod.labels) for c in self._hard]

    def check(self, info: NodeInfo) -> Refusal | None:
        """Hard constraints: the skew after placing the pod may not exceed maxSkew."""
        for constraint, counts, own in zip(self._hard, self._counts, self._self, strict=True):
            value = info.labels.get(constraint["topologyKey"])
            if value is None:
                return Refusal("PodTopologySpread", (f"{MISMATCH} (missing required label)",), True)
            lowest = min(counts.values(), default=0)
            if len(counts) < constraint.get("minDomains", 1):
                lowest = 0
            if counts.get(value, 0) + own - lowest > constraint.get("maxSkew", 1):
                return Refusal("PodTopologySpread", (MISMATCH,), False)
        return None

    def scores(self) -> list[float]:
        """Soft constraints (or, without any, the default of spreading an owner's pods over nodes and zones): fewer is better."""
        soft = constraints(self._pod.pod, "ScheduleAnyway")
        if not soft and not self._hard:
            return self._default_scores()
        totals = [0.0] * len(self._nodes)
        for constraint in soft:
            counts = _counts(constraint, self._pod, self._nodes, {constraint["topologyKey"]})
            for index, info in enumerate(self._nodes):
                totals[index] -= counts.get(info.labels.get(constraint["topologyKey"], ""), 0)
        return totals

    def _default_scores(self) -> list[float]:
        owner = self._pod.owner
        if not owner:
            return [0.0] * len(self._nodes)
        zone = "topology.kubernetes.io/zone"
        zones: dict[str, int] = {}
        for info in self._nodes:
            name = info.labels.get(zone, "")
            zones[name] = zones.get(name, 0) + info.owners.get(owner, 0)
        return [-float(info.owners.get(owner, 0) + zones[info.labels.get(zone, "")]) for info in self._nodes]
