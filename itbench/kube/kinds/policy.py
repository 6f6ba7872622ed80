"""Disruption budgets, autoscalers, quotas, limit ranges, priority classes: defaults and rules."""

from typing import Any

from itbench.kube.client import Obj
from itbench.kube.decode import clone
from itbench.kube.kinds.affinity import check_label_selector
from itbench.kube.kinds.base import Behaviour
from itbench.kube.kinds.check import Check
from itbench.kube.kinds.containers import check_quantity
from itbench.kube.kinds.quotascopes import check_scopes
from itbench.kube.kinds.scaling import check_behavior, check_named_metric, check_scale_target
from itbench.kube.kinds.workloads import check_int_or_percent
from itbench.kube.names import qualified_errors
from itbench.kube.quantity import parse_quantity

_BEHAVIOR: dict[str, dict[str, Any]] = {
    "scaleUp": {
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [
            {"type": "Pods", "value": 4, "periodSeconds": 15},
            {"type": "Percent", "value": 100, "periodSeconds": 15},
        ],
    },
    "scaleDown": {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]},
}
_TARGETS = {"Utilization": "averageUtilization", "AverageValue": "averageValue", "Value": "value"}


def _check_budget(obj: Obj, check: Check) -> None:
    spec = obj.get("spec") or {}
    low, high = spec.get("minAvailable"), spec.get("maxUnavailable")
    if low is not None and high is not None:
        names = ("minAvailable", "selector", "maxUnavailable", "unhealthyPodEvictionPolicy")
        shown = {name[:1].upper() + name[1:]: spec.get(name) for name in names}
        check.invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set")
    for key, value in (("minAvailable", low), ("maxUnavailable", high)):
        if value is not None:
            check_int_or_percent(value, f"spec.{key}", check)
            if isinstance(value, str) and value[:-1].isdigit() and int(value[:-1]) > 100:
                check.invalid(f"spec.{key}", value, "must not be greater than 100%")
    check_label_selector(spec.get("selector"), "spec.selector", check)
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in ("AlwaysAllow", "IfHealthyBudget"):
        check.unsupported("spec.unhealthyPodEvictionPolicy", policy, ("AlwaysAllow", "IfHealthyBudget"))


def _default_hpa(obj: Obj) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = spec.get("behavior")
    if behavior is not None:
        for key, rules in _BEHAVIOR.items():
            mine = behavior.setdefault(key, {})
            for name, value in rules.items():
                mine.setdefault(name, clone(value))


def _check_target(target: Obj, kind: str, field: str, check: Check) -> None:
    if not target.get("type"):
        check.required(f"{field}.type", "must specify a metric target type")
    elif target["type"] not in _TARGETS:
        check.invalid(f"{field}.type", target["type"], "must be either Utilization, Value, or AverageValue")
    value = target.get("averageUtilization")
    if isinstance(value, int) and value < 1:
        check.invalid(f"{field}.averageUtilization", value, "must be greater than 0")
    for key in ("value", "averageValue"):
        if key in target and parse_quantity(str(target[key])) <= 0:
            check.invalid(f"{field}.{key}", target[key], "must be positive")
    if kind == "resource" and "averageUtilization" not in target and "averageValue" not in target:
        check.required(f"{field}.averageUtilization", "must set either a target raw value or a target utilization")


def _check_metric(row: Obj, field: str, check: Check) -> None:
    kind = row.get("type", "")
    if not kind:
        check.required(f"{field}.type", "must specify a metric source type")
        return
    name = kind[:1].lower() + kind[1:]
    if name not in ("containerResource", "external", "object", "pods", "resource"):
        for _ in range(2):  # the real server finds it twice, and says it once
            check.unsupported(f"{field}.type", kind, ("ContainerResource", "External", "Object", "Pods", "Resource"))
        return
    source = row.get(name)
    if source is None:
        check.required(f"{field}.{name}", "must populate information for the given metric source")
        return
    if name == "resource" and not source.get("name"):
        check.required(f"{field}.resource.name", "must specify a resource name")
    check_named_metric(source, name, f"{field}.{name}", check)
    _check_target(source.get("target") or {}, name, f"{field}.{name}.target", check)


def _check_hpa(obj: Obj, check: Check) -> None:
    spec = obj["spec"]
    low, high = spec.get("minReplicas"), spec.get("maxReplicas", 0)
    if low is not None and low < 1:
        check.invalid("spec.minReplicas", low, "must be greater than or equal to 1")
    if high < 1:
        check.invalid("spec.maxReplicas", high, "must be greater than 0")
    if low is not None and high < low:
        check.invalid("spec.maxReplicas", high, "must be greater than or equal to `minReplicas`")
    check_scale_target(spec.get("scaleTargetRef") or {}, check)
    for index, row in enumerate(spec.get("metrics") or ()):
        _check_metric(row, f"spec.metrics[{index}]", check)
    if low == 0 and not any(row.get("type") in ("Object", "External") for row in spec.get("metrics") or ()):
        text = "must specify at least one Object or External metric to support scaling to zero replicas"
        check.forbidden("spec.metrics", text)
    check_behavior(spec.get("behavior") or {}, check)


def _prepare_quota(new: Obj, old: Obj | None) -> None:
    new.setdefault("spec", {})


