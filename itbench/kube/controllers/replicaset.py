"""ReplicaSet controller: as many active pods as asked for, adopted or released by label, and a status that counts them.

ReplicationControllers are the same with another selector: `controller` makes the row of either.
"""

from itbench.kube.client import ApiError, Obj, Objs
from itbench.kube.controllers.base import (
    Context,
    Controller,
    Reconcile,
    controls,
    is_deleting,
    own_key,
    owner_reference,
    put_status,
)
from itbench.kube.controllers.cache import controller_of, key_of, labels_of
from itbench.kube.controllers.conditions import find, remove, set_condition
from itbench.kube.controllers.pods import (
    available_at,
    crowd_of,
    deletion_rank,
    from_template,
    is_active,
    is_available,
    is_ready,
)
from itbench.kube.controllers.selectors import matches, selector_of

RESOURCE = "replicasets.apps"
BURST = 500
"""Pods created or deleted in one pass."""


def reconciler(resource: str) -> Reconcile:
    """One pass over one object of the resource."""

    def reconcile(context: Context, namespace: str, name: str) -> None:
        owner = context.cache.get(resource, namespace, name)
        if owner is None:
            return
        pods = [pod for pod in claim(context, owner) if is_active(pod)]
        failure: tuple[str, ApiError] | None = None
        if not is_deleting(owner):
            failure = _scale(context, owner, pods)
        _write_status(context, resource, owner, pods, failure)
        if failure is not None:
            raise failure[1]

    return reconcile


def claim(context: Context, owner: Obj) -> Objs:
    """The owner's pods: adopts orphans that match its selector and releases owned ones that no longer do."""
    selector = selector_of(owner)
    namespace = owner["metadata"]["namespace"]
    kept: Objs = []
    for pod in context.cache.controlled(owner, "pods"):
        if matches(selector, labels_of(pod)):
            kept.append(pod)
        elif not is_deleting(owner):
            _release(context, owner, pod)
    if not is_deleting(owner):
        for pod in context.cache.orphans("pods", namespace):
            if is_active(pod) and matches(selector, labels_of(pod)):
                kept.append(_adopt(context, owner, pod))
    return kept


def _adopt(context: Context, owner: Obj, pod: Obj) -> Obj:
    refs = [*(pod["metadata"].get("ownerReferences") or ()), owner_reference(owner)]
    namespace, name = key_of(pod)
    return context.client.patch("pods", name, namespace, {"metadata": {"ownerReferences": refs}})


def _release(context: Context, owner: Obj, pod: Obj) -> None:
    refs = [r for r in pod["metadata"]["ownerReferences"] if r["uid"] != owner["metadata"]["uid"]]
    namespace, name = key_of(pod)
    context.client.patch("pods", name, namespace, {"metadata": {"ownerReferences": refs or None}})


def _scale(context: Context, owner: Obj, pods: Objs) -> tuple[str, ApiError] | None:
    missing = owner["spec"].get("replicas", 1) - len(pods)
    if missing > 0:
        return _create(context, owner, min(missing, BURST))
    if missing < 0:
        return _delete(context, owner, pods, min(-missing, BURST))
    return None


def _create(context: Context, owner: Obj, count: int) -> tuple[str, ApiError] | None:
    prefix = owner["metadata"]["name"] + "-"
    for _ in range(count):
        pod = from_template(owner, owner["spec"]["template"], generateName=prefix)
        try:
            made = context.client.create("pods", pod, owner["metadata"]["namespace"])
        except ApiError as error:
            if not _is_ending(error):
                context.event(owner, "FailedCreate", f"Error creating: {error}", "Warning")
            return "FailedCreate", error
        context.event(owner, "SuccessfulCreate", f"Created pod: {made['metadata']['name']}")
    return None


def _is_ending(error: ApiError) -> bool:
    causes = (error.status.get("details") or {}).get("causes") or ()
    return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)


def _delete(context: Context, owner: Obj, pods: Objs, count: int) -> tuple[str, ApiError] | None:
    rank = deletion_rank(crowd_of(_relatives(context, owner, pods)), context.now)
    for pod in sorted(pods, key=rank)[:count]:
        namespace, name = key_of(pod)
        try:
            context.client.delete("pods", name, namespace, uid=pod["metadata"]["uid"])
        except ApiError as error:
            if error.code == 404:
                continue
            context.event(owner, "FailedDelete", f"Error deleting: {error}", "Warning")
            return "FailedDelete", error
        context.event(owner, "SuccessfulDelete", f"Deleted pod: {name}")
    return None


def _relatives(context: Context, owner: Obj, pods: Objs) -> Objs:
    """Pods of all ReplicaSets with the same controller: they decide which nodes are crowded."""
    parent = controller_of(owner)
    if parent is None:
        return pods
    siblings = [s for s in context.cache.owned(parent["uid"], RESOURCE) if (controller_of(s) or {}) == parent]
    return [pod for sibling in siblings for pod in context.cache.controlled(sibling, "pods")]


def _write_status(
    context: Context, resource: str, owner: Obj, pods: Objs, failure: tuple[str, ApiError] | None
) -> None:
    put_status(context, resource, owner, _status(context, owner, pods, failure))
    min_ready_s = owner["spec"].get("minReadySeconds", 0)
    if min_ready_s:
        times = [at for pod in pods if context.now < (at := available_at(pod, min_ready_s)) < float("inf")]
        if times:
            context.requeue(key_of(owner), min(times))


def _status(context: Context, owner: Obj, pods: Objs, failure: tuple[str, ApiError] | None) -> Obj:
    min_ready_s = owner["spec"].get("minReadySeconds", 0)
    wanted = owner["spec"]["template"].get("metadata", {}).get("labels") or {}
    status: Obj = {"replicas": len(pods)}
    counts = {
        "fullyLabeledReplicas": sum(wanted.items() <= labels_of(p).items() for p in pods),
        "readyReplicas": sum(map(is_ready, pods)),
        "availableReplicas": sum(is_available(p, min_ready_s, context.now) for p in pods),
    }
    status.update({key: value for key, value in counts.items() if value})
    status["observedGeneration"] = owner["metadata"].get("generation", 1)
    conditions = _conditions(context, owner, failure)
    if conditions:
        status["conditions"] = conditions
    return status


def _conditions(context: Context, owner: Obj, failure: tuple[str, ApiError] | None) -> Objs:
    conditions = list((owner.get("status") or {}).get("conditions") or ())
    if failure is None:
        return remove(conditions, "ReplicaFailure")
    if find(conditions, "ReplicaFailure") is not None:
        return conditions
    new = {
        "type": "ReplicaFailure",
        "status": "True",
        "reason": failure[0],
        "message": str(failure[1]),
        "lastTransitionTime": context.stamp(),
    }
    return set_condition(conditions, new)


def controller(name: str, kind: str, resource: str) -> Controller:
    """The row of a kind that keeps a number of pods.

    Args:
        name: of the controller.
        kind: of its objects.
        resource: of its objects.
    """
    return Controller(name, {resource: own_key, "pods": controls(kind, resource)}, reconciler(resource))


CONTROLLER = controller("replicaset-controller", "ReplicaSet", RESOURCE)
