"""StatefulSet controller: numbered pods in order, each with its claims, updated from the highest number down.

Source: behaviour of kube-controller-manager 1.34.
"""

from dataclasses import dataclass, field
from math import inf

from itbench.kube.client import ApiError, Obj, Objs
from itbench.kube.controllers import claims
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
from itbench.kube.controllers.cache import key_of, labels_of
from itbench.kube.controllers.history import REVISIONS, sync_revision, trim
from itbench.kube.controllers.pods import available_at, from_template, is_available, is_finished, is_ready, phase
from itbench.kube.controllers.replicaset import claim

RESOURCE = "statefulsets.apps"
HASH = "controller.kubernetes.io/hash"
REVISION = "controller-revision-hash"


@dataclass
class Round:
    """One pass: the set, its pods by number, and the revisions in play."""

    context: Context
    owner: Obj
    pods: dict[int, Obj]
    current: str
    update: str
    templates: dict[str, Obj]
    made: list[Obj] = field(default_factory=list)

    @property
    def start(self) -> int:
        """The first number."""
        return int((self.owner["spec"].get("ordinals") or {}).get("start", 0))

    @property
    def numbers(self) -> range:
        """Numbers that should exist."""
        return range(self.start, self.start + self.owner["spec"].get("replicas", 1))

    @property
    def ordered(self) -> bool:
        """One at a time."""
        return bool(self.owner["spec"].get("podManagementPolicy", "OrderedReady") == "OrderedReady")

    @property
    def rolling(self) -> Obj:
        """`rollingUpdate` of the strategy."""
        return (self.owner["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}

    def healthy(self, pod: Obj) -> bool:
        """Running, ready, available and staying."""
        min_ready_s = self.owner["spec"].get("minReadySeconds", 0)
        running = phase(pod) == "Running" and not is_deleting(pod)
        return running and is_available(pod, min_ready_s, self.context.now)


def _number(owner: Obj, pod: Obj) -> int | None:
    parent, _, number = pod["metadata"]["name"].rpartition("-")
    return int(number) if parent == owner["metadata"]["name"] and number.isdigit() else None


def reconcile(context: Context, namespace: str, name: str) -> None:
    """One pass over one StatefulSet."""
    owner = context.cache.get(RESOURCE, namespace, name)
    if owner is None or is_deleting(owner):
        return
    members = claim(context, owner)
    pods = {number: pod for pod in members if (number := _number(owner, pod)) is not None}
    update, known = sync_revision(context, owner, HASH)
    current = (owner.get("status") or {}).get("currentRevision") or update["metadata"]["name"]
    templates = {r["metadata"]["name"]: r["data"]["spec"]["template"] for r in known}
    current = current if current in templates else update["metadata"]["name"]
    this = Round(context, owner, pods, current, update["metadata"]["name"], templates)
    problem = None
    try:
        _step(this)
    except ApiError as error:
        problem = error
    _write_status(this)
    live = {this.current, this.update} | {f"{labels_of(p).get(REVISION, '')}" for p in pods.values()}
    trim(context, owner, known, live)
    if problem is not None:
        raise problem


def _step(this: Round) -> None:
    """Create, wait, scale down or update: in order at most one of them."""
    for number, pod in sorted(this.pods.items()):
        claims.retain(this.context, this.owner, pod, leaving=number not in this.numbers)
    if not _fill(this):
        return
    if not _condemn(this):
        return
    _roll(this)


def _fill(this: Round) -> bool:
    """Pods that are missing or finished are made; False: an ordered set waits here."""
    for number in this.numbers:
        pod = this.pods.get(number)
        if pod is not None and is_finished(pod) and not is_deleting(pod):
            _replace_finished(this, pod)
            return False
        if pod is None:
            _create(this, number)
            if this.ordered:
                return False
            continue
        if not this.healthy(pod) and this.ordered:
            _wait_available(this, pod)
            return False
        claims.ensure(this.context, this.owner, number)
    return True


def _replace_finished(this: Round, pod: Obj) -> None:
    meta = this.owner["metadata"]
    failed = phase(pod) == "Failed"
    reason, word = ("RecreatingFailedPod", "failed") if failed else ("RecreatingTerminatedPod", "terminated")
    text = f"StatefulSet {meta['namespace']}/{meta['name']} is recreating {word} Pod {pod['metadata']['name']}"
    this.context.event(this.owner, reason, text, "Warning" if failed else "Normal")
    _delete(this, pod)


def _wait_available(this: Round, pod: Obj) -> None:
    at = available_at(pod, this.owner["spec"].get("minReadySeconds", 0))
    if this.context.now < at < inf:
        this.context.requeue(key_of(this.owner), at)


def _revision_for(this: Round, number: int) -> str:
    """Which revision a new pod gets: below the partition (or among those not yet updated) the current one."""
    if (this.owner["spec"].get("updateStrategy") or {}).get("type") == "OnDelete":
        return this.update
    offset = number - this.start
    partition = this.rolling.get("partition")
    kept = (this.owner.get("status") or {}).get("currentReplicas", 0) if partition is None else partition
    return this.current if offset < kept else this.update


def _create(this: Round, number: int) -> None:
    owner, context = this.owner, this.context
    name, set_name = f"{owner['metadata']['name']}-{number}", owner["metadata"]["name"]
    pod = _pod(this, number, name)
    try:
        claims.ensure(this.context, this.owner, number)
        made = context.client.create("pods", pod, owner["metadata"]["namespace"])
    except ApiError as error:
        text = f"create Pod {name} in StatefulSet {set_name} failed error: {error}"
        context.event(owner, "FailedCreate", text, "Warning")
        raise
    this.made.append(made)
    context.event(owner, "SuccessfulCreate", f"create Pod {name} in StatefulSet {set_name} successful")


def _pod(this: Round, number: int, name: str) -> Obj:
    owner, revision = this.owner, _revision_for(this, number)
    template = {k: v for k, v in this.templates[revision].items() if k != "$patch"}
    labels = {
        REVISION: revision,
        "statefulset.kubernetes.io/pod-name": name,
        "apps.kubernetes.io/pod-index": str(number),
    }
    pod = from_template(owner, template, name=name, generateName=owner["metadata"]["name"] + "-", labels=labels)
    spec = {**pod["spec"], "hostname": name}
    if owner["spec"].get("serviceName"):
        spec["subdomain"] = owner["spec"]["serviceName"]
    templates = owner["spec"].get("volumeClaimTemplates") or ()
    if templates:
        names = {c["metadata"]["name"] for c in templates}
        kept = [v for v in spec.get("volumes") or () if v["name"] not in names]
        mounted = [
            {"name": c["metadata"]["name"], "persistentVolumeClaim": {"claimName": f"{c['metadata']['name']}-{name}"}}
            for c in templates
        ]
        spec["volumes"] = [*mounted, *kept]
    return {**pod, "spec": spec}


def _delete(this: Round, pod: Obj) -> None:
    namespace, name = key_of(pod)
    this.context.client.delete("pods", name, namespace, uid=pod["metadata"]["uid"])
    text = f"delete Pod {name} in StatefulSet {this.owner['metadata']['name']} successful"
    this.context.event(this.owner, "SuccessfulDelete", text)


def _condemn(this: Round) -> bool:
    """Pods beyond the wanted number go, the highest first; False: an ordered set waits here."""
    surplus = sorted((n for n in this.pods if n not in this.numbers), reverse=True)
    weak = [number for number in surplus if not this.healthy(this.pods[number])]
    for number in surplus:
        pod = this.pods[number]
        if is_deleting(pod):
            if this.ordered:
                return False
            continue
        if this.ordered and number in weak[:-1]:
            return False  # only the lowest of those that are not well may go before the others are well again
        _delete(this, pod)
        if this.ordered:
            return False
    return not surplus or not this.ordered


def _roll(this: Round) -> None:
    """Replace pods of other revisions, highest number first, waiting for each (or for `maxUnavailable` of them)."""
    if (this.owner["spec"].get("updateStrategy") or {}).get("type") == "OnDelete":
        return
    replicas = len(this.numbers)
    allowed = max(1, percent(this.rolling.get("maxUnavailable", 1), replicas, up=True))
    unavailable = sum(not this.healthy(p) for n, p in this.pods.items() if n in this.numbers)
    first = this.start + (this.rolling.get("partition") or 0)
    for number in reversed(this.numbers):
        pod = this.pods.get(number)
        if number < first or pod is None:
            return
        old = labels_of(pod).get(REVISION) != this.update
        if old and not is_deleting(pod):
            if _is_blocked(this, pod, unavailable, allowed):
                return
            _delete(this, pod)
            unavailable += this.healthy(pod)
            if unavailable >= allowed:
                return
        elif not this.healthy(pod) and unavailable >= allowed:
            _wait_available(this, pod)
            return


def _is_blocked(this: Round, pod: Obj, unavailable: int, allowed: int) -> bool:
    """Whether deleting a healthy pod now would exceed what may be unavailable."""
    return this.healthy(pod) and unavailable >= allowed


def _write_status(this: Round) -> None:
    owner, context = this.owner, this.context
    min_ready_s = owner["spec"].get("minReadySeconds", 0)
    pods: Objs = [*this.pods.values(), *this.made]
    old = owner.get("status") or {}
    ready = sum(phase(p) == "Running" and is_ready(p) for p in pods)
    current = sum(labels_of(p).get(REVISION) == this.current and not is_deleting(p) for p in pods)
    updated = sum(labels_of(p).get(REVISION) == this.update and not is_deleting(p) for p in pods)
    status: Obj = {
        "observedGeneration": owner["metadata"].get("generation", 1),
        "replicas": len(pods),
        "availableReplicas": sum(is_available(p, min_ready_s, context.now) for p in pods),
        "collisionCount": old.get("collisionCount", 0),
        "currentRevision": this.current,
        "updateRevision": this.update,
    }
    if updated == len(pods) == ready and this.current != this.update and updated == owner["spec"].get("replicas", 1):
        status["currentRevision"], current = this.update, updated
    counts = {"readyReplicas": ready, "currentReplicas": current, "updatedReplicas": updated}
    status.update({key: value for key, value in counts.items() if value})
    put_status(context, RESOURCE, owner, status)
    for pod in this.pods.values():
        if min_ready_s:
            _wait_available(this, pod)


CONTROLLER = Controller(
    "statefulset-controller",
    {RESOURCE: own_key, "pods": controls("StatefulSet", RESOURCE), REVISIONS: owner_key("StatefulSet")},
    reconcile,
)
