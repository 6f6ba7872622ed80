"""Namespaces: nothing is created in one that is missing or going away, and the built-in ones stay."""

from itbench.kube import status
from itbench.kube.admission.write import Write
from itbench.kube.status import Cause, Problem

_FOREVER = ("default", "kube-system", "kube-public")
_ACCESS_REVIEWS = ("localsubjectaccessreviews.authorization.k8s.io",)


def namespace_lifecycle(write: Write) -> None:
    """404 for a missing namespace, 403 for one that is terminating or must not be deleted."""
    if write.operation == "DELETE":
        if write.key == "namespaces" and write.name in _FOREVER:
            raise status.forbidden(write.resource, write.name, "this namespace may not be deleted")
        return
    if write.operation != "CREATE" or not write.resource.namespaced or write.key in _ACCESS_REVIEWS:
        return
    namespace = write.store.get("namespaces", "", write.namespace)
    if namespace is None:
        raise status.namespace_not_found(write.namespace)
    if namespace.object["metadata"].get("deletionTimestamp"):
        place = write.namespace
        text = (
            f'{write.resource.name} "{write.name}" is forbidden: unable to create new content in namespace {place} '
            "because it is being terminated"
        )
        cause = Cause("NamespaceTerminating", "metadata.namespace", f"namespace {place} is being terminated")
        problem = Problem(write.name, write.resource.group, write.resource.plural)
        raise status.failure(403, "Forbidden", text, problem, [cause])


def protect_storage(write: Write) -> None:
    """Claims and volumes in use are not removed: their protection finalizers."""
    names = {
        "persistentvolumeclaims": "kubernetes.io/pvc-protection",
        "persistentvolumes": "kubernetes.io/pv-protection",
    }
    finalizer = names.get(write.key)
    if finalizer is None or write.operation != "CREATE" or write.subresource:
        return
    known = write.object["metadata"].setdefault("finalizers", [])
    if finalizer not in known:
        known.append(finalizer)
