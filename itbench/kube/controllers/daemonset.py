"""DaemonSet controller: one pod on every node that wants it, updated a few nodes at a time."""

from dataclasses import dataclass
from math import inf

from itbench.kube.client import ApiError, Change, Obj, Objs
from itbench.kube.controllers.base import (
    Context,
    Controller,
    controls,
    is_deleting,
    own_key,
    owner_key,
    percent,
    put_status,
)
from itbench.kube.controllers.cache import Cache, Key, key_of, labels_of
from itbench.kube.controllers.history import REVISIONS, sync_revision, trim
from itbench.kube.controllers.pods import available_at, from_template, is_available, is_finished, is_ready, phase
from itbench.kube.controllers.replicaset import claim
from itbench.kube.scheduler.filters import matches_node, untolerated
from itbench.kube.scheduler.nodes import NodeInfo

RESOURCE = "daemonsets.apps"
HASH = "controller-revision-hash"
GENERATION = "deprecated.daemonset.template.generation"

TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
"""What every daemon pod tolerates; with host network also an unavailable network."""
HOST_NETWORK = ("node.kubernetes.io/network-unavailable", "NoSchedule")


@dataclass
class Round:
    """One pass: pods by node, nodes that should run one and nodes that may keep one."""

    context: Context
    owner: Obj
    digest: str
    generation: str
    by_node: dict[str, Objs]
    should: list[str]
    may: set[str]

    @property
    def min_ready_s(self) -> int:
        """Seconds of readiness that make a pod available."""
        return int(self.owner["spec"].get("minReadySeconds", 0))

    def is_new(self, pod: Obj) -> bool:
        """Of the present template."""
        return labels_of(pod).get(HASH) == self.digest

    def available(self, pod: Obj) -> bool:
        """Ready long enough and staying."""
        return not is_deleting(pod) and is_available(pod, self.min_ready_s, self.context.now)


def _target(pod: Obj) -> str:
    """The node of a daemon pod, bound or only wanted."""
    if pod["spec"].get("nodeName"):
        return str(pod["spec"]["nodeName"])
    required = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    for term in required.get("nodeSelectorTerms") or ():
        for found in term.get("matchFields") or ():
            if found["key"] == "metadata.name":
                return str(found["values"][0])
    return ""


def _keys_of_node(change: Change, cache: Cache) -> list[Key]:
    def facts(obj: Obj | None) -> object:
        spec = (obj or {}).get("spec") or {}
        return ((obj or {}).get("metadata") or {}).get("labels"), spec.get("taints"), spec.get("unschedulable")

    if change.type == "MODIFIED" and facts(change.object) == facts(change.previous):
        return []
    return [key_of(owner) for owner in cache.list(RESOURCE)]


def tolerations(spec: Obj) -> Objs:
    """The template's tolerations with those of every daemon pod."""
    found = list(spec.get("tolerations") or ())
    rows = [*TOLERATED, *([HOST_NETWORK] if spec.get("hostNetwork") else [])]
    for key, effect in rows:
        new = {"key": key, "operator": "Exists", "effect": effect}
        if new not in found:
            found.append(new)
    return found


def _fits(owner: Obj, node: Obj) -> tuple[bool, bool]:
    """(should run here, may go on running here)."""
    spec = owner["spec"]["template"]["spec"]
    probe = {"metadata": {"namespace": ""}, "spec": {**spec, "tolerations": tolerations(spec)}}
    info = NodeInfo(node["metadata"]["name"])
    info.set_node(node)
    if not matches_node(probe, info):
        return False, False
    taints = (node.get("spec") or {}).get("taints") or []
    may = not untolerated(probe, taints, ("NoExecute",))
    return may and not untolerated(probe, taints, ("NoSchedule", "NoExecute")), may


def reconcile(context: Context, namespace: str, name: str) -> None:
    """One pass over one DaemonSet."""
    owner = context.cache.get(RESOURCE, namespace, name)
    if owner is None or is_deleting(owner):
        return
    generation = (owner["metadata"].get("annotations") or {}).get(GENERATION) or str(
        owner["metadata"].get("generation", 1)
    )
    revision, known = sync_revision(context, owner, HASH, {GENERATION: generation})
    this = _look(context, owner, labels_of(revision)[HASH], generation)
    problem = None
    try:
        _manage(this)
    except ApiError as error:
        problem = error
    _write_status(this)
    live = {labels_of(p).get(HASH) for pods in this.by_node.values() for p in pods} | {this.digest}
    trim(context, owner, known, {r["metadata"]["name"] for r in known if labels_of(r).get(HASH) in live})
    if problem is not None:
        raise problem


def _look(context: Context, owner: Obj, digest: str, generation: str) -> Round:
    by_node: dict[str, Objs] = {}
    for pod in claim(context, owner):
        by_node.setdefault(_target(pod), []).append(pod)
    should, may = [], set()
    for node in context.cache.list("nodes"):
        wanted, kept = _fits(owner, node)
        if wanted:
            should.append(node["metadata"]["name"])
        if kept:
            may.add(node["metadata"]["name"])
    return Round(context, owner, digest, generation, by_node, should, may)


def _manage(this: Round) -> None:
    for node in sorted({*this.should, *this.by_node}):
        pods = this.by_node.get(node, [])
        if node not in this.may and node not in this.should:
            for pod in pods:
                if this.context.cache.get("nodes", "", node) is not None:
                    _delete(this, pod)
            continue
        live = [p for p in pods if not is_finished(p)]
        for pod in pods:
            if is_finished(pod) and not is_deleting(pod):
                _bury(this, pod, node)
        if not pods and node in this.should:
            _create(this, node)
        staying = [p for p in live if not is_deleting(p)]
        for extra in sorted(staying, key=lambda p: (not is_ready(p), p["metadata"]["creationTimestamp"]))[
            _allowed(this) :
        ]:
            _delete(this, extra)
    if (this.owner["spec"].get("updateStrategy") or {}).get("type", "RollingUpdate") == "RollingUpdate":
        _roll(this)


