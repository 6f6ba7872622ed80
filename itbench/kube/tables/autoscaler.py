"""The row of a HorizontalPodAutoscaler: what it looks at and where that stands."""

from typing import Any

from itbench.kube.client import Obj
from itbench.kube.tables.cells import NONE, UNKNOWN, UNSET, Cells, age

_SHOWN = 2
_SOURCES = {
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
}


def _current(rows: list[Any], kind: str, index: int) -> Obj:
    if index >= len(rows):
        return {}
    return ((rows[index].get(_SOURCES.get(kind, "")) or {}).get("current")) or {}


def _target(metric: Obj, current: Obj) -> str:
    kind = metric.get("type", "")
    source = metric.get(_SOURCES.get(kind, "")) or {}
    target = source.get("target") or {}
    name = source.get("name", "")
    if kind in ("Resource", "ContainerResource"):
        if "averageValue" in target:
            return f"{name}: {current.get('averageValue') or UNKNOWN}/{target['averageValue']}"
        percent = target.get("averageUtilization")
        now = current.get("averageUtilization")
        shown = UNKNOWN if now is None else f"{now}%"
        return f"{name}: {shown}/{'<auto>' if percent is None else f'{percent}%'}"
    if "averageValue" in target:
        tail = " (avg)" if kind in ("Object", "External") else ""
        return f"{current.get('averageValue') or UNKNOWN}/{target['averageValue']}{tail}"
    return f"{current.get('value') or UNKNOWN}/{target.get('value', '')}"


def _targets(metrics: list[Obj], current: list[Any]) -> str:
    if not metrics:
        return NONE
    rows = [_target(row, _current(current, row.get("type", ""), index)) for index, row in enumerate(metrics)]
    text = ", ".join(rows[:_SHOWN])
    return text if len(rows) <= _SHOWN else f"{text} + {len(rows) - _SHOWN} more..."


def autoscaler(obj: Obj) -> Cells:
    """Reference, targets, bounds, replicas."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    ref = spec.get("scaleTargetRef") or {}
    targets = _targets(spec.get("metrics") or [], status.get("currentMetrics") or [])
    low = UNSET if spec.get("minReplicas") is None else str(spec["minReplicas"])
    row = [f"{ref.get('kind', '')}/{ref.get('name', '')}", targets, low, spec.get("maxReplicas", 0)]
    return [obj["metadata"]["name"], *row, status.get("currentReplicas", 0), age(obj)]
