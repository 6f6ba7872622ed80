"""Scopes of a ResourceQuota: which there are, which exclude each other, what they may be applied to. Called by `policy`."""

from itbench.kube.client import Obj
from itbench.kube.kinds.check import Check

_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_POD_RESOURCES = frozenset(
    ("pods", "count/pods", *_COMPUTE, *(f"{part}.{name}" for part in ("requests", "limits") for name in _COMPUTE))
)
_STANDARD = (_POD_RESOURCES - {"count/pods"}) | {
    *("services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps", "persistentvolumeclaims"),
    *("requests.storage", "services.nodeports", "services.loadbalancers"),
}
_SIMPLE = ("Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "CrossNamespacePodAffinity")
_SCOPES = (*_SIMPLE, "PriorityClass", "VolumeAttributesClass")
_EXCLUSIVE = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_EXISTS_ONLY = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)


def _applies(scope: str, resource: str) -> bool:
    if scope == "BestEffort":
        return resource in ("pods", "count/pods")
    if scope == "VolumeAttributesClass":
        return resource not in _POD_RESOURCES
    return resource in _POD_RESOURCES or (
        resource.startswith(("requests.", "limits.")) and resource != "requests.storage"
    )


def _check_set(scopes: list[str], shown: object, field: str, hard: Obj, check: Check) -> None:
    for scope in scopes:
        if scope not in _SCOPES:
            check.invalid(field, shown, "unsupported scope")
        for resource in hard:
            if scope in _SCOPES and resource in _STANDARD and not _applies(scope, resource):
                check.invalid(field, shown, "unsupported scope applied to resource")
    if any(pair <= set(scopes) for pair in _EXCLUSIVE):
        check.invalid(field, shown, "conflicting scopes")


def _check_row(row: Obj, check: Check) -> None:
    field = "spec.scopeSelector.matchExpressions"
    scope, operator, values = row.get("scopeName", ""), row.get("operator", ""), row.get("values") or []
    if scope in _SIMPLE and operator != "Exists":
        check.invalid(f"{field}.operator", operator, _EXISTS_ONLY)
    if operator in ("In", "NotIn") and not values:
        text = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
        check.required(f"{field}.values", text)
    elif operator in ("Exists", "DoesNotExist") and values:
        text = "must be no value when `operator` is 'Exists' or 'DoesNotExist' for scope selector"
        check.invalid(f"{field}.values", values, text)
    elif operator not in _OPERATORS:
        check.invalid(f"{field}.operator", operator, "not a valid selector operator")


def check_scopes(spec: Obj, check: Check) -> None:
    """`scopes` and `scopeSelector`."""
    hard, scopes = spec.get("hard") or {}, spec.get("scopes") or []
    if scopes:
        _check_set(scopes, scopes, "spec.scopes", hard, check)
    rows = (spec.get("scopeSelector") or {}).get("matchExpressions") or []
    for row in rows:
        _check_row(row, check)
    if rows:
        names = [row.get("scopeName", "") for row in rows]
        _check_set(names, spec["scopeSelector"], "spec.scopeSelector.matchExpressions.scopeName", hard, check)
