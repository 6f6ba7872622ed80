"""Rules for `metadata`, the same for every kind."""

from typing import Any

from itbench.kube.client import Obj
from itbench.kube.kinds.base import Behaviour
from itbench.kube.kinds.check import Check
from itbench.kube.names import labels_errors, qualified_errors
from itbench.kube.resources import Resource

_ANNOTATIONS_LIMIT = 256 * 1024
_IMMUTABLE = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


def check_labels(labels: Obj, field: str, check: Check) -> None:
    """Keys and values of a label map."""
    for value, text in labels_errors(labels):
        check.invalid(field, value, text)


def _check_annotations(annotations: Obj, check: Check) -> None:
    field = "metadata.annotations"
    for key in annotations:
        check.all_invalid(field, key, qualified_errors(key.lower()))
    size = sum(len(key) + len(value) for key, value in annotations.items())
    if size > _ANNOTATIONS_LIMIT:
        check.too_long(field, _ANNOTATIONS_LIMIT)


_WORDS = {"apiVersion": "version "}
_STANDARD_FINALIZERS = ("foregroundDeletion", "orphan", "kubernetes")


def _check_owners(owners: list[Any], check: Check) -> None:
    controllers = []
    where = "metadata.ownerReferences"
    for owner in owners:
        for key in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(key):
                check.invalid(f"{where}.{key}", owner.get(key, ""), f"{_WORDS.get(key, '')}must not be empty")
        if owner.get("controller"):
            controllers.append(owner)
    if len(controllers) > 1:
        names = ", ".join(f"{row['kind']}/{row['name']}" for row in controllers)
        check.invalid(
            "metadata.ownerReferences", owners, f"Only one reference can have Controller set to true. Found {names}"
        )


def _is_extension(resource: Resource) -> bool:
    """Objects of the extension servers may have finalizers without a domain."""
    return resource.model is not None or resource.group in ("apiextensions.k8s.io", "apiregistration.k8s.io")


def finalizer_warnings(new: Obj, old: Obj) -> list[str]:
    """Warnings about new finalizers of custom resources that have no domain."""
    known = old.get("metadata", {}).get("finalizers") or ()
    return [
        f'metadata.finalizers: "{name}": prefer a domain-qualified finalizer name to avoid accidental conflicts with other '
        "finalizer writers"
        for name in new["metadata"].get("finalizers") or ()
        if "/" not in name and name not in _STANDARD_FINALIZERS and name not in known
    ]


def check_metadata(obj: Obj, resource: Resource, rules: Behaviour, check: Check) -> None:
    """Name, labels, annotations, owners, finalizers."""
    metadata = obj["metadata"]
    name = metadata.get("name", "")
    if metadata.get("generateName"):
        stem = metadata["generateName"]
        stem = stem[:-1] + "a" if stem.endswith("-") else stem
        check.all_invalid("metadata.generateName", metadata["generateName"], rules.name_errors(stem))
    if not name:
        check.required("metadata.name", "name or generateName is required")
    else:
        check.all_invalid("metadata.name", name, rules.name_errors(name))
    if resource.namespaced and not metadata.get("namespace"):
        check.required("metadata.namespace")
    check_labels(metadata.get("labels") or {}, "metadata.labels", check)
    _check_annotations(metadata.get("annotations") or {}, check)
    _check_owners(metadata.get("ownerReferences") or [], check)
    for index, finalizer in enumerate(metadata.get("finalizers") or ()):
        check.all_invalid("metadata.finalizers", finalizer, qualified_errors(finalizer))
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS and not _is_extension(resource):
            text = "name is neither a standard finalizer name nor is it fully qualified"
            check.invalid(f"metadata.finalizers[{index}]", finalizer, text)


def check_metadata_update(new: Obj, old: Obj, check: Check) -> None:
    """What of metadata must not change."""
    mine, theirs = new["metadata"], old["metadata"]
    for key in _IMMUTABLE:
        check.immutable(f"metadata.{key}", mine.get(key), theirs.get(key))
    if theirs.get("deletionTimestamp"):
        added = [row for row in mine.get("finalizers") or () if row not in (theirs.get("finalizers") or ())]
        text = f"no new finalizers can be added if the object is being deleted, found new finalizers {_go_set(added)}"
        for _ in range(2 if added else 0):  # a real server looks twice, and says so
            check.forbidden("metadata.finalizers", text)


def _go_set(rows: list[str]) -> str:
    return "[]string{" + ", ".join(f'"{row}"' for row in sorted(rows)) + "}"
