"""Deletion of definitions: the finalizer that keeps them until their objects are gone; called by `deletion`, controllers."""

from itbench.kube.client import Obj

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
FINALIZER = "customresourcecleanup.apiextensions.k8s.io"


def finalizers(definition: Obj, found: list[str]) -> list[str]:
    """The finalizers of a definition that is deleted; its own is added at the first delete."""
    if definition["metadata"].get("deletionTimestamp") or FINALIZER in found:
        return found
    return [*found, FINALIZER]


def terminating(reason: str, message: str, stamp: str, *, active: bool = True) -> Obj:
    """The Terminating condition."""
    return {
        "type": "Terminating",
        "status": "True" if active else "False",
        "lastTransitionTime": stamp,
        "reason": reason,
        "message": message,
    }


def mark(definition: Obj, before: Obj, stamp: str) -> None:
    """Note the first delete in a definition (changed in place); its generation stays as `before` had it."""
    metadata, state = definition["metadata"], definition.setdefault("status", {})
    metadata.pop("deletionGracePeriodSeconds", None)
    if "generation" in before:
        metadata["generation"] = before["generation"]
    text = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    rows = [row for row in state.get("conditions") or () if row.get("type") != "Terminating"]
    state["conditions"] = [*rows, terminating("InstanceDeletionPending", text, stamp)]