def _allowed(this: Round) -> int:
    return 2 if _surge(this) else 1


def _surge(this: Round) -> int:
    rolling = (this.owner["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    return percent(rolling.get("maxSurge", 0), len(this.should), up=True)


def _bury(this: Round, pod: Obj, node: str) -> None:
    namespace, name = key_of(pod)
    if phase(pod) == "Failed":
        text = f"Found failed daemon pod {namespace}/{name} on node {node}, will try to kill it"
        this.context.event(this.owner, "FailedDaemonPod", text, "Warning")
    else:
        text = f"Found succeeded daemon pod {namespace}/{name} on node {node}, will try to delete it"
        this.context.event(this.owner, "SucceededDaemonPod", text)
    _delete(this, pod)


def _create(this: Round, node: str) -> None:
    owner, template = this.owner, this.owner["spec"]["template"]
    field = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    affinity = {**(template["spec"].get("affinity") or {})}
    affinity["nodeAffinity"] = {
        **(affinity.get("nodeAffinity") or {}),
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [field]},
    }
    labels = {HASH: this.digest, "pod-template-generation": this.generation}
    pod = from_template(owner, template, generateName=owner["metadata"]["name"] + "-", labels=labels)
    pod = {**pod, "spec": {**pod["spec"], "affinity": affinity, "tolerations": tolerations(template["spec"])}}
    try:
        made = this.context.client.create("pods", pod, owner["metadata"]["namespace"])
    except ApiError as error:
        this.context.event(owner, "FailedCreate", f"Error creating: {error}", "Warning")
        raise
    this.by_node.setdefault(node, []).append(made)
    this.context.event(owner, "SuccessfulCreate", f"Created pod: {made['metadata']['name']}")


def _delete(this: Round, pod: Obj) -> None:
    if is_deleting(pod):
        return
    namespace, name = key_of(pod)
    try:
        this.context.client.delete("pods", name, namespace, uid=pod["metadata"]["uid"])
    except ApiError as error:
        if error.code != 404:
            this.context.event(this.owner, "FailedDelete", f"Error deleting: {error}", "Warning")
            raise
        return
    this.context.event(this.owner, "SuccessfulDelete", f"Deleted pod: {name}")


def _roll(this: Round) -> None:
    """Delete pods of old templates: unavailable ones at once, others while few enough nodes are without one."""
    rolling = (this.owner["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    if _surge(this):
        _roll_surging(this)
        return
    allowed = max(1, percent(rolling.get("maxUnavailable", 1), len(this.should), up=True))
    missing, candidates = 0, []
    for node in this.should:
        pods = [p for p in this.by_node.get(node, []) if not is_finished(p)]
        new = [p for p in pods if this.is_new(p) and not is_deleting(p)]
        old = [p for p in pods if not this.is_new(p) and not is_deleting(p)]
        if not any(this.available(p) for p in pods):
            missing += 1
            for pod in old:
                _delete(this, pod)
        elif old and not new:
            candidates.append(old[0])
    for pod in candidates[: max(0, allowed - missing)]:
        _delete(this, pod)


def _roll_surging(this: Round) -> None:
    """Make the new pod first, and delete the old one when the new one is available."""
    room = _surge(this)
    for node in this.should:
        pods = [p for p in this.by_node.get(node, []) if not is_finished(p) and not is_deleting(p)]
        new = [p for p in pods if this.is_new(p)]
        old = [p for p in pods if not this.is_new(p)]
        if new and old:
            room -= 1
            if any(this.available(p) for p in new):
                for pod in old:
                    _delete(this, pod)
    for node in this.should:
        pods = [p for p in this.by_node.get(node, []) if not is_finished(p) and not is_deleting(p)]
        if room > 0 and pods and not any(this.is_new(p) for p in pods):
            _create(this, node)
            room -= 1


def _write_status(this: Round) -> None:
    scheduled = ready = available = updated = 0
    waits: list[float] = []
    for node in this.should:
        pods = [p for p in this.by_node.get(node, []) if not is_finished(p)]
        if not pods:
            continue
        scheduled += 1
        oldest = min(pods, key=lambda p: (is_deleting(p), p["metadata"]["creationTimestamp"], p["metadata"]["name"]))
        ready += is_ready(oldest)
        available += this.available(oldest)
        updated += any(this.is_new(p) for p in pods if not is_deleting(p))
        if this.min_ready_s:
            waits.append(available_at(oldest, this.min_ready_s))
    wrong = sum(1 for node, pods in this.by_node.items() if pods and node not in this.should)
    status: Obj = {
        "currentNumberScheduled": scheduled,
        "numberMisscheduled": wrong,
        "desiredNumberScheduled": len(this.should),
        "numberReady": ready,
        "observedGeneration": this.owner["metadata"].get("generation", 1),
    }
    counts = {
        "updatedNumberScheduled": updated,
        "numberAvailable": available,
        "numberUnavailable": len(this.should) - available,
    }
    status.update({key: value for key, value in counts.items() if value})
    put_status(this.context, RESOURCE, this.owner, status)
    future = [at for at in waits if this.context.now < at < inf]
    if future:
        this.context.requeue(key_of(this.owner), min(future))


CONTROLLER = Controller(
    "daemonset-controller",
    {
        RESOURCE: own_key,
        "pods": controls("DaemonSet", RESOURCE),
        "nodes": _keys_of_node,
        REVISIONS: owner_key("DaemonSet"),
    },
    reconcile,
)
