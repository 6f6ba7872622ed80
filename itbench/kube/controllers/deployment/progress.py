"""Status and conditions of a Deployment: counts, availability, progress and its deadline. Called by `rollout`."""

from itbench.kube.client import Obj
from itbench.kube.controllers.base import seconds
from itbench.kube.controllers.cache import key_of
from itbench.kube.controllers.conditions import find, remove, set_condition
from itbench.kube.controllers.deployment.revisions import DEPLOYMENTS, Rollout
from itbench.kube.controllers.deployment.scaling import counted, max_unavailable, size, total

AVAILABLE = "NewReplicaSetAvailable"
TIMED_OUT = "ProgressDeadlineExceeded"


def write_rollout_status(rollout: Rollout) -> None:
    """Status during a rollout: counts, Available, Progressing with its deadline, ReplicaFailure."""
    status = _counts(rollout)
    _judge_progress(rollout, status)
    _report_failure(rollout, status)
    if not _write(rollout, status):
        _wait_for_deadline(rollout, status)


def write_status(rollout: Rollout) -> None:
    """Status while scaling or paused: counts and Available only."""
    _write(rollout, _counts(rollout))


def _write(rollout: Rollout, status: Obj) -> bool:
    if not status["conditions"]:
        del status["conditions"]
    if status == (rollout.deployment.get("status") or {}):
        return False
    body = {**rollout.deployment, "status": status}
    rollout.deployment = rollout.context.client.update(DEPLOYMENTS, body, subresource="status")
    return True


def _counts(rollout: Rollout) -> Obj:
    deployment, sets = rollout.deployment, rollout.sets
    old = deployment.get("status") or {}
    available = counted(sets, "availableReplicas")
    numbers = {
        "observedGeneration": deployment["metadata"].get("generation", 1),
        "replicas": counted(sets, "replicas"),
        "updatedReplicas": counted([rollout.new], "replicas") if rollout.new else 0,
        "readyReplicas": counted(sets, "readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(0, total(sets) - available),
    }
    status: Obj = {key: value for key, value in numbers.items() if value}
    if "collisionCount" in old:
        status["collisionCount"] = old["collisionCount"]
    enough = available >= size(deployment) - max_unavailable(deployment)
    new = _condition(rollout, "Available", "True" if enough else "False")
    new["reason"] = "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable"
    new["message"] = (
        "Deployment has minimum availability." if enough else "Deployment does not have minimum availability."
    )
    status["conditions"] = set_condition(old.get("conditions"), new)
    return status


def _condition(rollout: Rollout, kind: str, status: str, reason: str = "", message: str = "") -> Obj:
    stamp = rollout.context.stamp()
    times = {"lastUpdateTime": stamp, "lastTransitionTime": stamp}
    return {"type": kind, "status": status, **times, "reason": reason, "message": message}


def is_complete(deployment: Obj, status: Obj) -> bool:
    """All replicas are of the new revision and available, and the controller has seen the newest spec."""
    wanted = size(deployment)
    counts = [status.get(field, 0) for field in ("updatedReplicas", "replicas", "availableReplicas")]
    return counts == [wanted] * 3 and status.get("observedGeneration", 0) >= deployment["metadata"].get("generation", 1)


def _has_progressed(old: Obj, new: Obj) -> bool:
    def left(status: Obj) -> int:
        return int(status.get("replicas", 0)) - int(status.get("updatedReplicas", 0))

    grown = any(new.get(f, 0) > old.get(f, 0) for f in ("updatedReplicas", "readyReplicas", "availableReplicas"))
    return grown or left(new) < left(old)


def _judge_progress(rollout: Rollout, status: Obj) -> None:
    deployment = rollout.deployment
    if "progressDeadlineSeconds" not in deployment["spec"]:
        status["conditions"] = remove(status["conditions"], "Progressing")
        return
    current = find((deployment.get("status") or {}).get("conditions"), "Progressing")
    settled = status.get("replicas", 0) == status.get("updatedReplicas", 0)
    if settled and current is not None and current.get("reason") == AVAILABLE:
        return
    if is_complete(deployment, status):
        new = _condition(rollout, "Progressing", "True", AVAILABLE, f"{_subject(rollout)} has successfully progressed.")
    elif _has_progressed(deployment.get("status") or {}, status):
        new = _condition(rollout, "Progressing", "True", "ReplicaSetUpdated", f"{_subject(rollout)} is progressing.")
        if current is not None:
            if current["status"] == "True":
                new["lastTransitionTime"] = current["lastTransitionTime"]
            status["conditions"] = remove(status["conditions"], "Progressing")
    elif _timed_out(rollout, current):
        new = _condition(rollout, "Progressing", "False", TIMED_OUT, f"{_subject(rollout)} has timed out progressing.")
    else:
        return
    status["conditions"] = set_condition(status["conditions"], new)


def _subject(rollout: Rollout) -> str:
    if rollout.new is not None:
        return f'ReplicaSet "{rollout.new["metadata"]["name"]}"'
    return f'Deployment "{rollout.deployment["metadata"]["name"]}"'


def _timed_out(rollout: Rollout, current: Obj | None) -> bool:
    if current is None or current.get("reason") == AVAILABLE:
        return False
    if current.get("reason") == TIMED_OUT:
        return True
    limit_s = float(rollout.deployment["spec"]["progressDeadlineSeconds"])
    return seconds(current.get("lastUpdateTime")) + limit_s < rollout.context.now


def _report_failure(rollout: Rollout, status: Obj) -> None:
    failures = [
        found
        for replica_set in ([rollout.new] if rollout.new else []) + rollout.old
        if (found := find((replica_set.get("status") or {}).get("conditions"), "ReplicaFailure")) is not None
    ]
    if not failures:
        status["conditions"] = remove(status["conditions"], "ReplicaFailure")
        return
    failure = {"lastUpdateTime": failures[0].get("lastTransitionTime"), **failures[0]}
    status["conditions"] = set_condition(status["conditions"], failure)


def _wait_for_deadline(rollout: Rollout, status: Obj) -> None:
    """Come back one second after the deadline, if nothing happens before."""
    deployment = rollout.deployment
    current = find(status.get("conditions"), "Progressing")
    if "progressDeadlineSeconds" not in deployment["spec"] or current is None:
        return
    if is_complete(deployment, status) or current.get("reason") == TIMED_OUT:
        return
    limit_s = float(deployment["spec"]["progressDeadlineSeconds"])
    deadline = seconds(current.get("lastUpdateTime")) + limit_s + 1.0
    rollout.context.requeue(key_of(deployment), max(deadline, rollout.context.now + 1.0))
