"""CronJob controller: starts Jobs at their times, keeps concurrency and history within limits."""

from datetime import timedelta
from math import floor

from itbench.core.clock import EPOCH, rfc3339, unix
from itbench.kube.client import ApiError, Obj, Objs
from itbench.kube.controllers.base import (
    Context,
    Controller,
    is_deleting,
    own_key,
    owner_key,
    owner_reference,
    put_status,
    seconds,
)
from itbench.kube.controllers.cache import key_of
from itbench.kube.controllers.cron import Schedule
from itbench.kube.controllers.job import RESOURCE as JOBS
from itbench.kube.controllers.pods import condition
from itbench.kube.events import reference

RESOURCE = "cronjobs.batch"
SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
MANY_MISSED = 100


def _end(job: Obj) -> str:
    """`Complete`, `Failed` or empty."""
    for kind in ("Complete", "Failed"):
        if (condition(job, kind) or {}).get("status") == "True":
            return kind
    return ""


def reconcile(context: Context, namespace: str, name: str) -> None:
    """One pass over one CronJob."""
    owner = context.cache.get(RESOURCE, namespace, name)
    if owner is None:
        return
    jobs = context.cache.controlled(owner, JOBS)
    status = {**(owner.get("status") or {})}
    status["active"] = _active(context, owner, jobs, status)
    if not is_deleting(owner):
        _trim(context, owner, jobs)
        if not owner["spec"].get("suspend"):
            _start(context, owner, jobs, status)
    if not status["active"]:
        del status["active"]
    put_status(context, RESOURCE, owner, status)


def _active(context: Context, owner: Obj, jobs: Objs, status: Obj) -> Objs:
    """References to running Jobs; what ended or vanished leaves the list with an event."""
    by_uid = {job["metadata"]["uid"]: job for job in jobs}
    kept = []
    for ref in status.get("active") or ():
        job = by_uid.get(ref["uid"])
        if job is None:
            context.event(owner, "MissingJob", f"Active job went missing: {ref['name']}")
        elif end := _end(job):
            context.event(owner, "SawCompletedJob", f"Saw completed job: {ref['name']}, condition: {end}")
            if end == "Complete":
                done = (job.get("status") or {}).get("completionTime")
                status["lastSuccessfulTime"] = max(done or "", status.get("lastSuccessfulTime", ""))
        else:
            kept.append(ref)
    known = {ref["uid"] for ref in kept}
    for job in jobs:
        if job["metadata"]["uid"] not in known and not _end(job) and not is_deleting(job):
            kept.append(reference(job))
    return kept


def _trim(context: Context, owner: Obj, jobs: Objs) -> None:
    limits = {"Complete": ("successfulJobsHistoryLimit", 3), "Failed": ("failedJobsHistoryLimit", 1)}
    for kind, (field, default) in limits.items():
        ended = [j for j in jobs if _end(j) == kind and not is_deleting(j)]
        ended.sort(key=lambda j: ((j.get("status") or {}).get("startTime", ""), j["metadata"]["name"]))
        for job in ended[: max(0, len(ended) - owner["spec"].get(field, default))]:
            _delete(context, owner, job)


def _delete(context: Context, owner: Obj, job: Obj) -> None:
    namespace, name = key_of(job)
    try:
        context.client.delete(JOBS, name, namespace, uid=job["metadata"]["uid"])
    except ApiError as error:
        if error.code != 404:
            context.event(owner, "FailedDelete", f"Deleted job: {error}", "Warning")
        return
    context.event(owner, "SuccessfulDelete", f"Deleted job {name}")


def _start(context: Context, owner: Obj, jobs: Objs, status: Obj) -> None:
    """Start the latest due run, if rules allow it, and plan the next look."""
    spec = owner["spec"]
    try:
        schedule = Schedule(spec["schedule"], spec.get("timeZone") or "")
    except ValueError as error:
        unknown = "zone" in str(error)
        reason = "UnknownTimeZone" if unknown else "UnparseableSchedule"
        text = (
            f"invalid timeZone: {spec.get('timeZone')!r}: {error}"
            if unknown
            else f"unparseable schedule: {spec['schedule']!r} : {error}"
        )
        context.event(owner, reason, text.replace("'", '"'), "Warning")
        return
    due, missed = _due(context, owner, schedule, status)
    context.requeue(key_of(owner), next(schedule.after(context.now)))
    if due is None:
        return
    if missed > MANY_MISSED:
        text = (
            f"too many missed start times: {missed}. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
        )
        context.event(owner, "TooManyMissedTimes", text, "Warning")
    limit_s = spec.get("startingDeadlineSeconds")
    if limit_s is not None and due + limit_s < context.now:
        context.event(owner, "MissSchedule", f"Missed scheduled time to start a job: {_wordy(due)}", "Warning")
        return
    _apply_concurrency(context, owner, jobs, status, due)


def _due(context: Context, owner: Obj, schedule: Schedule, status: Obj) -> tuple[float | None, int]:
    """The latest scheduled time that has come, and how many there were."""
    since = seconds(status.get("lastScheduleTime") or owner["metadata"]["creationTimestamp"])
    limit_s = owner["spec"].get("startingDeadlineSeconds")
    if limit_s is not None:
        since = max(since, context.now - limit_s)
    latest, count = None, 0
    for at in schedule.after(since):
        if at > context.now:
            break
        latest, count = at, count + 1
    return latest, count


def _wordy(at: float) -> str:
    """As Go prints times in RFC 1123 with a numeric zone."""
    return (EPOCH + timedelta(seconds=at)).strftime("%a, %d %b %Y %H:%M:%S +0000")


def _apply_concurrency(context: Context, owner: Obj, jobs: Objs, status: Obj, due: float) -> None:
    policy = owner["spec"].get("concurrencyPolicy", "Allow")
    if policy == "Forbid" and status["active"]:
        text = "Not starting job because prior execution is running and concurrency policy is Forbid"
        context.event(owner, "JobAlreadyActive", text)
        return
    if policy == "Replace":
        running = {ref["uid"] for ref in status["active"]}
        for job in jobs:
            if job["metadata"]["uid"] in running:
                _delete(context, owner, job)
        status["active"] = []
    made = _create(context, owner, due)
    if made is not None:
        status["active"] = [*status["active"], reference(made)]
        status["lastScheduleTime"] = rfc3339(due)


def _create(context: Context, owner: Obj, due: float) -> Obj | None:
    meta, template = owner["metadata"], owner["spec"]["jobTemplate"]
    source = template.get("metadata") or {}
    name = f"{meta['name']}-{floor(unix(due) / 60)}"
    metadata: Obj = {
        "name": name,
        "namespace": meta["namespace"],
        "annotations": {**(source.get("annotations") or {}), SCHEDULED_AT: rfc3339(due)},
        "ownerReferences": [owner_reference(owner)],
    }
    if source.get("labels"):
        metadata["labels"] = {**source["labels"]}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": template["spec"]}
    try:
        made = context.client.create(JOBS, body, meta["namespace"])
    except ApiError as error:
        if error.reason == "AlreadyExists":
            return context.cache.get(JOBS, meta["namespace"], name)
        context.event(owner, "FailedCreate", f"Error creating job: {error}", "Warning")
        raise
    context.event(owner, "SuccessfulCreate", f"Created job {name}")
    return made


CONTROLLER = Controller("cronjob-controller", {RESOURCE: own_key, JOBS: owner_key("CronJob")}, reconcile)
