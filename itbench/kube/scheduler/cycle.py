"""One scheduling decision: filter all nodes, then score, or say why none will do. Pure; called by `scheduler`."""

from collections import Counter
from dataclasses import dataclass, field

from itbench.kube.client import Obj
from itbench.kube.scheduler.affinity import PodAffinity, Spaces
from itbench.kube.scheduler.filters import FILTERS, Refusal
from itbench.kube.scheduler.nodes import NodeInfo, PodFacts
from itbench.kube.scheduler.scores import best
from itbench.kube.scheduler.spread import Spread
from itbench.kube.scheduler.volumes import VolumeNeeds

NO_NODES = "no nodes available to schedule pods"
CLAIMS_TEXT = "no new claims to deallocate, preemption: "


@dataclass
class Decision:
    """The node, or all refusals."""

    node: str = ""
    refusals: dict[str, Refusal] = field(default_factory=dict)
    problem: str = ""
    """A pre-filter message: no node was even looked at."""
    total: int = 0

    def plugins(self) -> list[str]:
        """Filters that refused; they decide what wakes the pod."""
        if self.problem:
            return ["VolumeBinding"]
        return sorted({refusal.plugin for refusal in self.refusals.values()})

    def sentence(self, after: str) -> str:
        """The FailedScheduling message.

        Args:
            after: what preemption had to say, empty when it found victims.
        """
        if self.total == 0:
            return NO_NODES
        head = f"0/{self.total} nodes are available:"
        if self.problem:
            return f"{head} {self.problem}. not found"
        counts = Counter(reason for refusal in self.refusals.values() for reason in refusal.reasons)
        reasons = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
        return f"{head} {reasons}." + (f" {after}" if after else "")


class Cycle:
    """All that is looked at for one pod, over a given set of nodes."""

    def __init__(self, pod: PodFacts, nodes: list[NodeInfo], spaces: Spaces, needs: VolumeNeeds) -> None:
        self.pod, self.nodes, self.needs = pod, nodes, needs
        self._only = pinned(pod.pod)
        self.affinity = PodAffinity(pod, nodes, spaces)
        self.spread = Spread(pod, nodes)

    def refusal(self, info: NodeInfo) -> Refusal | None:
        """The first filter that refuses a node."""
        if self._only is not None and info.name not in self._only:
            return Refusal("NodeAffinity", ("node(s) didn't satisfy plugin(s) [NodeAffinity]",), True)
        for check in FILTERS:
            found = check(self.pod, info)
            if found is not None:
                return found
        return self.needs.check(info) or self.spread.check(info) or self.affinity.check(info)

    def decide(self) -> Decision:
        """Filter and score."""
        decision = Decision(total=len(self.nodes), problem=self.needs.problem)
        if decision.problem:
            return decision
        possible = []
        for info in self.nodes:
            refusal = self.refusal(info)
            if refusal is None:
                possible.append(info)
            else:
                decision.refusals[info.name] = refusal
        if possible:
            decision.node = best(self.pod, possible, self.affinity, self.spread, self.nodes).name
        return decision


def pinned(pod: Obj) -> set[str] | None:
    """Node names that required affinity by field allows (DaemonSet pods); None when it does not restrict names."""
    node_affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    names: set[str] = set()
    for term in required.get("nodeSelectorTerms") or ():
        fields = [f for f in term.get("matchFields") or () if f["operator"] == "In" and f["key"] == "metadata.name"]
        if not fields:
            return None
        names |= set.intersection(*(set(f["values"]) for f in fields))
    return names or None
