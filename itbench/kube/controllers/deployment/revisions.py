"""The ReplicaSets of a Deployment as its revisions: which is new, annotations, creation, history. Called by `rollout`."""

from dataclasses import dataclass

import orjson

from itbench.kube.client import ApiError, Obj, Objs
from itbench.kube.controllers.base import Context, is_deleting, owner_reference, stable_hash, whole, with_meta
from itbench.kube.controllers.cache import labels_of
from itbench.kube.controllers.conditions import find, set_condition
from itbench.kube.controllers.deployment.scaling import DESIRED, MAXIMUM, fenceposts, new_size, size
from itbench.kube.controllers.selectors import matches

DEPLOYMENTS = "deployments.apps"
SETS = "replicasets.apps"
HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
NOT_COPIED = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION,
        HISTORY,
        DESIRED,
        MAXIMUM,
        "deprecated.deployment.rollback.to",
    }
)
HISTORY_LENGTH = 2000


@dataclass
class Rollout:
    """A Deployment in one pass: objects are replaced by what the server answered, so later steps see earlier ones."""

    context: Context
    deployment: Obj
    sets: Objs
    new: Obj | None = None
    stopped: bool = False
    """A name collision was met: nothing more in this pass."""

    @property
    def old(self) -> Objs:
        """All but the new one, oldest first."""
        name = self.new["metadata"]["name"] if self.new else ""
        return [s for s in self.sets if s["metadata"]["name"] != name]

    def replace(self, replica_set: Obj) -> None:
        """Take over a newer version of one of the ReplicaSets."""
        name = replica_set["metadata"]["name"]
        self.sets = [replica_set if s["metadata"]["name"] == name else s for s in self.sets]
        if self.new is not None and self.new["metadata"]["name"] == name:
            self.new = replica_set


def claimed(context: Context, deployment: Obj) -> Objs:
    """The Deployment's ReplicaSets, oldest first; orphans that match are adopted, strangers released."""
    selector, meta = deployment["spec"]["selector"], deployment["metadata"]
    found: Objs = []
    for replica_set in context.cache.controlled(deployment, SETS):
        if matches(selector, labels_of(replica_set)):
            found.append(replica_set)
        elif not is_deleting(deployment):
            refs = [r for r in replica_set["metadata"]["ownerReferences"] if r["uid"] != meta["uid"]]
            _patch_owners(context, replica_set, refs)
    if not is_deleting(deployment):
        for replica_set in _orphans(context, meta["namespace"], selector):
            refs = [*(replica_set["metadata"].get("ownerReferences") or ()), owner_reference(deployment)]
            found.append(_patch_owners(context, replica_set, refs))
    return sorted(found, key=lambda s: (s["metadata"]["creationTimestamp"], s["metadata"]["name"]))


def _orphans(context: Context, namespace: str, selector: Obj) -> Objs:
    found = context.cache.orphans(SETS, namespace)
    return [s for s in found if matches(selector, labels_of(s)) and not is_deleting(s)]


def _patch_owners(context: Context, replica_set: Obj, refs: Objs) -> Obj:
    meta = replica_set["metadata"]
    return context.client.patch(SETS, meta["name"], meta["namespace"], {"metadata": {"ownerReferences": refs or None}})


def bare_template(template: Obj) -> Obj:
    """A template without the hash label, for comparison."""
    meta = template.get("metadata") or {}
    labels = {k: v for k, v in (meta.get("labels") or {}).items() if k != HASH}
    rest = {k: v for k, v in meta.items() if k not in ("labels", "creationTimestamp") and v}
    return {**template, "metadata": {**rest, "labels": labels}}


def find_new(deployment: Obj, sets: Objs) -> Obj | None:
    """The oldest ReplicaSet whose template equals the Deployment's."""
    wanted = bare_template(deployment["spec"]["template"])
    return next((s for s in sets if bare_template(s["spec"]["template"]) == wanted), None)


def revision(obj: Obj) -> int:
    """The revision annotation as a number; 0 without one."""
    return whole((obj["metadata"].get("annotations") or {}).get(REVISION))


def sync_new(rollout: Rollout, *, create: bool) -> None:
    """Find the new ReplicaSet, bring its annotations and the revision up to date; create it when it is missing and wanted."""
    rollout.new = find_new(rollout.deployment, rollout.sets)
    number = max(map(revision, rollout.old), default=0) + 1
    if rollout.new is not None:
        _refresh_new(rollout, rollout.new, number)
    elif create:
        _create_new(rollout, number)


def _refresh_new(rollout: Rollout, new: Obj, number: int) -> None:
    deployment = rollout.deployment
    annotations = _annotations(deployment, new["metadata"].get("annotations") or {}, number)
    changed = annotations != (new["metadata"].get("annotations") or {})
    ready_s = deployment["spec"].get("minReadySeconds", 0)
    if changed or new["spec"].get("minReadySeconds", 0) != ready_s:
        spec = {k: v for k, v in new["spec"].items() if k != "minReadySeconds"}
        if ready_s:
            spec["minReadySeconds"] = ready_s
        new = rollout.context.client.update(SETS, {**with_meta(new, annotations=annotations), "spec": spec})
        rollout.replace(new)
    found = None
    if _progressing(rollout.deployment) is None:
        found = progress("FoundNewReplicaSet", f'Found new replica set "{new["metadata"]["name"]}"')
    note(rollout, number=revision(new), progress=found)


