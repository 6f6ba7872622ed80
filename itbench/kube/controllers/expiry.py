"""What goes by itself: Events an hour after they were last written, finished Jobs after `ttlSecondsAfterFinished`."""

from itbench.kube.client import ApiError, Change
from itbench.kube.controllers.base import Context, Controller, is_deleting, own_key, seconds
from itbench.kube.controllers.cache import Cache, Key, key_of
from itbench.kube.controllers.pods import condition

EVENT_TTL_S = 3600.0
JOBS = "jobs.batch"


def _event_keys(change: Change, cache: Cache) -> list[Key]:
    """All events share one key; their expiry lies in the state, in the order of writing."""
    namespace, name = key_of(change.object)
    return [(namespace, name)] if change.type != "DELETED" else []


def reconcile_events(context: Context, namespace: str, name: str) -> None:
    """Note a written event, or sweep those whose hour is over (key `""`)."""
    expiry = context.state.setdefault("expiry", {})
    if name:
        text = f"{namespace}/{name}"
        expiry.pop(text, None)
        expiry[text] = context.now + EVENT_TTL_S
        context.requeue(("", ""), expiry[next(iter(expiry))])
        return
    while expiry:
        text = next(iter(expiry))
        if expiry[text] > context.now:
            context.requeue(("", ""), expiry[text])
            return
        del expiry[text]
        try:
            context.client.delete("events", text.partition("/")[2], text.partition("/")[0])
        except ApiError as error:
            if error.code != 404:
                raise


def reconcile_jobs(context: Context, namespace: str, name: str) -> None:
    """Delete a finished Job when its time is over."""
    job = context.cache.get(JOBS, namespace, name)
    if job is None or is_deleting(job) or job["spec"].get("ttlSecondsAfterFinished") is None:
        return
    ends = [
        seconds(found["lastTransitionTime"])
        for kind in ("Complete", "Failed")
        if (found := condition(job, kind)) is not None and found["status"] == "True"
    ]
    if not ends:
        return
    at = ends[0] + job["spec"]["ttlSecondsAfterFinished"]
    if context.now < at:
        context.requeue((namespace, name), at)
    else:
        context.client.delete(JOBS, name, namespace, propagation="Foreground", uid=job["metadata"]["uid"])


EVENTS = Controller("event-ttl", {"events": _event_keys}, reconcile_events)
FINISHED_JOBS = Controller("ttl-after-finished-controller", {JOBS: own_key}, reconcile_jobs)
