"""Which of the possible nodes is best: least allocated, balanced, spread, preferred. Pure; called by `cycle`.

Raw scores are brought to 0..100 per plugin and summed with the weights of the default profile; ties fall by a digest of pod and
node, where the real scheduler throws dice.
"""

from itbench.core.ids import digest
from itbench.kube.scheduler.affinity import PodAffinity
from itbench.kube.scheduler.filters import term_matches, untolerated
from itbench.kube.scheduler.nodes import DEFAULT_CPU, DEFAULT_MEMORY, NodeInfo, PodFacts
from itbench.kube.scheduler.spread import Spread

FULL = 100.0


def _normal(raw: list[float], *, reverse: bool = False) -> list[float]:
    low, high = min(raw), max(raw)
    if high == low:
        return [FULL if reverse else 0.0] * len(raw)
    scaled = [(value - low) / (high - low) * FULL for value in raw]
    return [FULL - value for value in scaled] if reverse else scaled


def _fractions(pod: PodFacts, info: NodeInfo) -> tuple[float, float]:
    asked = {
        "cpu": pod.requests.get("cpu", 0) or DEFAULT_CPU,
        "memory": pod.requests.get("memory", 0) or DEFAULT_MEMORY,
    }
    found = []
    for name in ("cpu", "memory"):
        room = info.allocatable.get(name, 0)
        found.append(min(1.0, (info.scored[name] + asked[name]) / room) if room else 1.0)
    return found[0], found[1]


def _preferred_affinity(pod: PodFacts, info: NodeInfo) -> float:
    node_affinity = (pod.pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    found = node_affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    return float(sum(p["weight"] for p in found if term_matches(p["preference"], info)))


def _soft_taints(pod: PodFacts, info: NodeInfo) -> float:
    taints = ((info.node or {}).get("spec") or {}).get("taints") or []
    return float(len(untolerated(pod.pod, taints, ("PreferNoSchedule",)))) if taints else 0.0


def best(
    pod: PodFacts, nodes: list[NodeInfo], affinity: PodAffinity, spread: Spread, every: list[NodeInfo]
) -> NodeInfo:
    """The node with the highest score.

    Args:
        nodes: those that passed the filters; at least one.
        affinity, spread: state of the cycle, computed over `every` node.
    """
    if len(nodes) == 1:
        return nodes[0]
    chosen = {info.name: index for index, info in enumerate(every)}
    pick = [chosen[info.name] for info in nodes]
    near, apart = affinity.scores(), spread.scores()
    shares = [_fractions(pod, n) for n in nodes]
    columns = (
        (1.0, [100 * (1 - (cpu + memory) / 2) for cpu, memory in shares]),
        (1.0, [100 * (1 - abs(cpu - memory) / 2) for cpu, memory in shares]),
        (2.0, _normal([near[i] for i in pick])),
        (2.0, _normal([apart[i] for i in pick])),
        (2.0, _normal([_preferred_affinity(pod, n) for n in nodes])),
        (3.0, _normal([_soft_taints(pod, n) for n in nodes], reverse=True)),
    )
    totals = [sum(weight * column[i] for weight, column in columns) for i in range(len(nodes))]
    top = max(round(total, 6) for total in totals)
    tied = [node for node, total in zip(nodes, totals, strict=True) if round(total, 6) == top]
    uid = pod.pod["metadata"].get("uid", "")
    return min(tied, key=lambda n: digest(uid, n.name)) if len(tied) > 1 else tied[0]