def _check_quota(obj: Obj, check: Check) -> None:
    for name, value in (obj["spec"].get("hard") or {}).items():
        check_quantity(value, name, f"spec.hard[{name}]", check)
        if "/" not in name and "." not in name and name not in _QUOTA_NAMES:
            for text in (
                "must be a standard resource type or fully qualified",
                "must be a standard resource for quota",
            ):
                check.invalid(f"spec.hard[{name}]", name, text)
    check_scopes(obj["spec"], check)


_QUOTA_NAMES = frozenset(
    ("cpu", "memory", "ephemeral-storage", "pods", "services", "replicationcontrollers", "resourcequotas")
) | {"secrets", "configmaps", "persistentvolumeclaims", "storage"}


def _check_quota_update(new: Obj, old: Obj, check: Check) -> None:
    if set(new["spec"].get("scopes") or ()) != set(old["spec"].get("scopes") or ()):
        check.invalid("spec.scopes", new["spec"].get("scopes"), "field is immutable")


def _default_limit_range(obj: Obj) -> None:
    for row in (obj.get("spec") or {}).get("limits") or ():
        if row.get("type") != "Container":
            continue
        default = row.setdefault("default", {})
        for key, value in (row.get("max") or {}).items():
            default.setdefault(key, value)
        request = row.setdefault("defaultRequest", {})
        for source in (default, row.get("min") or {}):
            for key, value in source.items():
                request.setdefault(key, value)
        for key in ("default", "defaultRequest"):
            if not row[key]:
                del row[key]


def _less(row: Obj, low: str, high: str, field: str, check: Check, blamed: str = "") -> None:
    for name, value in (row.get(low) or {}).items():
        limit = (row.get(high) or {}).get(name)
        if limit is not None and parse_quantity(value) > parse_quantity(limit):
            names = {"defaultRequest": "default request", "default": "default"}
            top = "default limit" if (low, high) == ("defaultRequest", "default") else names.get(high, high)
            text = f"{names.get(low, low)} value {value} is greater than {top} value {limit}"
            blame = blamed or low
            shown = limit if blamed == "defaultRequest" or (low, high) == ("default", "max") else value
            check.invalid(f"{field}.{blame}[{name}]", shown, text)


def _check_limit_type(row: Obj, before: list[Obj], field: str, check: Check) -> None:
    kind = row.get("type", "")
    check.all_invalid(f"{field}.type", kind, qualified_errors(kind))
    if kind not in ("Pod", "Container", "PersistentVolumeClaim") and "/" not in kind:
        check.invalid(f"{field}.type", kind, "must be a standard limit type or fully qualified")
    if any(other.get("type") == kind for other in before):
        check.duplicate(f"{field}.type", kind)


def _check_limit_range(obj: Obj, check: Check) -> None:
    rows = (obj.get("spec") or {}).get("limits") or []
    for index, row in enumerate(rows):
        field = f"spec.limits[{index}]"
        _check_limit_type(row, rows[:index], field, check)
        if row.get("type") == "PersistentVolumeClaim" and not any(
            "storage" in (row.get(key) or {}) for key in ("min", "max")
        ):
            text = "either minimum or maximum storage value is required, but neither was provided"
            check.required(f"{field}.limits", text)
        if row.get("type") == "Pod":
            for key in ("default", "defaultRequest"):
                if row.get(key):
                    check.forbidden(f"{field}.{key}", "may not be specified when `type` is 'Pod'")
        _less(row, "min", "max", field, check)
        _less(row, "min", "defaultRequest", field, check, "defaultRequest")
        _less(row, "defaultRequest", "max", field, check)
        _less(row, "defaultRequest", "default", field, check)
        _less(row, "min", "default", field, check, "default")
        _less(row, "default", "max", field, check)
        for name, value in (row.get("maxLimitRequestRatio") or {}).items():
            if parse_quantity(value) < 1:
                check.invalid(f"{field}.maxLimitRequestRatio[{name}]", value, f"ratio {value} is less than 1")


def _default_priority(obj: Obj) -> None:
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")
    obj.setdefault("value", 0)


def _check_priority(obj: Obj, check: Check) -> None:
    name, value = obj["metadata"].get("name", ""), obj.get("value", 0)
    if name.startswith("system-") and name not in ("system-node-critical", "system-cluster-critical"):
        check.forbidden(
            "metadata.name",
            "priority class names with 'system-' prefix are reserved for system use only. error: "
            f"{name} is not a known system priority class",
        )
    elif not name.startswith("system-") and value > 1000000000:
        text = "maximum allowed value of a user defined priority is 1000000000"
        check.forbidden("value", text)
    check.one_of("preemptionPolicy", obj.get("preemptionPolicy"), ("PreemptLowerPriority", "Never"), required=False)


def _check_priority_update(new: Obj, old: Obj, check: Check) -> None:
    if new.get("value", 0) != old.get("value", 0):
        check.forbidden("value", "may not be changed in an update.")
    check.immutable("preemptionPolicy", new.get("preemptionPolicy"), old.get("preemptionPolicy"))


BUDGET = Behaviour(validate=_check_budget, generation=True)
HPA = Behaviour(default=_default_hpa, validate=_check_hpa)
QUOTA = Behaviour(prepare=_prepare_quota, validate=_check_quota, validate_update=_check_quota_update)
LIMITRANGE = Behaviour(default=_default_limit_range, validate=_check_limit_range)
PRIORITYCLASS = Behaviour(
    default=_default_priority, validate=_check_priority, validate_update=_check_priority_update, generation=True
)
