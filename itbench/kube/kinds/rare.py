"""Kinds that few people write by hand: templates, revisions, runtime classes, storage drivers, flow control. Rules only."""

from itbench.kube.client import Obj
from itbench.kube.kinds.base import Behaviour
from itbench.kube.kinds.check import Check
from itbench.kube.kinds.pods import check_template, default_template
from itbench.kube.names import label_errors, path_segment_errors, subdomain_errors

_ONE_SOURCE = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


def _default_pod_template(obj: Obj) -> None:
    default_template(obj.setdefault("template", {}))


def _check_pod_template(obj: Obj, check: Check) -> None:
    check_template(obj["template"], "template", check)


def _check_revision(obj: Obj, check: Check) -> None:
    check.non_negative("revision", obj.get("revision", 0))
    if obj.get("data") is None:
        check.required("data", "data is mandatory")


def _check_revision_update(new: Obj, old: Obj, check: Check) -> None:
    check.immutable("data", new.get("data"), old.get("data"))


def _check_runtime_class(obj: Obj, check: Check) -> None:
    handler = obj.get("handler", "")
    check.all_invalid("handler", handler, label_errors(handler))


def _check_runtime_class_update(new: Obj, old: Obj, check: Check) -> None:
    check.immutable("handler", new.get("handler"), old.get("handler"))


def _check_attachment(obj: Obj, check: Check) -> None:
    spec = obj.get("spec") or {}
    attacher, node, source = spec.get("attacher", ""), spec.get("nodeName", ""), spec.get("source") or {}
    if not attacher:
        check.required("spec.attacher")
    if ("inlineVolumeSpec" in source) == bool(source.get("persistentVolumeName")):
        check.required("spec.source", _ONE_SOURCE)
    check.all_invalid("spec.nodeName", node, subdomain_errors(node))
    if not attacher:
        check.required("spec.attacher")
    check.all_invalid("spec.attacher", attacher, subdomain_errors(attacher.lower()))


def _check_driver(obj: Obj, check: Check) -> None:
    for mode in (obj.get("spec") or {}).get("volumeLifecycleModes") or ():
        if mode not in ("Persistent", "Ephemeral"):
            check.unsupported("spec.volumeLifecycleModes", mode, ("Persistent", "Ephemeral"))


def _check_flow_schema(obj: Obj, check: Check) -> None:
    reference = (obj.get("spec") or {}).get("priorityLevelConfiguration") or {}
    name = reference.get("name", "")
    if not name:
        check.required("spec.priorityLevelConfiguration.name", "must reference a priority level")
    else:
        check.all_invalid("spec.priorityLevelConfiguration.name", name, path_segment_errors(name))


def _check_priority_level(obj: Obj, check: Check) -> None:
    spec = obj.get("spec") or {}
    check.one_of("spec.type", spec.get("type"), ("Exempt", "Limited"))


POD_TEMPLATE = Behaviour(default=_default_pod_template, validate=_check_pod_template, generation=True)
REVISION = Behaviour(validate=_check_revision, validate_update=_check_revision_update)
RUNTIME_CLASS = Behaviour(validate=_check_runtime_class, validate_update=_check_runtime_class_update)
ATTACHMENT = Behaviour(validate=_check_attachment)
DRIVER = Behaviour(validate=_check_driver)
FLOW_SCHEMA = Behaviour(validate=_check_flow_schema, generation=True)
PRIORITY_LEVEL = Behaviour(validate=_check_priority_level, generation=True)