def _annotations(deployment: Obj, old: Obj, number: int) -> Obj:
    """Annotations of the new ReplicaSet: the Deployment's, the revision, and the revisions it had before."""
    copied = {k: v for k, v in (deployment["metadata"].get("annotations") or {}).items() if k not in NOT_COPIED}
    found = {**old, **copied}
    before = old.get(REVISION)
    if whole(before) < number:
        found[REVISION] = str(number)
        if before:
            history = [h for h in old.get(HISTORY, "").split(",") if h]
            while history and len(",".join([*history, before])) > HISTORY_LENGTH:
                history.pop(0)
            found[HISTORY] = ",".join([*history, before])
    return found


def _create_new(rollout: Rollout, number: int) -> None:
    context, deployment = rollout.context, rollout.deployment
    body = _new_body(deployment, number)
    body["spec"]["replicas"] = new_size(deployment, rollout.sets, body)
    name = body["metadata"]["name"]
    try:
        new = context.client.create(SETS, body, deployment["metadata"]["namespace"])
    except ApiError as error:
        _refused(rollout, body, error)
        return
    rollout.new = new
    rollout.sets = [*rollout.sets, new]
    if size(new):
        context.event(deployment, "ScalingReplicaSet", f"Scaled up replica set {name} from 0 to {size(new)}")
    note(rollout, number=number, progress=progress("NewReplicaSetCreated", f'Created new replica set "{name}"'))


def _new_body(deployment: Obj, number: int) -> Obj:
    spec, meta = deployment["spec"], deployment["metadata"]
    collisions = (deployment.get("status") or {}).get("collisionCount", 0)
    digest = stable_hash(orjson.dumps(bare_template(spec["template"]), option=orjson.OPT_SORT_KEYS).hex(), collisions)
    template = {**spec["template"], "metadata": {**(spec["template"].get("metadata") or {})}}
    labels = {**(template["metadata"].get("labels") or {}), HASH: digest}
    template["metadata"]["labels"] = labels
    selector = {**spec["selector"], "matchLabels": {**(spec["selector"].get("matchLabels") or {}), HASH: digest}}
    surge = fenceposts(deployment)[0]
    annotations = _annotations(deployment, {}, number)
    annotations |= {DESIRED: str(size(deployment)), MAXIMUM: str(size(deployment) + surge)}
    body: Obj = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{meta['name']}-{digest}",
            "namespace": meta["namespace"],
            "labels": {**labels},
            "annotations": annotations,
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": {"replicas": 0, "selector": selector, "template": template},
    }
    if spec.get("minReadySeconds"):
        body["spec"]["minReadySeconds"] = spec["minReadySeconds"]
    return body


def _refused(rollout: Rollout, body: Obj, error: ApiError) -> None:
    context, deployment, name = rollout.context, rollout.deployment, body["metadata"]["name"]
    rollout.stopped = True
    if error.reason == "AlreadyExists":
        status = {**(deployment.get("status") or {})}
        status["collisionCount"] = status.get("collisionCount", 0) + 1
        context.client.update(DEPLOYMENTS, {**deployment, "status": status}, subresource="status")
        return
    message = f'Failed to create new replica set "{name}": {error}'
    note(rollout, progress=progress("ReplicaSetCreateError", message, "False"))
    context.event(rollout.deployment, "ReplicaSetCreateError", message, "Warning")
    raise error


def _progressing(deployment: Obj) -> Obj | None:
    return find((deployment.get("status") or {}).get("conditions"), "Progressing")


def note(rollout: Rollout, *, number: int = 0, progress: Obj | None = None) -> None:
    """Write the revision and the Progressing condition in one go (with the status, so that the generation stays).

    Args:
        number: the revision of the new ReplicaSet; 0 leaves it.
        progress: status, reason and message; ignored without a progress deadline.
    """
    deployment = rollout.deployment
    old, body = deployment.get("status") or {}, deployment
    if number and revision(deployment) != number:
        annotations = {**(deployment["metadata"].get("annotations") or {}), REVISION: str(number)}
        body = with_meta(body, annotations=annotations)
    if progress is not None and "progressDeadlineSeconds" in deployment["spec"]:
        stamp = rollout.context.stamp()
        times = {"lastUpdateTime": stamp, "lastTransitionTime": stamp}
        conditions = set_condition(old.get("conditions"), {"type": "Progressing", **times, **progress})
        if conditions != (old.get("conditions") or []):
            body = {**body, "status": {**old, "conditions": conditions}}
    if body is not deployment:
        rollout.deployment = rollout.context.client.update(DEPLOYMENTS, body, subresource="status")


def progress(reason: str, message: str, status: str = "True") -> Obj:
    """The changing part of a Progressing condition."""
    return {"status": status, "reason": reason, "message": message}


def clean_history(rollout: Rollout) -> None:
    """Delete the oldest ReplicaSets beyond `revisionHistoryLimit` that have nothing left."""
    limit = rollout.deployment["spec"].get("revisionHistoryLimit")
    if limit is None:
        return
    old = sorted((s for s in rollout.old if not is_deleting(s)), key=revision)
    for replica_set in old[: max(0, len(old) - limit)]:
        status, meta = replica_set.get("status") or {}, replica_set["metadata"]
        stale = meta.get("generation", 1) > status.get("observedGeneration", 0)
        if status.get("replicas", 0) == 0 and size(replica_set) == 0 and not stale:
            rollout.context.client.delete(SETS, meta["name"], meta["namespace"], uid=meta["uid"])
