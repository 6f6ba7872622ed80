"""The scheduling queue and its worker: takes the most important pending pod, binds it, or says why it cannot and waits.

A controller row like the others. Keys: `pod/NAME` (a pod came or changed), `event/KIND` (something that may help changed),
`next` (one more scheduling cycle). The queue is plain data in the controller's state.
"""

import heapq
from collections.abc import Iterable
from typing import Any

from itbench.kube.client import ApiError, Change, Client, Obj
from itbench.kube.controllers.base import Context, Controller
from itbench.kube.controllers.cache import Cache, Key, key_of
from itbench.kube.controllers.pods import condition, is_finished
from itbench.kube.events import SeriesRecorder
from itbench.kube.scheduler.cycle import Cycle, Decision
from itbench.kube.scheduler.nodes import NodeInfo, NodeTable, PodFacts
from itbench.kube.scheduler.preemption import Victims, find, priority
from itbench.kube.scheduler.volumes import CLAIMS, CLASSES, SELECTED_NODE, VOLUMES, needs

NAME = "default-scheduler"
BUDGETS = "poddisruptionbudgets.policy"
BACKOFF_S = 1.0
BACKOFF_MAX_S = 10.0
FLUSH_S = 300.0
"""A pod that nothing woke is tried again after this long."""

WAKES: dict[str, frozenset[str]] = {
    "NodeUnschedulable": frozenset({"node-add", "node-spec"}),
    "NodeName": frozenset({"node-add"}),
    "TaintToleration": frozenset({"node-add", "node-spec"}),
    "NodeAffinity": frozenset({"node-add", "node-labels"}),
    "NodePorts": frozenset({"node-add", "pod-gone"}),
    "NodeResourcesFit": frozenset({"node-add", "node-allocatable", "pod-gone"}),
    "VolumeBinding": frozenset({"node-add", "node-labels", "volume"}),
    "PodTopologySpread": frozenset({"node-add", "node-labels", "node-gone", "pod-gone", "pod-bound", "pod-labels"}),
    "InterPodAffinity": frozenset({"node-add", "node-labels", "pod-gone", "pod-bound", "pod-labels"}),
}
"""What may help a pod that a filter refused."""


