"""Arithmetic of the horizontal autoscaler: from metrics to a number of replicas, and what rules allow of it. Pure.

Source: behaviour of kube-controller-manager 1.34.
"""

from dataclasses import dataclass
from math import ceil

from itbench.kube.client import Obj, Objs
from itbench.kube.controllers.base import is_deleting, seconds
from itbench.kube.controllers.pods import condition, phase
from itbench.kube.quantity import milli

TOLERANCE = 0.1
CPU_INITIALISATION_S = 300.0
READINESS_DELAY_S = 30.0
NO_API = (
    "unable to fetch metrics from resource metrics API: the server could not find the requested resource "
    "(get pods.metrics.k8s.io)"
)
UP = {"stabilizationWindowSeconds": 0, "selectPolicy": "Max"}
UP_POLICIES = [
    {"type": "Pods", "value": 4, "periodSeconds": 15},
    {"type": "Percent", "value": 100, "periodSeconds": 15},
]
DOWN = {"stabilizationWindowSeconds": 300, "selectPolicy": "Max"}
DOWN_POLICIES = [{"type": "Percent", "value": 100, "periodSeconds": 15}]


class MetricError(Exception):
    """Why a metric gives no number; the text goes into events and conditions."""


@dataclass(frozen=True)
class Reading:
    """What one metric asks for.

    Attributes:
        name: as in the reason of a rescale.
        current: for `status.currentMetrics`.
    """

    replicas: int
    name: str
    current: Obj


def usage_of(metrics: Objs | None, pods: Objs, resource: str, container: str) -> dict[str, int]:
    """Thousandths of usage of each of the pods that has metrics."""
    if metrics is None:
        raise MetricError(f"unable to get metrics for resource {resource}: {NO_API}")
    wanted = {p["metadata"]["name"] for p in pods}
    found: dict[str, int] = {}
    for row in metrics:
        if row["metadata"]["name"] in wanted:
            rows = [c for c in row["containers"] if not container or c["name"] == container]
            if rows:
                found[row["metadata"]["name"]] = sum(milli(str(c["usage"][resource])) for c in rows)
    if not found:
        raise MetricError(
            f"unable to get metrics for resource {resource}: no metrics returned from resource metrics API"
        )
    return found


def _groups(pods: Objs, usage: dict[str, int], resource: str, now: float) -> tuple[Objs, Objs, Objs]:
    """(counted, not ready yet, without metrics)."""
    ready, unready, missing = [], [], []
    for pod in pods:
        if is_deleting(pod) or phase(pod) == "Failed":
            continue
        if phase(pod) == "Pending":
            unready.append(pod)
        elif pod["metadata"]["name"] not in usage:
            missing.append(pod)
        elif resource == "cpu" and _is_warming(pod, now):
            unready.append(pod)
        else:
            ready.append(pod)
    return ready, unready, missing


def _is_warming(pod: Obj, now: float) -> bool:
    found, start = condition(pod, "Ready"), (pod.get("status") or {}).get("startTime")
    if found is None or not start:
        return True
    since = seconds(found.get("lastTransitionTime"), now)
    if seconds(start) + CPU_INITIALISATION_S > now:
        return bool(found["status"] == "False")
    return bool(found["status"] == "False") and seconds(start) + READINESS_DELAY_S > since


def _requests(pod: Obj, resource: str, container: str) -> int:
    total = 0
    rows = [c for c in pod["spec"]["containers"] if not container or c["name"] == container]
    for row in rows:
        asked = ((row.get("resources") or {}).get("requests") or {}).get(resource)
        if asked is None:
            name = pod["metadata"]["name"]
            raise MetricError(f"missing request for {resource} in container {row['name']} of Pod {name}")
        total += milli(str(asked))
    return total


def replicas_for(current: int, ratio: float, pods: tuple[Objs, Objs, Objs], rebalanced: float) -> int:
    """Replicas that bring the ratio to one.

    Args:
        ratio: usage over target of the counted pods.
        rebalanced: the same with pods that are missing or warming filled in against the direction of the change.
    """
    ready, unready, missing = pods
    if not missing and (not unready or ratio <= 1.0):
        return current if abs(1.0 - ratio) <= TOLERANCE else ceil(ratio * len(ready))
    if abs(1.0 - rebalanced) <= TOLERANCE or (ratio < 1.0) != (rebalanced < 1.0):
        return current
    count = len(ready) + len(missing) + (len(unready) if ratio > 1.0 else 0)
    wanted = ceil(rebalanced * count)
    wrong = (rebalanced < 1.0 and wanted > current) or (rebalanced > 1.0 and wanted < current)
    return current if wrong else wanted


