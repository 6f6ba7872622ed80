"""Sums per node, kept up to date from changes: what is requested, which ports are taken, which pods are there."""

from collections.abc import Iterable, Iterator
from copy import copy

from itbench.kube.client import Change, Obj
from itbench.kube.controllers.cache import Key, controller_of, key_of
from itbench.kube.controllers.pods import is_finished
from itbench.kube.quantity import milli, units

DEFAULT_CPU = 100
DEFAULT_MEMORY = 200 * 1024 * 1024
"""Scores count pods without requests as if they asked for this much."""

Amounts = dict[str, int]
Port = tuple[str, str, int]
"""(host IP, protocol, host port)."""


def amount(resource: str, text: object) -> int:
    """A quantity as an integer: millicores for cpu, units otherwise."""
    return milli(str(text)) if resource == "cpu" else units(str(text))


def _add(total: Amounts, more: Amounts) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value


def _requests_of(container: Obj) -> Amounts:
    found = (container.get("resources") or {}).get("requests") or {}
    return {name: amount(name, text) for name, text in found.items()}


def requests(pod: Obj) -> Amounts:
    """What a pod asks for: containers and sidecars together, or the largest init container with the sidecars before it."""
    spec = pod["spec"]
    total: Amounts = {}
    for container in spec["containers"]:
        _add(total, _requests_of(container))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or ():
        asked = _requests_of(container)
        if container.get("restartPolicy") == "Always":
            _add(sidecars, asked)
            asked = {}
        step = dict(sidecars)
        _add(step, asked)
        peak = {name: max(peak.get(name, 0), step.get(name, 0)) for name in {*peak, *step}}
    _add(total, sidecars)
    total = {name: max(total.get(name, 0), peak.get(name, 0)) for name in sorted({*total, *peak})}
    _add(total, {name: amount(name, text) for name, text in (spec.get("overhead") or {}).items()})
    return total


def host_ports(pod: Obj) -> list[Port]:
    """Ports that a pod takes on its node."""
    found = []
    for container in pod["spec"]["containers"]:
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                found.append((port.get("hostIP") or "0.0.0.0", port.get("protocol", "TCP"), int(port["hostPort"])))
    return found


def terms(pod: Obj, kind: str, strength: str = "required") -> list[Obj]:
    """Affinity terms of a pod (`podAffinity`, `podAntiAffinity`), required or preferred."""
    affinity = (pod["spec"].get("affinity") or {}).get(kind) or {}
    return list(affinity.get(f"{strength}DuringSchedulingIgnoredDuringExecution") or ())


class PodFacts:
    """What the scheduler needs of a pod, worked out once per pod object."""

    __slots__ = ("anti", "labels", "namespace", "owner", "pod", "ports", "prefers", "requests")

    def __init__(self, pod: Obj) -> None:
        self.pod = pod
        self.namespace: str = pod["metadata"]["namespace"]
        self.labels: dict[str, str] = pod["metadata"].get("labels") or {}
        self.requests = requests(pod)
        self.ports = host_ports(pod)
        self.anti = terms(pod, "podAntiAffinity")
        self.prefers = bool(terms(pod, "podAntiAffinity", "preferred") or terms(pod, "podAffinity", "preferred"))
        self.owner: str = (controller_of(pod) or {}).get("uid", "")


class NodeInfo:
    """One node and what is on it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.node: Obj | None = None
        self.labels: dict[str, str] = {}
        self.allocatable: Amounts = {}
        self.pods: dict[Key, PodFacts] = {}
        self.used: Amounts = {}
        self.scored: Amounts = {"cpu": 0, "memory": 0}
        self.owners: dict[str, int] = {}
        self.anti: set[Key] = set()

    def set_node(self, node: Obj | None) -> None:
        """Take over a node object."""
        self.node = node
        self.labels = (node["metadata"].get("labels") or {}) if node else {}
        found = ((node or {}).get("status") or {}).get("allocatable") or {}
        self.allocatable = {name: amount(name, text) for name, text in found.items()}

    def add(self, key: Key, facts: PodFacts) -> None:
        """A pod was bound here."""
        self.pods[key] = facts
        self._count(facts, 1)
        if facts.anti:
            self.anti.add(key)

    def remove(self, key: Key) -> None:
        """A pod went or finished."""
        facts = self.pods.pop(key, None)
        if facts is not None:
            self._count(facts, -1)
            self.anti.discard(key)

    def _count(self, facts: PodFacts, sign: int) -> None:
        for name, value in facts.requests.items():
            self.used[name] = self.used.get(name, 0) + sign * value
        self.scored["cpu"] += sign * (facts.requests.get("cpu", 0) or DEFAULT_CPU)
        self.scored["memory"] += sign * (facts.requests.get("memory", 0) or DEFAULT_MEMORY)
        if facts.owner:
            self.owners[facts.owner] = self.owners.get(facts.owner, 0) + sign

    def without(self, keys: Iterable[Key]) -> "NodeInfo":
        """The node as it would be without some pods."""
        other = copy(self)
        other.pods, other.used, other.scored = dict(self.pods), dict(self.used), dict(self.scored)
        other.owners, other.anti = dict(self.owners), set(self.anti)
        for key in keys:
            other.remove(key)
        return other

    def taken_ports(self) -> Iterator[Port]:
        """Host ports in use."""
        for facts in self.pods.values():
            yield from facts.ports


class NodeTable:
    """All nodes by name, fed with changes of nodes and pods."""

    def __init__(self) -> None:
        self._infos: dict[str, NodeInfo] = {}
        self._where: dict[Key, str] = {}
        self.namespaces: dict[str, dict[str, str]] = {}

    def apply(self, change: Change) -> None:
        """Take over one change."""
        if change.resource == "nodes":
            self._apply_node(change)
        elif change.resource == "pods":
            self._apply_pod(change)
        elif change.resource == "namespaces":
            meta = change.object["metadata"]
            self.namespaces.pop(meta["name"], None)
            if change.type != "DELETED":
                self.namespaces[meta["name"]] = meta.get("labels") or {}

    def _info(self, name: str) -> NodeInfo:
        found = self._infos.get(name)
        if found is None:
            found = self._infos[name] = NodeInfo(name)
        return found

    def _apply_node(self, change: Change) -> None:
        self._info(change.object["metadata"]["name"]).set_node(None if change.type == "DELETED" else change.object)

    def _apply_pod(self, change: Change) -> None:
        pod = change.object
        key, node = key_of(pod), pod["spec"].get("nodeName", "")
        known = self._where.get(key)
        counts = bool(node) and change.type != "DELETED" and not is_finished(pod)
        if known == node and counts and not _differs(change):
            self._infos[node].pods[key].pod = pod
            return
        if known is not None:
            self._infos[known].remove(key)
            del self._where[key]
        if counts:
            self._info(node).add(key, PodFacts(pod))
            self._where[key] = node

    def ready(self) -> list[NodeInfo]:
        """Nodes that exist, by name."""
        return [info for name, info in sorted(self._infos.items()) if info.node is not None]


def _differs(change: Change) -> bool:
    """Anything but the status of a pod changed."""
    before = change.previous
    if before is None:
        return True
    old, new = before["metadata"].get("labels"), change.object["metadata"].get("labels")
    return bool(before["spec"] != change.object["spec"] or old != new)