class Scheduler:
    """Binds pods of `default-scheduler`.

    Args:
        client: with the scheduler's field manager.
        post: POST to a subresource of a pod (`binding`).
    """

    def __init__(self, client: Client, post: Any) -> None:
        self.nodes = NodeTable()
        self._client, self._post = client, post
        self._recorder = SeriesRecorder(client, NAME, NAME)

    def controller(self) -> Controller:
        """The row for the manager."""
        watches = dict.fromkeys((CLAIMS, VOLUMES, CLASSES), _volume_keys)
        return Controller(NAME, {"pods": pod_keys, "nodes": node_keys, **watches}, self.reconcile, queueing=True)

    def save(self) -> dict[str, Any]:
        """The recorder's state; the queue lies in the controller's state, sums are worked out again."""
        return self._recorder.save()

    def restore(self, data: dict[str, Any]) -> None:
        """The inverse of `save`."""
        self._recorder.restore(data)

    def reconcile(self, context: Context, namespace: str, name: str) -> None:
        """One key: see the module's docstring."""
        queue = Queue(context)
        kind, _, rest = name.partition("/")
        if kind == "pod":
            pod = context.cache.get("pods", namespace, rest)
            queue.offer((namespace, rest), pod if pod is not None and _is_ours(pod) else None)
        elif kind == "event":
            queue.wake(rest)
        elif kind == "retry":
            queue.retry((namespace, rest))
        else:
            self._next(context, queue)
        if queue.has_ready():
            context.requeue(("", "next"), context.now)

    def _next(self, context: Context, queue: "Queue") -> None:
        key = queue.take()
        if key is None:
            return
        pod = context.cache.get("pods", *key)
        if pod is not None and _is_ours(pod):
            self._schedule(context, queue, pod)

    def _schedule(self, context: Context, queue: "Queue", pod: Obj) -> None:
        facts, nodes = PodFacts(pod), self._reserved(context, pod)
        wanted = needs(pod, context.cache)
        decision = Cycle(facts, nodes, self.nodes.namespaces, wanted).decide()
        if decision.node and wanted.waiting:
            self._select_node(wanted.waiting, decision.node)
            queue.park(key_of(pod), ["VolumeBinding"], count=False)
        elif decision.node:
            self._bind(context, queue, pod, decision.node)
        else:
            self._refuse(context, queue, facts, decision)

    def _reserved(self, context: Context, pod: Obj) -> list[NodeInfo]:
        """The nodes as they will be once pods that evicted somebody, and are no less important, have moved in."""
        nodes = self.nodes.ready()
        nominated: dict[str, str] = context.state.setdefault("nominated", {})
        if not nominated:
            return nodes
        guests: dict[str, list[Obj]] = {}
        for text, node in sorted(nominated.items()):
            other = context.cache.get("pods", *text.split("/"))
            if other is None or not _is_ours(other):
                del nominated[text]
            elif key_of(other) != key_of(pod) and priority(other) >= priority(pod):
                guests.setdefault(node, []).append(other)
        for index, info in enumerate(nodes):
            if info.name in guests:
                nodes[index] = info.without(())
                for other in guests[info.name]:
                    nodes[index].add(key_of(other), PodFacts(other))
        return nodes

    def _bind(self, context: Context, queue: "Queue", pod: Obj, node: str) -> None:
        namespace, name = key_of(pod)
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace, "uid": pod["metadata"]["uid"]},
            "target": {"kind": "Node", "name": node},
        }
        try:
            self._post("pods", name, namespace, "binding", binding)
        except ApiError as error:
            message = f'binding rejected: running Bind plugin "DefaultBinder": {error}'
            self._recorder.event(context.now, pod, "Warning", "FailedScheduling", "Scheduling", message)
            queue.park((namespace, name), [])
            queue.retry_later((namespace, name))
            return
        queue.forget((namespace, name))
        message = f"Successfully assigned {namespace}/{name} to {node}"
        self._recorder.event(context.now, pod, "Normal", "Scheduled", "Binding", message)

    def _select_node(self, claims: list[Obj], node: str) -> None:
        for claim in claims:
            if (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE) != node:
                namespace, name = key_of(claim)
                self._client.patch(CLAIMS, name, namespace, {"metadata": {"annotations": {SELECTED_NODE: node}}})

    def _refuse(self, context: Context, queue: "Queue", facts: PodFacts, decision: Decision) -> None:
        pod, nodes = facts.pod, self._reserved(context, facts.pod)
        wanted = needs(pod, context.cache)
        victims, after = None, ""
        if nodes and not decision.problem:
            budgets = context.cache.list(BUDGETS)
            victims, after = find(
                facts, nodes, decision, lambda changed: Cycle(facts, changed, self.nodes.namespaces, wanted), budgets
            )
        message = decision.sentence(after)
        queue.park(key_of(pod), decision.plugins() or ["NodeResourcesFit"])
        if victims is not None:
            context.state["nominated"]["/".join(key_of(pod))] = victims.node
            self._preempt(context, pod, victims)
        self._recorder.event(context.now, pod, "Warning", "FailedScheduling", "Scheduling", message)
        self._mark_unschedulable(context, pod, message, victims)

    def _preempt(self, context: Context, pod: Obj, victims: Victims) -> None:
        for victim in victims.pods:
            namespace, name = key_of(victim)
            if not victim["metadata"].get("deletionTimestamp"):
                self._disrupt(context, victim)
                self._client.delete("pods", name, namespace, uid=victim["metadata"]["uid"])
            message = f"Preempted by pod {pod['metadata']['uid']} on node {victims.node}"
            self._recorder.event(context.now, victim, "Normal", "Preempted", "Preempting", message, related=pod)

    def _disrupt(self, context: Context, victim: Obj) -> None:
        new = {
            "type": "DisruptionTarget",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": context.stamp(),
            "reason": "PreemptionByScheduler",
            "message": f"{NAME}: preempting to accommodate a higher priority pod",
        }
        self._write_condition(victim, new, {})

    def _mark_unschedulable(self, context: Context, pod: Obj, message: str, victims: Victims | None) -> None:
        old = condition(pod, "PodScheduled")
        nominated = {"nominatedNodeName": victims.node} if victims is not None else {}
        if old is not None and old.get("message") == message and not nominated:
            return
        since = old["lastTransitionTime"] if old is not None and old["status"] == "False" else context.stamp()
        new = {
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": since,
            "reason": "Unschedulable",
            "message": message,
        }
        self._write_condition(pod, new, nominated)

    def _write_condition(self, pod: Obj, new: Obj, more: Obj) -> None:
        if pod["metadata"].get("generation"):
            new = {**new, "observedGeneration": pod["metadata"]["generation"]}
        status = pod.get("status") or {}
        others = [c for c in status.get("conditions") or () if c["type"] != new["type"]]
        patch = {"status": {"conditions": [*others, new], **more}}
        namespace, name = key_of(pod)
        self._client.patch("pods", name, namespace, patch, subresource="status")


