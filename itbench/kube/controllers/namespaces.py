"""Namespace controller: empties a terminating namespace, says in conditions what is left, and lets it go."""

from itbench.kube.client import ApiError, Change, Obj, Objs
from itbench.kube.controllers.base import Context, Controller, is_deleting, own_key
from itbench.kube.controllers.cache import Cache, Key, key_of
from itbench.kube.controllers.conditions import upsert

CONTENT = "NamespaceContentRemaining"
FINALIZERS = "NamespaceFinalizersRemaining"


def _keys_of_content(change: Change, cache: Cache) -> list[Key]:
    """Only what leaves, or gains or loses finalizers in, a terminating namespace matters (or is created there late)."""
    namespace = change.object["metadata"].get("namespace", "")
    if not namespace or change.resource == "namespaces":
        return []
    owner = cache.get("namespaces", "", namespace)
    return [("", namespace)] if owner is not None and is_deleting(owner) else []


def reconcile(context: Context, _: str, name: str) -> None:
    """One pass over one namespace."""
    namespace = context.cache.get("namespaces", "", name)
    if namespace is None or not is_deleting(namespace):
        return
    left = _empty(context, name)
    namespace = _report(context, namespace, left)
    if not left:
        _finalize(context, namespace)


def _empty(context: Context, name: str) -> dict[str, Objs]:
    """Delete everything in the namespace, pods before all else; what is still there afterwards, by resource."""
    left = _delete_all(context, name, ["pods"])
    if left:
        return left
    for event in context.client.list("events", name):
        _delete(context, "events", event)
    return _delete_all(context, name, context.cache.resources())


def _delete_all(context: Context, name: str, resources: list[str]) -> dict[str, Objs]:
    left: dict[str, Objs] = {}
    for resource in resources:
        for obj in context.cache.list(resource, name):
            if not is_deleting(obj):
                _delete(context, resource, obj)
            rest = _still_there(context, resource, obj)
            if rest is not None:
                left.setdefault(resource, []).append(rest)
    return left


def _delete(context: Context, resource: str, obj: Obj) -> None:
    namespace, name = key_of(obj)
    try:
        context.client.delete(resource, name, namespace)
    except ApiError as error:
        if error.code != 404:
            raise


def _still_there(context: Context, resource: str, obj: Obj) -> Obj | None:
    namespace, name = key_of(obj)
    try:
        return context.client.get(resource, name, namespace)
    except ApiError as error:
        if error.code != 404:
            raise
        return None


def _report(context: Context, namespace: Obj, left: dict[str, Objs]) -> Obj:
    status = {**(namespace.get("status") or {})}
    conditions = status.get("conditions")
    for kind, active, reason, message in _findings(left):
        new = {"type": kind, "status": "True" if active else "False", "lastTransitionTime": context.stamp()}
        conditions = upsert(conditions, {**new, "reason": reason, "message": message})
    status["conditions"] = conditions
    if not left or status == namespace.get("status"):
        return namespace
    return context.client.update("namespaces", {**namespace, "status": status}, subresource="status")


def _findings(left: dict[str, Objs]) -> list[tuple[str, bool, str, str]]:
    fixed = [
        ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        (
            "NamespaceDeletionContentFailure",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
    ]
    found = [(kind, False, reason, message) for kind, reason, message in fixed]
    names = {resource: resource if "." in resource else resource + "." for resource in left}
    counts = ", ".join(f"{names[r]} has {len(objs)} resource instances" for r, objs in sorted(left.items()))
    if counts:
        found.append((CONTENT, True, "SomeResourcesRemain", f"Some resources are remaining: {counts}"))
    else:
        found.append((CONTENT, False, "ContentRemoved", "All content successfully removed"))
    holds: dict[str, int] = {}
    for obj in (obj for objs in left.values() for obj in objs):
        for finalizer in obj["metadata"].get("finalizers") or ():
            holds[finalizer] = holds.get(finalizer, 0) + 1
    kept = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(holds.items()))
    if kept:
        text = f"Some content in the namespace has finalizers remaining: {kept}"
        found.append((FINALIZERS, True, "SomeFinalizersRemain", text))
    else:
        found.append((FINALIZERS, False, "ContentHasNoFinalizers", "All content-preserving finalizers finished"))
    return found


def _finalize(context: Context, namespace: Obj) -> None:
    rest = [f for f in (namespace.get("spec") or {}).get("finalizers") or () if f != "kubernetes"]
    body = {**namespace, "spec": {**(namespace.get("spec") or {}), "finalizers": rest}}
    try:
        context.client.update("namespaces", body, subresource="finalize")
    except ApiError as error:
        if error.code != 404:
            raise


CONTROLLER = Controller("namespace-controller", {"namespaces": own_key, "*": _keys_of_content}, reconcile)
