"""ConfigMaps, Secrets, Namespaces, ServiceAccounts, Events, Leases, Nodes: defaults and rules."""

import base64
import re

from itbench.kube.client import Obj
from itbench.kube.kinds.addresses import NETWORK_TEXT, is_network
from itbench.kube.kinds.base import Behaviour
from itbench.kube.kinds.check import Check, printed
from itbench.kube.kinds.gojson import go_json_error
from itbench.kube.names import config_key_errors, label_errors, qualified_errors
from itbench.kube.status import Cause

_SECURITY = "pod-security.kubernetes.io/"
_LEVELS = ("privileged", "baseline", "restricted")
_LIMIT = 1024 * 1024
_IMMUTABLE = "field is immutable when `immutable` is set"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_SECRET_KEYS = {
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}


def _check_keys(obj: Obj, fields: tuple[str, ...], check: Check) -> None:
    size = 0
    for field in fields:
        for key, value in (obj.get(field) or {}).items():
            check.all_invalid(f"{field}[{key}]", key, config_key_errors(key))
            size += len(value)
    if size > _LIMIT:
        check.too_long("", _LIMIT)


def _check_configmap(obj: Obj, check: Check) -> None:
    _check_keys(obj, ("data", "binaryData"), check)
    for key in (obj.get("binaryData") or {}).keys() & (obj.get("data") or {}).keys():
        check.invalid(f"data[{key}]", key, "duplicate of key present in binaryData")


def _check_immutable(new: Obj, old: Obj, check: Check) -> None:
    if not old.get("immutable"):
        return
    if not new.get("immutable"):
        check.forbidden("immutable", _IMMUTABLE)
    for field in ("data", "binaryData"):
        if (new.get(field) or {}) != (old.get(field) or {}):
            check.forbidden(field, _IMMUTABLE)


def _default_secret(obj: Obj) -> None:
    obj.setdefault("type", "Opaque")
    plain = obj.pop("stringData", None)
    if plain:
        data = obj.setdefault("data", {})
        for key, value in plain.items():
            data[key] = base64.b64encode(value.encode()).decode()


def _check_docker(value: str | None, kind: str, check: Check) -> None:
    if value is None or kind != "kubernetes.io/dockerconfigjson":
        return
    text = base64.b64decode(value).decode("utf-8", "replace")
    if fault := go_json_error(text):
        check.invalid("data[.dockerconfigjson]", "<secret contents redacted>", fault)


def _check_secret(obj: Obj, check: Check) -> None:
    _check_keys(obj, ("data",), check)
    data = obj.get("data") or {}
    _check_docker(data.get(".dockerconfigjson"), obj["type"], check)
    if obj["type"] == "kubernetes.io/basic-auth" and not data.keys() & {"username", "password"}:
        check.required("data[username]")
        check.required("data[password]")
    for key in _SECRET_KEYS.get(obj["type"], ()):
        if key not in data:
            check.required(f"data[{key}]")
    account = (obj["metadata"].get("annotations") or {}).get("kubernetes.io/service-account.name")
    if obj["type"] == "kubernetes.io/service-account-token" and not account:
        check.required("metadata.annotations[kubernetes.io/service-account.name]")


def _check_secret_update(new: Obj, old: Obj, check: Check) -> None:
    check.immutable("type", new.get("type"), old.get("type"))
    _check_immutable(new, old, check)


def _prepare_namespace(new: Obj, old: Obj | None) -> None:
    if old is not None:
        return
    new["status"] = {"phase": "Active"}
    spec = new.setdefault("spec", {})
    if "kubernetes" not in spec.setdefault("finalizers", []):
        spec["finalizers"].append("kubernetes")


