"""kube-state-metrics of the kinds beside nodes, pods and Deployments. Called by `state`.

Each kind is a table: the label that names the object, and metric name -> where its value stands in the object.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from itbench.kube.client import Obj
from itbench.kube.quantity import parse_quantity
from itbench.telemetry.labels import freeze
from itbench.world.metrics.sheet import Row
from itbench.world.objects import Objects

KINDS: dict[str, tuple[str, dict[str, tuple[str, int]]]] = {
    "statefulsets.apps": (
        "statefulset",
        {
            "replicas": ("spec.replicas", 1),
            "status_replicas": ("status.replicas", 0),
            "status_replicas_ready": ("status.readyReplicas", 0),
            "status_replicas_available": ("status.availableReplicas", 0),
            "status_replicas_current": ("status.currentReplicas", 0),
            "status_replicas_updated": ("status.updatedReplicas", 0),
            "metadata_generation": ("metadata.generation", 1),
            "status_observed_generation": ("status.observedGeneration", 0),
        },
    ),
    "daemonsets.apps": (
        "daemonset",
        {
            "status_desired_number_scheduled": ("status.desiredNumberScheduled", 0),
            "status_current_number_scheduled": ("status.currentNumberScheduled", 0),
            "status_number_ready": ("status.numberReady", 0),
            "status_number_available": ("status.numberAvailable", 0),
            "status_number_unavailable": ("status.numberUnavailable", 0),
            "status_number_misscheduled": ("status.numberMisscheduled", 0),
        },
    ),
    "horizontalpodautoscalers.autoscaling": (
        "horizontalpodautoscaler",
        {
            "spec_min_replicas": ("spec.minReplicas", 1),
            "spec_max_replicas": ("spec.maxReplicas", 0),
            "status_current_replicas": ("status.currentReplicas", 0),
            "status_desired_replicas": ("status.desiredReplicas", 0),
        },
    ),
    "jobs.batch": (
        "job_name",
        {
            "status_active": ("status.active", 0),
            "status_succeeded": ("status.succeeded", 0),
            "status_failed": ("status.failed", 0),
        },
    ),
    "poddisruptionbudgets.policy": (
        "poddisruptionbudget",
        {
            "status_current_healthy": ("status.currentHealthy", 0),
            "status_desired_healthy": ("status.desiredHealthy", 0),
            "status_pod_disruptions_allowed": ("status.disruptionsAllowed", 0),
            "status_expected_pods": ("status.expectedPods", 0),
        },
    ),
}
PREFIX = {"job_name": "job"}
CLAIM_PHASES = ("Pending", "Bound", "Lost")


def _find(obj: Obj, path: str, default: int) -> float:
    found: Any = obj
    for part in path.split("."):
        found = (found or {}).get(part)
    return float(default if found is None else found)


def more_rows(objects: Objects, job: Mapping[str, str]) -> Iterator[Row]:
    """Rows of all kinds in `KINDS`, claims and quotas; `job` are the labels of the scrape target."""
    for resource, (label, metrics) in KINDS.items():
        for obj in objects.all(resource):
            who = {**job, "namespace": obj["metadata"].get("namespace", ""), label: obj["metadata"]["name"]}
            for name, (path, default) in metrics.items():
                full = f"kube_{PREFIX.get(label, label)}_{name}"
                yield freeze({"__name__": full, **who}), _find(obj, path, default)
    for obj in objects.all("persistentvolumeclaims"):
        yield from _claim(obj, job)
    for obj in objects.all("resourcequotas"):
        yield from _quota(obj, job)


def _claim(obj: Obj, job: Mapping[str, str]) -> Iterator[Row]:
    meta, phase = obj["metadata"], (obj.get("status") or {}).get("phase", "Pending")
    who = {**job, "namespace": meta.get("namespace", ""), "persistentvolumeclaim": meta["name"]}
    for each in CLAIM_PHASES:
        yield (
            freeze({"__name__": "kube_persistentvolumeclaim_status_phase", **who, "phase": each}),
            float(each == phase),
        )
    asked = ((obj["spec"].get("resources") or {}).get("requests") or {}).get("storage")
    if asked is not None:
        name = "kube_persistentvolumeclaim_resource_requests_storage_bytes"
        yield freeze({"__name__": name, **who}), float(parse_quantity(str(asked)))


def _quota(obj: Obj, job: Mapping[str, str]) -> Iterator[Row]:
    meta, status = obj["metadata"], obj.get("status") or {}
    who = {**job, "namespace": meta.get("namespace", ""), "resourcequota": meta["name"]}
    for kind in ("hard", "used"):
        for resource, amount in (status.get(kind) or {}).items():
            labels = {"__name__": "kube_resourcequota", **who, "resource": resource, "type": kind}
            yield freeze(labels), float(parse_quantity(str(amount)))
