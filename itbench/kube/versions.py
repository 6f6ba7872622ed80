"""Conversion between the version asked for and the version stored, where several versions share objects.

Only autoscaling v1/v2, events.k8s.io/v1 against core/v1, and custom resources (which know it themselves) need it.
"""

from typing import Any

from itbench.kube.client import Obj
from itbench.kube.resources import Resource, ResourceTable

_HPA = "horizontalpodautoscalers.autoscaling"
_METRICS = "autoscaling.alpha.kubernetes.io/metrics"
_EVENT_FIELDS = (
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
)


def _rename(obj: Obj, pairs: dict[str, str]) -> Obj:
    return {pairs.get(key, key): value for key, value in obj.items()}


def _hpa_v1_to_v2(obj: Obj) -> Obj:
    spec = dict(obj.get("spec", {}))
    target = spec.pop("targetCPUUtilizationPercentage", None)
    if target is not None:
        spec["metrics"] = [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": target}},
            }
        ]
    state = dict(obj.get("status", {}))
    state.pop("currentCPUUtilizationPercentage", None)
    return {**obj, "apiVersion": "autoscaling/v2", "spec": spec, "status": state}


def _utilization(rows: list[Any], key: str) -> int | None:
    for row in rows:
        resource = row.get("resource") or {}
        if row.get("type") == "Resource" and resource.get("name") == "cpu":
            value = (resource.get(key) or {}).get("averageUtilization")
            return None if value is None else int(value)
    return None


def _hpa_v2_to_v1(obj: Obj) -> Obj:
    spec, state = dict(obj.get("spec", {})), dict(obj.get("status", {}))
    target = _utilization(spec.pop("metrics", []), "target")
    if target is not None:
        spec["targetCPUUtilizationPercentage"] = target
    spec.pop("behavior", None)
    current = _utilization(state.pop("currentMetrics", None) or [], "current")
    state.pop("conditions", None)
    state.setdefault("currentReplicas", 0)
    if current is not None:
        state["currentCPUUtilizationPercentage"] = current
    return {**obj, "apiVersion": "autoscaling/v1", "spec": spec, "status": state}


def to_served(obj: Obj, resource: Resource) -> Obj:
    """A stored object in the version of `resource`; the same object where that is the stored version."""
    if resource.model is not None:
        return resource.model.read(obj)
    if obj["apiVersion"] == resource.api_version:
        return obj
    if resource.storage == _HPA:
        return _hpa_v2_to_v1(obj)
    if resource.storage == "events":
        return {**_rename(obj, {old: new for new, old in _EVENT_FIELDS}), "apiVersion": resource.api_version}
    return {**obj, "apiVersion": resource.api_version}


def to_stored(obj: Obj, resource: Resource, table: ResourceTable) -> Obj:
    """The inverse of `to_served`."""
    if resource.model is not None:
        return resource.model.write(obj)
    stored = table.stored(resource)
    if stored is resource or stored.api_version == resource.api_version:
        return obj
    if resource.storage == _HPA:
        return _hpa_v1_to_v2(obj)
    if resource.storage == "events":
        return {**_rename(obj, dict(_EVENT_FIELDS)), "apiVersion": stored.api_version}
    return {**obj, "apiVersion": stored.api_version}
