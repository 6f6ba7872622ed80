"""One pass over one Deployment: scale, pause, recreate or roll, then tell."""

from itbench.kube.client import Change, Obj, Objs
from itbench.kube.controllers.base import Context, Controller, is_deleting, own_key, owner_key, put_status, with_meta
from itbench.kube.controllers.cache import Cache, Key, controller_of, labels_of
from itbench.kube.controllers.conditions import find
from itbench.kube.controllers.deployment.progress import is_complete, write_rollout_status, write_status
from itbench.kube.controllers.deployment.revisions import (
    DEPLOYMENTS,
    SETS,
    Rollout,
    claimed,
    clean_history,
    note,
    progress,
    sync_new,
)
from itbench.kube.controllers.deployment.scaling import (
    DESIRED,
    MAXIMUM,
    counted,
    fenceposts,
    is_rolling,
    new_size,
    old_sizes,
    proportional_sizes,
    size,
)
from itbench.kube.controllers.pods import is_finished
from itbench.kube.controllers.selectors import is_empty, matches


def reconcile(context: Context, namespace: str, name: str) -> None:
    """One pass over one Deployment."""
    deployment = context.cache.get(DEPLOYMENTS, namespace, name)
    if deployment is None:
        return
    if is_empty(deployment["spec"]["selector"]):
        _refuse_empty(context, deployment)
        return
    rollout = Rollout(context, deployment, claimed(context, deployment))
    if is_deleting(deployment):
        sync_new(rollout, create=False)
        write_status(rollout)
        return
    _note_pause(rollout)
    if deployment["spec"].get("paused") or _was_scaled(rollout):
        _sync(rollout)
    elif is_rolling(deployment):
        _roll(rollout)
    else:
        _recreate(rollout)


def _refuse_empty(context: Context, deployment: Obj) -> None:
    message = "This deployment is selecting all pods. A non-empty selector is required."
    context.event(deployment, "SelectingAll", message, "Warning")
    generation = deployment["metadata"].get("generation", 1)
    put_status(context, DEPLOYMENTS, deployment, {**(deployment.get("status") or {}), "observedGeneration": generation})


def _note_pause(rollout: Rollout) -> None:
    current = find((rollout.deployment.get("status") or {}).get("conditions"), "Progressing")
    reason = (current or {}).get("reason")
    if reason == "ProgressDeadlineExceeded":
        return
    paused = bool(rollout.deployment["spec"].get("paused"))
    if paused and reason != "DeploymentPaused":
        note(rollout, progress=progress("DeploymentPaused", "Deployment is paused", "Unknown"))
    elif not paused and reason == "DeploymentPaused":
        note(rollout, progress=progress("DeploymentResumed", "Deployment is resumed", "Unknown"))


def _was_scaled(rollout: Rollout) -> bool:
    """The Deployment's replicas differ from what an active ReplicaSet was last told."""
    wanted = str(size(rollout.deployment))
    told = [(s["metadata"].get("annotations") or {}).get(DESIRED) for s in rollout.sets if size(s) > 0]
    return any(value is not None and value != wanted for value in told)


def _resize(rollout: Rollout, replica_set: Obj, replicas: int) -> bool:
    """Set a ReplicaSet's size and what it is told about the Deployment; says whether its size changed."""
    deployment = rollout.deployment
    before = size(replica_set)
    told = {DESIRED: str(size(deployment)), MAXIMUM: str(size(deployment) + fenceposts(deployment)[0])}
    annotations = replica_set["metadata"].get("annotations") or {}
    if before == replicas and told.items() <= annotations.items():
        return False
    body = with_meta(replica_set, annotations={**annotations, **told})
    rollout.replace(rollout.context.client.update(SETS, {**body, "spec": {**body["spec"], "replicas": replicas}}))
    if before == replicas:
        return False
    direction = "up" if replicas > before else "down"
    name = replica_set["metadata"]["name"]
    message = f"Scaled {direction} replica set {name} from {before} to {replicas}"
    rollout.context.event(deployment, "ScalingReplicaSet", message)
    return True


def _sync(rollout: Rollout) -> None:
    sync_new(rollout, create=False)
    _scale(rollout)
    if rollout.deployment["spec"].get("paused"):
        clean_history(rollout)
    write_status(rollout)