class Queue:
    """The scheduling queue over the controller's plain state: a heap of ready pods, and those that wait.

    `waiting`: key -> [attempts, plugins, since, back-off end].
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        state = context.state
        self._heap: list[list[Any]] = state.setdefault("ready", [])
        self._queued: dict[str, bool] = state.setdefault("queued", {})
        self._waiting: dict[str, list[Any]] = state.setdefault("waiting", {})

    def has_ready(self) -> bool:
        """Whether a pod can be tried now."""
        return bool(self._heap)

    def offer(self, key: Key, pod: Obj | None) -> None:
        """A pod came or changed in a way that matters; None: it needs no scheduling any more."""
        text = "/".join(key)
        if pod is None:
            self.forget(key)
        elif text in self._waiting:
            self._move(key)
        elif text not in self._queued:
            self._push(key, pod)

    def _push(self, key: Key, pod: Obj) -> None:
        text = "/".join(key)
        self._queued[text] = True
        serial = self._context.state["serial"] = self._context.state.get("serial", 0) + 1
        heapq.heappush(self._heap, [-priority(pod), serial, *key])

    def take(self) -> Key | None:
        """The most important ready pod, the longest waiting among equals."""
        while self._heap:
            _, _, namespace, name = heapq.heappop(self._heap)
            if self._queued.pop(f"{namespace}/{name}", None):
                return namespace, name
        return None

    def park(self, key: Key, plugins: list[str], *, count: bool = True) -> None:
        """No node for now: wait for what may help, at most five minutes."""
        text = "/".join(key)
        attempts = self._attempts(key) + count
        now = self._context.now
        delay = min(BACKOFF_S * 2.0 ** max(0, attempts - 1), BACKOFF_MAX_S) if count else 0.0
        self._attempted()[text] = attempts
        self._waiting[text] = [plugins, now, now + delay]
        self._context.requeue((key[0], f"retry/{key[1]}"), now + FLUSH_S)

    def _attempted(self) -> dict[str, int]:
        found: dict[str, int] = self._context.state.setdefault("attempts", {})
        return found

    def _attempts(self, key: Key) -> int:
        return self._attempted().get("/".join(key), 0)

    def wake(self, kind: str) -> None:
        """Something changed: pods that it may help are tried again, after their back-off."""
        for text in sorted(self._waiting):
            if any(kind in WAKES.get(plugin, ()) for plugin in self._waiting[text][0]):
                namespace, name = text.split("/")
                self._move((namespace, name))

    def _move(self, key: Key) -> None:
        end = self._waiting["/".join(key)][2]
        if end <= self._context.now:
            self.retry(key)
        else:
            self._context.requeue((key[0], f"retry/{key[1]}"), end)

    def retry_later(self, key: Key) -> None:
        """Try again after the back-off, whatever happens."""
        self._move(key)

    def retry(self, key: Key) -> None:
        """The back-off is over, or nothing happened for five minutes."""
        if self._waiting.pop("/".join(key), None) is None:
            return
        pod = self._context.cache.get("pods", *key)
        if pod is not None and _is_ours(pod):
            self._push(key, pod)

    def forget(self, key: Key) -> None:
        """The pod is bound or gone."""
        text = "/".join(key)
        for table in (self._waiting, self._queued, self._attempted()):
            table.pop(text, None)


def _is_ours(pod: Obj) -> bool:
    spec = pod["spec"]
    return (
        not spec.get("nodeName")
        and not spec.get("schedulingGates")
        and not pod["metadata"].get("deletionTimestamp")
        and not is_finished(pod)
        and spec.get("schedulerName", NAME) == NAME
    )


def pod_keys(change: Change, cache: Cache) -> Iterable[Key]:
    """Unbound pods are offered; bound ones may make room or break a rule when they come, change labels or go."""
    pod, before = change.object, change.previous
    namespace, name = key_of(pod)
    if not pod["spec"].get("nodeName"):
        if change.type == "MODIFIED" and before is not None and not _pod_differs(pod, before):
            return []
        return [(namespace, f"pod/{name}")]
    if change.type == "DELETED" or (is_finished(pod) and before is not None and not is_finished(before)):
        return [("", "event/pod-gone")]
    if before is None or not before["spec"].get("nodeName"):
        return [(namespace, f"pod/{name}"), ("", "event/pod-bound")]
    if before["metadata"].get("labels") != pod["metadata"].get("labels"):
        return [("", "event/pod-labels")]
    if before["spec"] != pod["spec"]:
        return [("", "event/pod-gone")]
    return []


def _pod_differs(pod: Obj, before: Obj) -> bool:
    meta, old = pod["metadata"], before["metadata"]
    return pod["spec"] != before["spec"] or any(meta.get(k) != old.get(k) for k in ("labels", "deletionTimestamp"))


def node_keys(change: Change, cache: Cache) -> Iterable[Key]:
    """What a change of a node may make possible."""
    if change.type == "ADDED":
        return [("", "event/node-add")]
    if change.type == "DELETED":
        return [("", "event/node-gone")]
    new, old = change.object, change.previous or {"metadata": {}}
    kinds = []
    if (new.get("status") or {}).get("allocatable") != (old.get("status") or {}).get("allocatable"):
        kinds.append("node-allocatable")
    if new.get("spec") != old.get("spec"):
        kinds.append("node-spec")
    if new["metadata"].get("labels") != old["metadata"].get("labels"):
        kinds.append("node-labels")
    return [("", f"event/{kind}") for kind in kinds]


def _volume_keys(change: Change, cache: Cache) -> Iterable[Key]:
    return [("", "event/volume")]