def read_resource(source: Obj, metrics: Objs | None, pods: Objs, current: int, now: float) -> Reading:
    """A `Resource` or `ContainerResource` metric."""
    resource, container, target = source["name"], source.get("container", ""), source["target"]
    usage = usage_of(metrics, pods, resource, container)
    groups = _groups(pods, usage, resource, now)
    ready, unready, missing = groups
    if not ready:
        raise MetricError("did not receive metrics for targeted pods (pods might be unready)")
    share = target.get("averageUtilization")
    used = sum(usage[p["metadata"]["name"]] for p in ready)
    if share is not None:
        base = {p["metadata"]["name"]: _requests(p, resource, container) for p in [*ready, *unready, *missing]}
        goal = share / 100
    else:
        base = dict.fromkeys(
            (p["metadata"]["name"] for p in [*ready, *unready, *missing]), milli(str(target["averageValue"]))
        )
        goal = 1.0
    ready_base = sum(base[p["metadata"]["name"]] for p in ready)
    ratio = used / ready_base / goal if ready_base else 0.0
    # What is missing is taken to be at target when scaling down and idle when scaling up; what is warming counts as idle.
    absent = sum(base[p["metadata"]["name"]] for p in missing)
    warming = sum(base[p["metadata"]["name"]] for p in unready) if ratio > 1.0 else 0
    filled = used + (absent * goal if ratio < 1.0 else 0)
    total = ready_base + absent + warming
    rebalanced = filled / total / goal if total else ratio
    value: Obj = {"averageValue": _average(used, len(ready), resource)}
    if share is not None:
        value = {"averageUtilization": round(used / ready_base * 100) if ready_base else 0, **value}
    name = f"{resource} resource utilization (percentage of request)" if share is not None else f"{resource} resource"
    if container:
        name = f"{resource} container resource utilization (percentage of request)"
    return Reading(replicas_for(current, ratio, groups, rebalanced), name, value)


def _average(total_milli: int, count: int, resource: str) -> str:
    average = total_milli // count
    return f"{average}m" if resource == "cpu" else str(average // 1000)


def rules(hpa: Obj, direction: str) -> Obj:
    """Scaling rules with their defaults (`scaleUp`, `scaleDown`)."""
    given = (hpa["spec"].get("behavior") or {}).get(direction) or {}
    base, policies = (UP, UP_POLICIES) if direction == "scaleUp" else (DOWN, DOWN_POLICIES)
    found: Obj = {**base, "policies": policies, **{k: v for k, v in given.items() if v is not None}}
    return found


def _changed(events: list[list[float]], period_s: float, now: float) -> int:
    return int(sum(change for at, change in events if at > now - period_s))


def limit_up(hpa: Obj, current: int, up: list[list[float]], down: list[list[float]], now: float) -> int:
    """The most replicas that scale-up policies allow now. `up`, `down`: past changes as [second, replicas]."""
    found = rules(hpa, "scaleUp")
    if found["selectPolicy"] == "Disabled":
        return current
    limits = []
    for policy in found["policies"]:
        period_s = policy["periodSeconds"]
        start = current - _changed(up, period_s, now) + _changed(down, period_s, now)
        grown = start + policy["value"] if policy["type"] == "Pods" else ceil(start * (1 + policy["value"] / 100))
        limits.append(int(grown))
    return max(current, min(limits) if found["selectPolicy"] == "Min" else max(limits))


def limit_down(hpa: Obj, current: int, up: list[list[float]], down: list[list[float]], now: float) -> int:
    """The fewest replicas that scale-down policies allow now."""
    found = rules(hpa, "scaleDown")
    if found["selectPolicy"] == "Disabled":
        return current
    limits = []
    for policy in found["policies"]:
        period_s = policy["periodSeconds"]
        start = current - _changed(up, period_s, now) + _changed(down, period_s, now)
        shrunk = start - policy["value"] if policy["type"] == "Pods" else int(start * (1 - policy["value"] / 100))
        limits.append(int(shrunk))
    return min(current, max(limits) if found["selectPolicy"] == "Min" else min(limits))