def _scale(rollout: Rollout) -> None:
    deployment = rollout.deployment
    only = _active_or_latest(rollout)
    if only is not None:
        if size(only) != size(deployment):
            _resize(rollout, only, size(deployment))
        elif size(only):
            _resize(rollout, only, size(only))
        return
    if _is_saturated(rollout):
        for replica_set in rollout.old:
            if size(replica_set):
                _resize(rollout, replica_set, 0)
        return
    if is_rolling(deployment):
        active = [s for s in rollout.sets if size(s) > 0]
        sizes = proportional_sizes(deployment, active)
        for replica_set in active:
            _resize(rollout, replica_set, sizes[replica_set["metadata"]["name"]])


def _active_or_latest(rollout: Rollout) -> Obj | None:
    active = [s for s in rollout.sets if size(s) > 0]
    if len(active) > 1:
        return None
    if active:
        return active[0]
    return rollout.new or (rollout.old[-1] if rollout.old else None)


def _is_saturated(rollout: Rollout) -> bool:
    new, wanted = rollout.new, size(rollout.deployment)
    if new is None:
        return False
    told = (new["metadata"].get("annotations") or {}).get(DESIRED)
    return told == str(wanted) and size(new) == wanted and counted([new], "availableReplicas") == wanted


def _roll(rollout: Rollout) -> None:
    sync_new(rollout, create=True)
    if rollout.stopped or rollout.new is None:
        return
    if _grow_new(rollout) or _shrink_old(rollout):
        write_rollout_status(rollout)
        return
    _finish(rollout)


def _finish(rollout: Rollout) -> None:
    if is_complete(rollout.deployment, rollout.deployment.get("status") or {}):
        clean_history(rollout)
    write_rollout_status(rollout)


def _grow_new(rollout: Rollout) -> bool:
    new, wanted = rollout.new, size(rollout.deployment)
    if new is None or size(new) == wanted:
        return False
    target = wanted if size(new) > wanted else new_size(rollout.deployment, rollout.sets, new)
    return target != size(new) and _resize(rollout, new, target)


def _shrink_old(rollout: Rollout) -> bool:
    old = [s for s in rollout.old if size(s) > 0]
    if not old or rollout.new is None:
        return False
    targets = old_sizes(rollout.deployment, rollout.new, old)
    changed = [_resize(rollout, s, target) for s, target in zip(old, targets, strict=True) if size(s) != target]
    return any(changed)


def _recreate(rollout: Rollout) -> None:
    sync_new(rollout, create=False)
    active = [s for s in rollout.old if size(s) > 0]
    resized = [_resize(rollout, s, 0) for s in active]
    if any(resized) or _old_pods(rollout):
        write_rollout_status(rollout)
        return
    if rollout.new is None:
        sync_new(rollout, create=True)
    if rollout.stopped or rollout.new is None:
        return
    if size(rollout.new) != size(rollout.deployment) and _resize(rollout, rollout.new, size(rollout.deployment)):
        write_rollout_status(rollout)
        return
    _finish(rollout)


def _old_pods(rollout: Rollout) -> Objs:
    cache = rollout.context.cache
    return [pod for s in rollout.old for pod in cache.controlled(s, "pods") if not is_finished(pod)]


def _keys_of_set(change: Change, cache: Cache) -> list[Key]:
    found = list(owner_key("Deployment")(change, cache))
    if change.type != "DELETED" and controller_of(change.object) is None:
        namespace = change.object["metadata"]["namespace"]
        for deployment in cache.list(DEPLOYMENTS, namespace):
            if matches(deployment["spec"]["selector"], labels_of(change.object)):
                found.append((namespace, deployment["metadata"]["name"]))
    return found


def _keys_of_pod(change: Change, cache: Cache) -> list[Key]:
    """Only Recreate waits for pods: their end wakes the Deployment."""
    if change.type != "DELETED":
        return []
    ref = controller_of(change.object)
    if ref is None or ref["kind"] != "ReplicaSet":
        return []
    namespace = change.object["metadata"]["namespace"]
    owner = controller_of(cache.get(SETS, namespace, ref["name"]) or {"metadata": {}})
    if owner is None or owner["kind"] != "Deployment":
        return []
    deployment = cache.get(DEPLOYMENTS, namespace, owner["name"])
    return [] if deployment is None or is_rolling(deployment) else [(namespace, owner["name"])]


CONTROLLER = Controller(
    "deployment-controller", {DEPLOYMENTS: own_key, SETS: _keys_of_set, "pods": _keys_of_pod}, reconcile
)
