"""Job controller: pods until enough succeeded or too many failed, indexed or not, with back-off, deadlines and policies.

Pods carry the tracking finalizer until they are counted, so that no result is lost when somebody deletes them.
Source: behaviour of kube-controller-manager 1.34.
"""

from dataclasses import dataclass, field

from itbench.kube.client import ApiError, Obj, Objs
from itbench.kube.controllers.base import (
    Context,
    Controller,
    controls,
    is_deleting,
    own_key,
    owner_reference,
    put_status,
    seconds,
    whole,
)
from itbench.kube.controllers.cache import Key, controller_of, key_of, labels_of
from itbench.kube.controllers.conditions import find, set_condition
from itbench.kube.controllers.pods import from_template, is_active, is_finished, is_ready, phase
from itbench.kube.controllers.selectors import matches

RESOURCE = "jobs.batch"
TRACKING = "batch.kubernetes.io/job-tracking"
_OWN_NAME = "kubernetes.io/job-controller"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
INDEX = "batch.kubernetes.io/job-completion-index"
BACKOFF_S = 10.0
BACKOFF_MAX_S = 600.0


@dataclass
class Round:
    """One pass: the Job, its pods, and the counts so far."""

    context: Context
    job: Obj
    pods: Objs
    succeeded: int = 0
    failed: int = 0
    completed: set[int] = field(default_factory=set)
    failed_indexes: set[int] = field(default_factory=set)
    made: int = 0
    deleted: set[str] = field(default_factory=set)
    conditions: Objs = field(default_factory=list)

    @property
    def spec(self) -> Obj:
        """The Job's spec."""
        return dict(self.job["spec"])

    @property
    def indexed(self) -> bool:
        """Every completion has an index."""
        return bool(self.job["spec"].get("completionMode") == "Indexed")

    @property
    def active(self) -> Objs:
        """Pods at work."""
        return [p for p in self.pods if is_active(p) and p["metadata"]["name"] not in self.deleted]

    def has(self, kind: str) -> bool:
        """Whether a condition holds."""
        return (find(self.conditions, kind) or {}).get("status") == "True"

    def set(self, kind: str, reason: str, message: str, status: str = "True") -> None:
        """Set a condition."""
        stamp = self.context.stamp()
        new = {"type": kind, "status": status, "lastProbeTime": stamp, "lastTransitionTime": stamp}
        self.conditions = set_condition(self.conditions, {**new, "reason": reason, "message": message})


def reconcile(context: Context, namespace: str, name: str) -> None:
    """One pass over one Job."""
    job = context.cache.get(RESOURCE, namespace, name)
    ours = job is not None and (job["spec"].get("managedBy") or _OWN_NAME) == _OWN_NAME
    pods = _claim(context, job) if job is not None and ours else []
    _free_orphans(context, namespace, name, {key_of(pod) for pod in pods})
    if job is None or not ours:
        return
    status = job.get("status") or {}
    this = Round(context, job, pods, conditions=list(status.get("conditions") or ()))
    this.succeeded, this.failed = status.get("succeeded", 0), status.get("failed", 0)
    this.completed = parse_indexes(status.get("completedIndexes", ""))
    this.failed_indexes = parse_indexes(status.get("failedIndexes", ""))
    counted = _count(this)
    if this.has("Complete") or this.has("Failed") or is_deleting(job):
        _release(this, counted)
        return
    problem = _manage(this)
    _finish(this)
    _write_status(this)
    _release(this, counted)
    if problem is not None:
        raise problem


def _claim(context: Context, job: Obj) -> Objs:
    """The Job's pods: orphans that match its selector are taken in, with the finalizer; others are let go, without."""
    meta, selector = job["metadata"], job["spec"].get("selector")
    kept: Objs = []
    for pod in context.cache.controlled(job, "pods"):
        if matches(selector, labels_of(pod)) or is_deleting(job):
            kept.append(pod)
            continue
        refs = [ref for ref in pod["metadata"]["ownerReferences"] if ref["uid"] != meta["uid"]]
        _rewrite(context, pod, refs, [f for f in pod["metadata"].get("finalizers") or () if f != TRACKING])
    if is_deleting(job):
        return kept
    for pod in context.cache.orphans("pods", meta["namespace"]):
        if is_active(pod) and matches(selector, labels_of(pod)):
            refs = [*(pod["metadata"].get("ownerReferences") or ()), owner_reference(job)]
            rest = [f for f in pod["metadata"].get("finalizers") or () if f != TRACKING]
            kept.append(_rewrite(context, pod, refs, [*rest, TRACKING]))
    return sorted(kept, key=key_of)


