"""Deletes: grace periods, finalizers, propagation, namespaces. Called by the registry only."""

from typing import TYPE_CHECKING, Any

from itbench.core.clock import rfc3339
from itbench.kube import status, versions
from itbench.kube.client import Obj
from itbench.kube.custom import cleanup
from itbench.kube.requests import DeleteOptions, Options, Result
from itbench.kube.resources import Resource
from itbench.kube.store import Entry

if TYPE_CHECKING:
    from itbench.kube.registry import Registry

_FOREGROUND, _ORPHAN = "foregroundDeletion", "orphan"
_FINISHED = ("Succeeded", "Failed")
_ORPHANED = frozenset({"replicationcontrollers", "jobs.batch"})
"""Kinds whose dependents stay unless the request says otherwise (as their first versions did)."""


def is_done(resource: Resource, obj: Obj) -> bool:
    """Whether an object that is being deleted has nothing left to wait for."""
    metadata = obj["metadata"]
    if not metadata.get("deletionTimestamp") or metadata.get("finalizers"):
        return False
    if resource.storage == "namespaces" and obj.get("spec", {}).get("finalizers"):
        return False
    return not metadata.get("deletionGracePeriodSeconds")


def _grace(resource: Resource, obj: Obj, how: DeleteOptions) -> int:
    """Seconds that the object stays, marked."""
    if resource.storage != "pods":
        return 0
    spec = obj.get("spec", {})
    if not spec.get("nodeName") or obj.get("status", {}).get("phase") in _FINISHED:
        return 0
    grace = how.grace_s if how.grace_s is not None else spec.get("terminationGracePeriodSeconds", 30)
    return int(grace) if grace >= 0 else 1


def _finalizers(resource: Resource, metadata: Obj, how: DeleteOptions) -> list[str]:
    """The finalizers after the propagation policy added its own."""
    found = [row for row in metadata.get("finalizers") or [] if row not in (_FOREGROUND, _ORPHAN)]
    kept = list(metadata.get("finalizers") or [])
    if how.propagation == "Foreground":
        return [*found, _FOREGROUND]
    if how.propagation == "Orphan":
        return [*found, _ORPHAN]
    if not how.propagation and resource.storage in _ORPHANED and found == kept:
        return [*found, _ORPHAN]
    return found if how.propagation == "Background" else kept


def _check(resource: Resource, entry: Entry, how: DeleteOptions) -> None:
    metadata = entry.object["metadata"]
    title = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    head = f'Operation cannot be fulfilled on {title} "{entry.name}": '
    problem = status.Problem(entry.name, resource.group, resource.kind)
    if how.uid and how.uid != metadata["uid"]:
        text = (
            f"{head}the UID in the precondition ({how.uid}) does not match the UID in record ({metadata['uid']}). "
            "The object might have been deleted and then recreated"
        )
        raise status.failure(409, "Conflict", text, problem)
    version = how.resource_version
    if version and version != metadata["resourceVersion"]:
        text = (
            f"{head}the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record "
            f"({metadata['resourceVersion']}). The object might have been modified"
        )
        raise status.failure(409, "Conflict", text, problem)


def delete(registry: "Registry", resource: Resource, entry: Entry, how: DeleteOptions, options: Options) -> Result:
    """Remove the object, or mark it where grace or finalizers keep it."""
    _check(resource, entry, how)
    warnings: list[str] = []
    write = registry._write("DELETE", resource, entry.object, entry.object, options, "", warnings)
    for plugin in registry.validating:
        plugin(write)
    old = entry.object
    grace = _grace(resource, old, how)
    finalizers = _finalizers(resource, old["metadata"], how)
    if resource.storage == cleanup.DEFINITIONS:
        finalizers = cleanup.finalizers(old, finalizers)
    held = bool(finalizers) or (resource.storage == "namespaces" and bool(old.get("spec", {}).get("finalizers")))
    if grace == 0 and not held:
        if not options.dry_run:
            gone = registry.store.remove(resource.storage, entry.namespace, entry.name)
            entry = gone
        return Result(_answer(registry, resource, entry), None, False, warnings, entry)
    marked = _mark(registry, resource, entry, grace, finalizers)
    if marked is None or options.dry_run:
        shown = marked or entry.object
        return Result(versions.to_served(shown, resource), None, False, warnings, entry)
    stored = registry.store.put(resource.storage, marked)
    return Result(registry.view(resource, stored), stored, False, warnings, entry)


def _answer(registry: "Registry", resource: Resource, entry: Entry) -> Obj:
    if resource.storage == "pods":
        metadata = {"deletionTimestamp": rfc3339(registry.now()), "deletionGracePeriodSeconds": 0}
        return {**entry.object, "metadata": {**entry.object["metadata"], **metadata}}
    if resource.storage in ("namespaces", "persistentvolumeclaims", "persistentvolumes", "serviceaccounts"):
        return versions.to_served(entry.object, resource)
    return status.deleted(resource, entry.name, entry.object["metadata"]["uid"])


def _mark(registry: "Registry", resource: Resource, entry: Entry, grace: int, finalizers: list[str]) -> Obj | None:
    """The object with its deletion noted; None when it already is, as asked."""
    obj: dict[str, Any] = entry.copy()
    metadata = obj["metadata"]
    before = dict(metadata)
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    now = registry.now()
    if not metadata.get("deletionTimestamp"):
        metadata["deletionTimestamp"] = rfc3339(now + grace)
        metadata["deletionGracePeriodSeconds"] = grace
        if "generation" in metadata:
            metadata["generation"] += 1
    elif grace < metadata.get("deletionGracePeriodSeconds", 0):
        metadata["deletionTimestamp"] = rfc3339(now + grace)
        metadata["deletionGracePeriodSeconds"] = grace
    if resource.storage == "namespaces":
        metadata.pop("deletionGracePeriodSeconds", None)
        obj["status"] = {**obj.get("status", {}), "phase": "Terminating"}
    if resource.storage == cleanup.DEFINITIONS and not before.get("deletionTimestamp"):
        cleanup.mark(obj, before, rfc3339(now))
    return None if metadata == before else obj
