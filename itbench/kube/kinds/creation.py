"""Rules for new objects that updates are not held to. Called by the registry."""

from itbench.kube.client import Obj
from itbench.kube.kinds.check import Check
from itbench.kube.resources import Resource

_UNSET = (
    ("firstTimestamp", "firstTimestamp"),
    ("lastTimestamp", "lastTimestamp"),
    ("count", "count"),
)
"""Fields of events, as stored, that the newer API does without; and how its refusal names them."""


def check_new(resource: Resource, obj: Obj, check: Check) -> None:
    """What must not, or must, be in an object that is created through this API."""
    if resource.storage == "pods" and obj["spec"].get("ephemeralContainers"):
        check.forbidden("spec.ephemeralContainers", "cannot be set on create")
    if resource.group == "events.k8s.io":
        _check_event(obj, check)


def _check_event(event: Obj, check: Check) -> None:
    """Events of events.k8s.io have a time and a known type, and none of the counters of old."""
    if not event.get("eventTime"):
        check.required("eventTime")
    if event.get("type") not in ("Normal", "Warning"):
        check.invalid("type", "", f"has invalid value: {event.get('type', '')}")
    for key, field in _UNSET:
        if event.get(key):
            check.invalid(field, "", "needs to be unset")
    if any((event.get("source") or {}).values()):
        check.invalid("source", "", "needs to be unset")
