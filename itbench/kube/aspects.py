"""What the registry asks of a resource and of an object in passing: rules, structure, advice, names. Called by `registry`."""

from itbench.kube import schema, status
from itbench.kube.client import Obj
from itbench.kube.custom import definition, schemas, serving
from itbench.kube.kinds import behaviour
from itbench.kube.kinds.base import Behaviour
from itbench.kube.kinds.check import Check
from itbench.kube.kinds.metadata import finalizer_warnings
from itbench.kube.resources import Resource
from itbench.kube.store import Entry


def rules_of(resource: Resource) -> Behaviour:
    """Defaults and validation of a resource: its kind's, or those of its definition."""
    if resource.model is not None:
        return resource.model.behaviour
    return behaviour(resource.storage, custom=resource.custom)


def advice(resource: Resource, obj: Obj, before: Obj) -> list[str]:
    """Warnings about what is accepted but unwise."""
    if resource.storage == serving.DEFINITIONS:
        return definition.format_warnings(obj) if obj.get("spec") != before.get("spec") else []
    return finalizer_warnings(obj, before) if resource.model is not None else []


_UNTYPED = schemas.node_of(None)
"""Metadata at the root, anything below: kinds that are built in and have no published schema."""


def node_of(resource: Resource) -> schema.Node:
    """The structure of its objects, as patches and server-side apply walk it."""
    if resource.model is not None:
        return resource.model.node
    return schema.of(resource.api_version, resource.kind) or _UNTYPED


def revision_of(obj: Obj) -> str:
    """The resourceVersion that an object names; empty for none."""
    return str(obj["metadata"].get("resourceVersion") or "")


def check_uid(resource: Resource, obj: Obj, old: Entry) -> None:
    """A patch does not change who an object is (an update with another uid is a conflict).

    Raises:
        ApiError: 422.
    """
    check, uid = Check(), obj["metadata"].get("uid")
    for _ in range(2 if uid else 0):  # a real server looks twice, and says so
        check.immutable("metadata.uid", uid, old.object["metadata"]["uid"])
    if check:
        raise status.invalid(resource.kind, resource.group, old.name, check.causes)


def check_name(obj: Obj, name: str) -> None:
    """An object sent to a name says that name.

    Raises:
        ApiError: 400.
    """
    other = obj["metadata"].get("name", "")
    if not other:
        text = f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        raise status.bad_request(text)
    if other != name:
        raise status.bad_request(f"the name of the object ({other}) does not match the name on the URL ({name})")
