"""Pod affinity and anti-affinity, required and preferred. Pure; called by `cycle`."""

from collections import Counter

from itbench.kube.client import Obj
from itbench.kube.controllers.selectors import matches
from itbench.kube.scheduler.filters import Refusal
from itbench.kube.scheduler.nodes import NodeInfo, PodFacts, terms

Domain = tuple[str, str]
"""(topology key, value)."""
Spaces = dict[str, dict[str, str]]
"""Labels of each namespace."""


def selects(term: Obj, home: str, pod: PodFacts, spaces: Spaces) -> bool:
    """Whether a term of a pod in namespace `home` selects another pod."""
    named, selector = term.get("namespaces") or [], term.get("namespaceSelector")
    if selector is None:
        inside = pod.namespace in (named or [home])
    else:
        inside = pod.namespace in named or matches(selector, spaces.get(pod.namespace, {}))
    return inside and matches(term.get("labelSelector"), pod.labels)


class PodAffinity:
    """The affinity state of one scheduling cycle."""

    def __init__(self, pod: PodFacts, nodes: list[NodeInfo], spaces: Spaces) -> None:
        self._pod, self._spaces = pod, spaces
        self._near = terms(pod.pod, "podAffinity")
        self._far = pod.anti
        self._nodes = nodes
        self._near_counts = self._count(self._near)
        self._far_counts = self._count(self._far)
        self._blocked = self._existing()

    def _count(self, wanted: list[Obj]) -> Counter[tuple[int, str]]:
        """How many pods each term selects per topology value."""
        counts: Counter[tuple[int, str]] = Counter()
        for index, term in enumerate(wanted):
            for info in self._nodes:
                value = info.labels.get(term["topologyKey"])
                if value is not None:
                    found = sum(selects(term, self._pod.namespace, p, self._spaces) for p in info.pods.values())
                    counts[index, value] += found
        return counts

    def _existing(self) -> set[Domain]:
        """Domains in which a pod with anti-affinity against the incoming one lives."""
        found = set()
        for info in self._nodes:
            for key in info.anti:
                other = info.pods[key]
                for term in other.anti:
                    value = info.labels.get(term["topologyKey"])
                    if value is not None and selects(term, other.namespace, self._pod, self._spaces):
                        found.add((term["topologyKey"], value))
        return found

    def check(self, info: NodeInfo) -> Refusal | None:
        """Required terms, in the order in which the real filter gives its reason."""
        if not self._is_near(info):
            return Refusal("InterPodAffinity", ("node(s) didn't match pod affinity rules",), True)
        for index, term in enumerate(self._far):
            value = info.labels.get(term["topologyKey"])
            if value is not None and self._far_counts[index, value] > 0:
                return Refusal("InterPodAffinity", ("node(s) didn't match pod anti-affinity rules",), False)
        if any(info.labels.get(key) == value for key, value in self._blocked):
            return Refusal("InterPodAffinity", ("node(s) didn't satisfy existing pods anti-affinity rules",), False)
        return None

    def _is_near(self, info: NodeInfo) -> bool:
        values = [info.labels.get(term["topologyKey"]) for term in self._near]
        if None in values:
            return False
        if all(self._near_counts[index, value or ""] > 0 for index, value in enumerate(values)):
            return True
        nobody = not any(self._near_counts.values())
        return nobody and all(selects(t, self._pod.namespace, self._pod, self._spaces) for t in self._near)

    def scores(self) -> list[float]:
        """Preferred terms of the incoming pod, and of those already there towards it: one raw score per node."""
        weights: Counter[Domain] = Counter()
        sides = ((1, "podAffinity"), (-1, "podAntiAffinity"))
        own = [(sign, t) for sign, kind in sides for t in terms(self._pod.pod, kind, "preferred")]
        for info in self._nodes:
            for other in info.pods.values():
                for sign, weighted in own:
                    term = weighted["podAffinityTerm"]
                    if selects(term, self._pod.namespace, other, self._spaces):
                        self._weigh(weights, info, term, sign * weighted["weight"])
                if other.prefers:
                    self._weigh_back(weights, info, other)
        return [
            float(sum(weights[key, info.labels[key]] for key in {k for k, _ in weights} & info.labels.keys()))
            for info in self._nodes
        ]

    def _weigh_back(self, weights: Counter[Domain], info: NodeInfo, other: PodFacts) -> None:
        for sign, kind in ((1, "podAffinity"), (-1, "podAntiAffinity")):
            for weighted in terms(other.pod, kind, "preferred"):
                if selects(weighted["podAffinityTerm"], other.namespace, self._pod, self._spaces):
                    self._weigh(weights, info, weighted["podAffinityTerm"], sign * weighted["weight"])

    @staticmethod
    def _weigh(weights: Counter[Domain], info: NodeInfo, term: Obj, weight: int) -> None:
        value = info.labels.get(term["topologyKey"])
        if value is not None:
            weights[term["topologyKey"], value] += weight