def _rewrite(context: Context, pod: Obj, refs: Objs, finalizers: list[str]) -> Obj:
    namespace, name = key_of(pod)
    patch = {"metadata": {"ownerReferences": refs or None, "finalizers": finalizers or None}}
    return context.client.patch("pods", name, namespace, patch)


def _free_orphans(context: Context, namespace: str, name: str, claimed: set[Key]) -> None:
    """Pods of a Job that is gone lose the finalizer: nobody will count them."""
    for pod in context.cache.pods_with(namespace, {"batch.kubernetes.io/job-name": name}):
        owner = controller_of(pod)
        if (
            key_of(pod) not in claimed
            and _tracked(pod)
            and (owner is None or context.cache.by_uid(owner["uid"]) is None)
        ):
            _untrack(context, pod)


def parse_indexes(text: str) -> set[int]:
    """`1,3-5` -> {1, 3, 4, 5}."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def format_indexes(indexes: set[int]) -> str:
    """The inverse of `parse_indexes`; runs of two are written apart, as the real controller does from three on."""
    parts: list[str] = []
    ordered = sorted(indexes)
    start = 0
    while start < len(ordered):
        end = start
        while end + 1 < len(ordered) and ordered[end + 1] == ordered[end] + 1:
            end += 1
        first, last = ordered[start], ordered[end]
        parts.append(str(first) if first == last else f"{first},{last}" if last == first + 1 else f"{first}-{last}")
        start = end + 1
    return ",".join(parts)


def _tracked(pod: Obj) -> bool:
    return TRACKING in (pod["metadata"].get("finalizers") or ())


def _ended(pod: Obj) -> bool:
    """Finished, or given up by its kubelet (only finalizers keep it)."""
    given_up = is_deleting(pod) and not pod["metadata"].get("deletionGracePeriodSeconds")
    return is_finished(pod) or given_up


def _index(pod: Obj) -> int | None:
    value = (pod["metadata"].get("annotations") or {}).get(INDEX)
    return whole(value, -1) if value is not None else None


def _count(this: Round) -> Objs:
    """Take finished pods that are not counted yet into the sums; they are released afterwards."""
    counted = []
    for pod in this.pods:
        if not _tracked(pod):
            continue
        if not _ended(pod):
            continue
        counted.append(pod)
        index = _index(pod)
        if phase(pod) == "Succeeded":
            if index is None:
                this.succeeded += 1
            elif index not in this.completed:
                this.completed.add(index)
        elif _policy(this, pod) != "Ignore":
            this.failed += 1
            this.context.state.setdefault("failures", {}).setdefault(this.job["metadata"]["uid"], []).append(
                _ended_at(this, pod)
            )
            _fail_index(this, index, pod)
    if this.indexed:
        this.succeeded = len(this.completed)
    return counted


def _ended_at(this: Round, pod: Obj) -> float:
    ends = [
        seconds((c.get("state", {}).get("terminated") or {}).get("finishedAt"))
        for c in (pod.get("status") or {}).get("containerStatuses") or ()
        if (c.get("state", {}).get("terminated") or {}).get("finishedAt")
    ]
    return max(ends, default=this.context.now)


def _fail_index(this: Round, index: int | None, pod: Obj) -> None:
    limit = this.job["spec"].get("backoffLimitPerIndex")
    if index is None or limit is None:
        return
    tries = this.context.state.setdefault("tries", {}).setdefault(this.job["metadata"]["uid"], {})
    tries[str(index)] = tries.get(str(index), 0) + 1
    ends = this.context.state.setdefault("ends", {}).setdefault(this.job["metadata"]["uid"], {})
    ends[str(index)] = _ended_at(this, pod)
    if tries[str(index)] > limit or _policy(this, pod) == "FailIndex":
        this.failed_indexes.add(index)


def _policy(this: Round, pod: Obj) -> str:
    """Action of the first matching pod failure policy rule; Count without one."""
    for rule in (this.job["spec"].get("podFailurePolicy") or {}).get("rules") or ():
        if _rule_matches(rule, pod):
            return str(rule["action"])
    return "Count"


def _rule_matches(rule: Obj, pod: Obj) -> bool:
    codes = rule.get("onExitCodes")
    if codes:
        for container in (pod.get("status") or {}).get("containerStatuses") or ():
            code = (container.get("state", {}).get("terminated") or {}).get("exitCode", 0)
            named = codes.get("containerName") in (None, "", container["name"])
            if named and code != 0 and (code in codes["values"]) == (codes["operator"] == "In"):
                return True
        return False
    have = {(c["type"], c["status"]) for c in (pod.get("status") or {}).get("conditions") or ()}
    return any((c["type"], c.get("status", "True")) in have for c in rule.get("onPodConditions") or ())


def _release(this: Round, counted: Objs) -> None:
    """Counted pods, and those of a Job that ended, lose the finalizer."""
    ended = this.has("Complete") or this.has("Failed") or is_deleting(this.job)
    for pod in this.pods if ended else counted:
        if not _tracked(pod):
            continue
        _untrack(this.context, pod)


def _untrack(context: Context, pod: Obj) -> None:
    rest = [f for f in pod["metadata"]["finalizers"] if f != TRACKING]
    namespace, name = key_of(pod)
    try:
        context.client.patch("pods", name, namespace, {"metadata": {"finalizers": rest or None}})
    except ApiError as error:
        if error.code != 404:
            raise


def _manage(this: Round) -> ApiError | None:
    """Failure, suspension, completion, or more pods."""
    if not this.has("SuccessCriteriaMet") and _note_failure(this):
        _delete_pods(this, this.active)
        return None
    if this.spec.get("suspend"):
        _suspend(this)
        return None
    if this.has("Suspended"):
        this.set("Suspended", "JobResumed", "Job resumed", "False")
        this.context.event(this.job, "Resumed", "Job resumed")
    if _note_success(this) or _is_done(this):
        _delete_pods(this, this.active)
        return None
    return _adjust(this)


def _suspend(this: Round) -> None:
    _delete_pods(this, this.active)
    if not this.has("Suspended"):
        this.set("Suspended", "JobSuspended", "Job suspended")
        this.context.event(this.job, "Suspended", "Job suspended")


def _note_failure(this: Round) -> bool:
    if this.has("FailureTarget"):
        return True
    reason, message = _failure(this)
    if reason:
        this.set("FailureTarget", reason, message)
    return bool(reason)


def _note_success(this: Round) -> bool:
    """Whether the success policy holds: enough of the named indexes, or of all, succeeded."""
    if this.has("SuccessCriteriaMet"):
        return True
    for number, rule in enumerate((this.job["spec"].get("successPolicy") or {}).get("rules") or ()):
        named = rule.get("succeededIndexes")
        wanted = parse_indexes(named) if named else None
        hits = this.completed if wanted is None else this.completed & wanted
        needed = rule.get("succeededCount", len(wanted) if wanted is not None else None)
        if needed is not None and len(hits) >= needed:
            this.set("SuccessCriteriaMet", "SuccessPolicy", f"Matched rules at index {number}")
            return True
    return False


def _failure(this: Round) -> tuple[str, str]:
    spec, status = this.job["spec"], this.job.get("status") or {}
    for pod in this.pods:
        if phase(pod) == "Failed" and _policy(this, pod) == "FailJob":
            name = "/".join(key_of(pod))
            return "PodFailurePolicy", f"Pod {name} failed and matched a FailJob rule of the pod failure policy"
    if (
        this.failed_indexes
        and spec.get("maxFailedIndexes") is not None
        and len(this.failed_indexes) > spec["maxFailedIndexes"]
    ):
        return "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
    restarts = 0
    if spec["template"]["spec"].get("restartPolicy") == "OnFailure":
        restarts = sum(_restarts(p) for p in this.pods if phase(p) in ("Running", "Pending"))
    if spec.get("backoffLimitPerIndex") is None and this.failed + restarts > spec.get("backoffLimit", 6):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    limit_s = spec.get("activeDeadlineSeconds")
    if limit_s is not None and status.get("startTime") and not spec.get("suspend"):
        end = seconds(status["startTime"]) + limit_s
        if this.context.now >= end:
            return "DeadlineExceeded", "Job was active longer than specified deadline"
        this.context.requeue(key_of(this.job), end)
    wanted = spec.get("completions")
    if (
        this.indexed
        and this.failed_indexes
        and wanted is not None
        and len(this.completed | this.failed_indexes) >= wanted
    ):
        return "FailedIndexes", "Job has failed indexes"
    return "", ""


def _restarts(pod: Obj) -> int:
    return sum(c.get("restartCount", 0) for c in (pod.get("status") or {}).get("containerStatuses") or ())


def _is_done(this: Round) -> bool:
    completions = this.job["spec"].get("completions")
    if completions is None:
        return this.succeeded > 0 and not this.active
    return this.succeeded >= int(completions)


def _adjust(this: Round) -> ApiError | None:
    """Make or delete pods until the right number works."""
    spec, active = this.job["spec"], this.active
    parallelism, completions = spec.get("parallelism", 1), spec.get("completions")
    if completions is None:
        wanted = len(active) if this.succeeded else parallelism
    else:
        wanted = min(parallelism, completions - this.succeeded - len(this.failed_indexes))
    if len(active) > wanted:
        surplus = sorted(active, key=lambda p: (is_ready(p), p["metadata"]["creationTimestamp"]))
        _delete_pods(this, surplus[: len(active) - max(0, wanted)])
        return None
    leaving = sum(is_deleting(p) and not _ended(p) for p in this.pods)
    room = wanted - len(active) - leaving
    if room <= 0:
        return None
    wait = _backoff_until(this)
    if wait > this.context.now:
        this.context.requeue(key_of(this.job), wait)
        return None
    return _create_pods(this, room)


def _backoff_until(this: Round) -> float:
    """When the next pod may be made: 10 s after a failure, doubling with each since the last success."""
    ends = this.context.state.get("failures", {}).get(this.job["metadata"]["uid"])
    if not ends or this.job["spec"].get("backoffLimitPerIndex") is not None:
        return 0.0
    return float(max(ends)) + min(BACKOFF_S * 2.0 ** (len(ends) - 1), BACKOFF_MAX_S)


def _rests(this: Round, index: int) -> bool:
    """Whether an index waits out its own back-off; the Job is looked at again when it ends."""
    uid = this.job["metadata"]["uid"]
    failed = this.context.state.get("tries", {}).get(uid, {}).get(str(index), 0)
    if not failed:
        return False
    ended_at = this.context.state.get("ends", {}).get(uid, {}).get(str(index), 0.0)
    end = ended_at + min(BACKOFF_S * 2.0 ** (failed - 1), BACKOFF_MAX_S)
    if end > this.context.now:
        this.context.requeue(key_of(this.job), end)
    return bool(end > this.context.now)


def _create_pods(this: Round, count: int) -> ApiError | None:
    busy = {_index(p) for p in this.pods if not is_finished(p)} | this.completed | this.failed_indexes
    free = (i for i in range(this.job["spec"].get("completions") or 0) if i not in busy and not _rests(this, i))
    for _ in range(count):
        index = next(free, None) if this.indexed else None
        if this.indexed and index is None:
            return None
        try:
            made = this.context.client.create("pods", _pod(this, index), this.job["metadata"]["namespace"])
        except ApiError as error:
            this.context.event(this.job, "FailedCreate", f"Error creating: {error}", "Warning")
            return error
        this.made += 1
        this.context.event(this.job, "SuccessfulCreate", f"Created pod: {made['metadata']['name']}")
    return None


def _pod(this: Round, index: int | None) -> Obj:
    job, template = this.job, this.job["spec"]["template"]
    name = job["metadata"]["name"]
    if index is None:
        pod = from_template(job, template, generateName=f"{name}-")
    else:
        pod = from_template(job, template, generateName=f"{name}-{index}-", labels={INDEX: str(index)})
        notes = {**(pod["metadata"].get("annotations") or {}), INDEX: str(index)}
        if job["spec"].get("backoffLimitPerIndex") is not None:
            tries = this.context.state.get("tries", {}).get(job["metadata"]["uid"], {})
            notes[FAILURES] = str(tries.get(str(index), 0))
        pod["metadata"]["annotations"] = notes
        source = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
        env = {"name": "JOB_COMPLETION_INDEX", "valueFrom": source}
        containers = [{**c, "env": [*(c.get("env") or ()), env]} for c in pod["spec"]["containers"]]
        pod["spec"] = {**pod["spec"], "containers": containers, "hostname": f"{name}-{index}"}
    pod["metadata"]["finalizers"] = [*(pod["metadata"].get("finalizers") or ()), TRACKING]
    return pod


def _delete_pods(this: Round, pods: Objs) -> None:
    for pod in pods:
        namespace, name = key_of(pod)
        try:
            this.context.client.delete("pods", name, namespace, uid=pod["metadata"]["uid"])
        except ApiError as error:
            if error.code != 404:
                raise
        this.deleted.add(name)
        this.context.event(this.job, "SuccessfulDelete", f"Deleted pod: {name}")


def _finish(this: Round) -> None:
    """Terminal conditions, once no pod is left at work."""
    target = find(this.conditions, "FailureTarget")
    met = find(this.conditions, "SuccessCriteriaMet")
    if target is None and (met is not None or _is_done(this)) and not this.spec.get("suspend"):
        if met is None:
            this.set("SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods")
            met = this.conditions[-1]
        if not _working(this):
            this.set("Complete", met["reason"], met["message"])
            this.context.event(this.job, "Completed", "Job completed")
            _forget(this)
    elif target is not None and not _working(this):
        this.set("Failed", target["reason"], target["message"])
        this.context.event(this.job, target["reason"], target["message"], "Warning")
        _forget(this)


def _working(this: Round) -> bool:
    return bool(this.made) or any(not _ended(p) for p in this.pods if _still_there(this, p))


def _still_there(this: Round, pod: Obj) -> bool:
    try:
        this.context.client.get("pods", pod["metadata"]["name"], pod["metadata"]["namespace"])
    except ApiError:
        return False
    return True


def _forget(this: Round) -> None:
    uid = this.job["metadata"]["uid"]
    for table in ("failures", "tries", "ends"):
        this.context.state.get(table, {}).pop(uid, None)


def _write_status(this: Round) -> None:
    old = this.job.get("status") or {}
    active = len(this.active) + this.made
    leaving = sum(is_deleting(p) and not _ended(p) for p in this.pods) + len(this.deleted)
    status: Obj = {"ready": sum(map(is_ready, this.active)), "terminating": leaving, "uncountedTerminatedPods": {}}
    counts = {"active": active, "succeeded": this.succeeded, "failed": this.failed}
    status.update({key: value for key, value in counts.items() if value})
    if this.conditions:
        status["conditions"] = this.conditions
    if not this.spec.get("suspend"):
        status["startTime"] = old.get("startTime") or this.context.stamp()
    if this.indexed:
        if this.completed:
            status["completedIndexes"] = format_indexes(this.completed)
        if this.job["spec"].get("backoffLimitPerIndex") is not None:
            status["failedIndexes"] = format_indexes(this.failed_indexes)
    if this.has("Complete"):
        status["completionTime"] = old.get("completionTime") or this.context.stamp()
    put_status(this.context, RESOURCE, this.job, status)


CONTROLLER = Controller("job-controller", {RESOURCE: own_key, "pods": controls("Job", RESOURCE)}, reconcile)