def _default_namespace(obj: Obj) -> None:
    name = obj["metadata"].get("name")
    if name:
        obj["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name


def _default_node(obj: Obj) -> None:
    spec = obj.get("spec") or {}
    if spec.get("podCIDR"):
        spec.setdefault("podCIDRs", [spec["podCIDR"]])
    status = obj.setdefault("status", {})
    if status.get("capacity"):
        allocatable = status.setdefault("allocatable", {})
        for key, value in status["capacity"].items():
            allocatable.setdefault(key, value)


def check_taints(taints: list[Obj], field: str, check: Check) -> None:
    """Keys, effects, no taint twice."""
    seen: set[tuple[str, str]] = set()
    for index, row in enumerate(taints):
        where = f"{field}[{index}]"
        key, effect = row.get("key", ""), row.get("effect", "")
        check.all_invalid(f"{where}.key", key, qualified_errors(key))
        if not effect:
            check.required(f"{where}.effect")
        elif effect not in _EFFECTS:
            check.unsupported(f"{where}.effect", effect, _EFFECTS)
        if (key, effect) in seen:
            shown = {"Key": key, "Value": row.get("value", ""), "Effect": effect, "TimeAdded": None}
            text = f"Duplicate value: {printed(shown)}: taints must be unique by key and effect pair"
            check.causes.append(Cause("FieldValueDuplicate", where, text))
        seen.add((key, effect))


def _check_node(obj: Obj, check: Check) -> None:
    spec = obj.get("spec") or {}
    check_taints(spec.get("taints") or [], "metadata.taints", check)
    ranges = spec.get("podCIDRs") or ([spec["podCIDR"]] if spec.get("podCIDR") else [])
    for index, text in enumerate(ranges):
        if not is_network(text):
            check.invalid(f"spec.podCIDRs[{index}]", text, NETWORK_TEXT)


def _check_node_update(new: Obj, old: Obj, check: Check) -> None:
    for key in ("providerID", "podCIDR"):
        before, after = (old.get("spec") or {}).get(key), (new.get("spec") or {}).get(key)
        if before and before != after:
            field = "spec.podCIDRs" if key == "podCIDR" else f"spec.{key}"
            check.forbidden(field, "node updates may not change " + key + ' except from "" to valid')


def _default_event(obj: Obj) -> None:
    obj.setdefault("eventTime", None)
    obj.setdefault("reportingComponent", "")
    obj.setdefault("reportingInstance", "")


def _check_event(obj: Obj, check: Check) -> None:
    place = (obj.get("involvedObject") or {}).get("namespace", "")
    own = obj["metadata"].get("namespace", "")
    if place and place != own:
        check.invalid("involvedObject.namespace", place, "does not match event.namespace")
    if not place and own != "default":
        check.invalid("involvedObject.namespace", place, "does not match event.namespace")


def _check_namespace(obj: Obj, check: Check) -> None:
    labels = obj["metadata"].get("labels") or {}
    for mode in ("enforce", "audit", "warn"):
        level, version = labels.get(_SECURITY + mode), labels.get(f"{_SECURITY}{mode}-version")
        if level is not None and level not in _LEVELS:
            check.invalid(f"metadata.labels[{_SECURITY}{mode}]", level, f"must be one of {', '.join(_LEVELS)}")
        if version is not None and version != "latest" and not re.fullmatch(r"v1\.(0|[1-9]\d*)", version):
            text = 'must be "latest" or "v1.x"'
            check.invalid(f"metadata.labels[{_SECURITY}{mode}-version]", version, text)


def _check_lease(obj: Obj, check: Check) -> None:
    spec = obj.get("spec") or {}
    duration = spec.get("leaseDurationSeconds")
    if duration is not None and duration <= 0:
        check.invalid("spec.leaseDurationSeconds", duration, "must be greater than 0")
    check.non_negative("spec.leaseTransitions", spec.get("leaseTransitions"))


CONFIGMAP = Behaviour(validate=_check_configmap, validate_update=_check_immutable)
SECRET = Behaviour(default=_default_secret, validate=_check_secret, validate_update=_check_secret_update)
NAMESPACE = Behaviour(
    default=_default_namespace, prepare=_prepare_namespace, validate=_check_namespace, name_errors=label_errors
)
SERVICEACCOUNT = Behaviour()
NODE = Behaviour(default=_default_node, validate=_check_node, validate_update=_check_node_update)
EVENT = Behaviour(default=_default_event, validate=_check_event)
LEASE = Behaviour(validate=_check_lease)
