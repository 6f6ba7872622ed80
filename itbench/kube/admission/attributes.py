"""A write as admission expressions and reviews see it: the `request` object, the objects, the authorizer."""

from typing import Any

from itbench.kube import versions
from itbench.kube.admission.write import Write
from itbench.kube.client import Obj
from itbench.kube.rbac import Access, User
from itbench.kube.resources import Resource
from itbench.kube.subresources import scale_of

_OPTIONS = {
    "CREATE": "CreateOptions",
    "UPDATE": "UpdateOptions",
    "DELETE": "DeleteOptions",
    "CONNECT": "PodExecOptions",
}
_ACCOUNT = "system:serviceaccount:"


def _kind(resource: Resource, write: Write) -> Obj:
    group, version, kind = resource.group, resource.version, resource.kind
    sub = resource.subresource(write.subresource)
    if sub is not None and sub.kind:
        own = sub.group or sub.version
        group, version = (sub.group, sub.version) if own else (group, version)
        kind = sub.kind
    return {"group": group, "version": version, "kind": kind}


def _place(resource: Resource) -> Obj:
    return {"group": resource.group, "version": resource.version, "resource": resource.plural}


def options_of(write: Write) -> Obj | None:
    """The options object of the request."""
    if write.operation == "CONNECT":
        return None
    shown: Obj = {"kind": _OPTIONS[write.operation], "apiVersion": "meta.k8s.io/v1"}
    if write.dry_run:
        shown["dryRun"] = ["All"]
    return shown | (write.asked if write.operation != "DELETE" else {})


def request_of(write: Write, resource: Resource) -> Obj:
    """`request` without uid and objects, shown as `resource`."""
    shown: Obj = {"kind": _kind(resource, write), "resource": _place(resource)}
    if write.subresource:
        shown["subResource"] = write.subresource
    shown |= {"requestKind": _kind(write.resource, write), "requestResource": _place(write.resource)}
    if write.subresource:
        shown["requestSubResource"] = write.subresource
    if write.name:
        shown["name"] = write.name
    if write.namespace:
        shown["namespace"] = write.namespace
    user = User(write.user, write.groups, write.uid, write.extra)
    return shown | {
        "operation": write.operation,
        "userInfo": user.info,
        "dryRun": write.dry_run,
        "options": options_of(write),
    }


def foreign(write: Write) -> bool:
    """Whether the object is of the subresource's own kind (Binding, Eviction, PodExecOptions, ...)."""
    sub = write.resource.subresource(write.subresource)
    return sub is not None and sub.kind not in ("", write.resource.kind, "Scale")


def _shown(state: Obj, write: Write, resource: Resource) -> Obj:
    if write.subresource == "scale":
        return scale_of(resource, state)
    if foreign(write):
        return state
    return versions.to_served(state, resource)


def new_object(write: Write, resource: Resource) -> Obj | None:
    """The new state in a resource's version; None for a delete."""
    if write.operation == "DELETE":
        return None
    shown = _shown(write.object, write, resource)
    if write.old is None or "resourceVersion" in shown["metadata"]:
        return shown
    version = write.old["metadata"]["resourceVersion"]
    return {**shown, "metadata": {**shown["metadata"], "resourceVersion": version}}


def old_object(write: Write, resource: Resource) -> Obj | None:
    """The state before in a resource's version."""
    return None if write.old is None else _shown(write.old, write, resource)


def namespace_object(write: Write) -> Obj | None:
    """The namespace of the request without what expressions may not see."""
    if not write.namespace or write.key == "namespaces":
        return None
    entry = write.store.get("namespaces", "", write.namespace)
    if entry is None:
        return None
    metadata = {key: value for key, value in entry.object["metadata"].items() if key != "managedFields"}
    return {**entry.object, "metadata": metadata}


def data_of(write: Write, resource: Resource) -> dict[str, Any]:
    """The variables of an expression about a request."""
    place: Obj = {"user": write.user}
    keys = {"group": resource.group, "resource": resource.plural, "subresource": write.subresource}
    keys |= {"namespace": write.namespace, "name": write.name}
    return {
        "object": new_object(write, resource),
        "oldObject": old_object(write, resource),
        "request": request_of(write, resource),
        "namespaceObject": namespace_object(write),
        "authorizer": place,
        "authorizer.requestResource": {**place, **{key: value for key, value in keys.items() if value}},
    }


def decide(write: Write, question: Obj) -> Obj:
    """What the authorizer answers an expression."""
    if write.services.authorizer is None:
        return {"allowed": False, "error": "no authorizer"}
    user = User(write.user, write.groups, write.uid, write.extra)
    if "account" in question:
        namespace, name = question["account"]
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
        user = User(f"{_ACCOUNT}{namespace}:{name}", groups)
    keys = ("verb", "group", "resource", "subresource", "namespace", "name", "path")
    allowed, reason = write.services.authorizer.allowed(user, Access(*(question.get(key, "") for key in keys)))
    return {"allowed": allowed, "reason": reason}
