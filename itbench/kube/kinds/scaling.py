"""Rules of an autoscaler's metrics, target and behaviour. Called by `policy` for HorizontalPodAutoscalers."""

from itbench.kube.client import Obj
from itbench.kube.kinds.check import Check
from itbench.kube.names import path_segment_errors

_SELECT = ("Disabled", "Max", "Min")
_LONGEST_WINDOW_S = 3600
_LONGEST_PERIOD_S = 1800


def check_behavior(behavior: Obj, check: Check) -> None:
    """Windows and policies of both directions."""
    for key in ("scaleUp", "scaleDown"):
        if key in behavior:
            _check_rules(behavior[key], f"spec.behavior.{key}", check)


def _check_rules(rules: Obj, field: str, check: Check) -> None:
    window = rules.get("stabilizationWindowSeconds")
    if isinstance(window, int) and window < 0:
        check.invalid(f"{field}.stabilizationWindowSeconds", window, "must be greater than or equal to zero")
    elif isinstance(window, int) and window > _LONGEST_WINDOW_S:
        text = f"must be less than or equal to {_LONGEST_WINDOW_S}"
        check.invalid(f"{field}.stabilizationWindowSeconds", window, text)
    if rules.get("selectPolicy") not in (None, *_SELECT):
        check.unsupported(f"{field}.selectPolicy", rules["selectPolicy"], _SELECT)
    policies = rules.get("policies") or []
    if not policies:
        check.required(f"{field}.policies", "must specify at least one Policy")
    for index, row in enumerate(policies):
        _check_policy(row, f"{field}.policies[{index}]", check)


def _check_policy(row: Obj, field: str, check: Check) -> None:
    if row.get("type") not in ("Pods", "Percent"):
        check.unsupported(f"{field}.type", row.get("type", ""), ("Percent", "Pods"))
    for key in ("value", "periodSeconds"):
        if row.get(key, 0) <= 0:
            check.invalid(f"{field}.{key}", row.get(key, 0), "must be greater than zero")
    if row.get("periodSeconds", 0) > _LONGEST_PERIOD_S:
        text = f"must be less than or equal to {_LONGEST_PERIOD_S}"
        check.invalid(f"{field}.periodSeconds", row["periodSeconds"], text)


def check_scale_target(reference: Obj, check: Check) -> None:
    """Kind, name and group of what is scaled."""
    for key in ("kind", "name"):
        value = reference.get(key, "")
        if not value:
            check.required(f"spec.scaleTargetRef.{key}")
        else:
            check.all_invalid(f"spec.scaleTargetRef.{key}", value, path_segment_errors(value))
    version = reference.get("apiVersion", "")
    if "/" not in version and version != "v1":
        check.invalid("spec.scaleTargetRef.apiVersion", version, "apiVersion must specify API group")


def check_named_metric(source: Obj, kind: str, field: str, check: Check) -> None:
    """Metrics that have a name of their own: Pods, Object, External."""
    if kind not in ("pods", "object", "external"):
        return
    name = (source.get("metric") or {}).get("name", "")
    if not name:
        check.required(f"{field}.metric.name", "must specify a metric name")
    else:
        check.all_invalid(f"{field}.metric.name", name, path_segment_errors(name))
    if kind == "pods" and "averageValue" not in (source.get("target") or {}):
        check.required(f"{field}.target.averageValue", "must specify a positive target averageValue")
