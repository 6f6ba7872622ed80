"""Whom to evict so that a more important pod fits. Pure; called by `scheduler` when no node would do."""

from collections.abc import Callable
from dataclasses import dataclass

from itbench.kube.client import Obj, Objs
from itbench.kube.controllers.cache import Key, labels_of
from itbench.kube.controllers.selectors import matches
from itbench.kube.scheduler.cycle import CLAIMS_TEXT, Cycle, Decision
from itbench.kube.scheduler.nodes import NodeInfo, PodFacts

NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"

MakeCycle = Callable[[list[NodeInfo]], Cycle]


def priority(pod: Obj) -> int:
    """The pod's priority; 0 by default."""
    return int(pod["spec"].get("priority") or 0)


@dataclass(frozen=True)
class Victims:
    """A node and who would have to leave it."""

    node: str
    pods: tuple[Obj, ...]
    violations: int


def is_eligible(pod: Obj, nodes: list[NodeInfo]) -> bool:
    """A pod that already waits for victims on its nominated node does not preempt again."""
    if pod["spec"].get("preemptionPolicy") == "Never":
        return False
    nominated = (pod.get("status") or {}).get("nominatedNodeName")
    info = next((n for n in nodes if n.name == nominated), None)
    if info is None:
        return True
    leaving = (p.pod for p in info.pods.values() if p.pod["metadata"].get("deletionTimestamp"))
    return not any(priority(p) < priority(pod) for p in leaving)


def find(
    pod: PodFacts, nodes: list[NodeInfo], decision: Decision, make: MakeCycle, budgets: Objs
) -> tuple[Victims | None, str]:
    """The cheapest victims, or what the FailedScheduling sentence says about the attempt."""
    if pod.pod["spec"].get("preemptionPolicy") == "Never":
        return None, CLAIMS_TEXT + "not eligible due to preemptionPolicy=Never."
    if not is_eligible(pod.pod, nodes):
        return None, CLAIMS_TEXT + "not eligible due to a terminating pod on the nominated node."
    found, failures = [], {NOT_HELPFUL: 0, NO_VICTIMS: 0}
    for index, info in enumerate(nodes):
        refusal = decision.refusals.get(info.name)
        if refusal is None or refusal.final:
            failures[NOT_HELPFUL] += 1
            continue
        victims = _on_node(pod, nodes, index, make, budgets)
        if victims is None:
            failures[NO_VICTIMS] += 1
        else:
            found.append(victims)
    if found:
        return min(found, key=_cost), ""
    reasons = ", ".join(sorted(f"{count} {text}" for text, count in failures.items() if count))
    return None, f"{CLAIMS_TEXT}0/{len(nodes)} nodes are available: {reasons}."


def _cost(victims: Victims) -> tuple[object, ...]:
    priorities = [priority(p) for p in victims.pods]
    started = max((p.get("status") or {}).get("startTime") or "" for p in victims.pods)
    # The node whose most important victim started last is spared least work.
    return victims.violations, max(priorities), sum(priorities), len(priorities), _descending(started), victims.node


def _descending(text: str) -> tuple[int, ...]:
    return tuple(-ord(mark) for mark in text)


def _on_node(pod: PodFacts, nodes: list[NodeInfo], index: int, make: MakeCycle, budgets: Objs) -> Victims | None:
    info = nodes[index]
    lower: list[Key] = [key for key, p in info.pods.items() if priority(p.pod) < priority(pod.pod)]
    if not lower or not _fits(nodes, index, info.without(lower), make):
        return None
    violating = {key for key in lower if _violates(info.pods[key].pod, budgets)}
    order = sorted(lower, key=lambda k: (k not in violating, -priority(info.pods[k].pod), _age(info.pods[k].pod), k))
    victims = list(lower)
    for key in order:
        spared = [k for k in victims if k != key]
        if _fits(nodes, index, info.without(spared), make):
            victims = spared
    pods = tuple(info.pods[k].pod for k in sorted(victims, key=lambda k: (-priority(info.pods[k].pod), k)))
    return Victims(info.name, pods, sum(k in violating for k in victims))


def _age(pod: Obj) -> str:
    return str((pod.get("status") or {}).get("startTime") or pod["metadata"].get("creationTimestamp", ""))


def _fits(nodes: list[NodeInfo], index: int, changed: NodeInfo, make: MakeCycle) -> bool:
    return make([*nodes[:index], changed, *nodes[index + 1 :]]).refusal(changed) is None


def _violates(pod: Obj, budgets: Objs) -> bool:
    for budget in budgets:
        if budget["metadata"]["namespace"] == pod["metadata"]["namespace"]:
            allowed = (budget.get("status") or {}).get("disruptionsAllowed", 0)
            if allowed <= 0 and matches(budget["spec"].get("selector"), labels_of(pod)):
                return True
    return False
