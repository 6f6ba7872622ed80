"""Rows of Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs, CronJobs and their revisions."""

from typing import Any

from itbench.kube.client import Obj
from itbench.kube.selectors import format_selector
from itbench.kube.tables.cells import NONE, UNSET, Age, Cells, age, containers, human, labels_text, moment


def _parts(obj: Obj) -> tuple[str, Obj, Obj, tuple[str, str]]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    return obj["metadata"]["name"], spec, status, containers((spec.get("template") or {}).get("spec") or {})


def deployment(obj: Obj) -> Cells:
    """Ready, up-to-date, available."""
    name, spec, status, (names, images) = _parts(obj)
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    counts = [status.get("updatedReplicas", 0), status.get("availableReplicas", 0)]
    return [name, ready, *counts, age(obj), names, images, format_selector(spec.get("selector"))]


def replicaset(obj: Obj) -> Cells:
    """Desired, current, ready."""
    name, spec, status, (names, images) = _parts(obj)
    selector = spec.get("selector")
    text = labels_text(selector) if obj["kind"] == "ReplicationController" else format_selector(selector)
    counts = [spec.get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [name, *counts, age(obj), names, images, text]


def statefulset(obj: Obj) -> Cells:
    """Ready."""
    name, spec, status, (names, images) = _parts(obj)
    return [name, f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}", age(obj), names, images]


def daemonset(obj: Obj) -> Cells:
    """Counts of nodes."""
    name, spec, status, (names, images) = _parts(obj)
    keys = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    selector = labels_text((spec.get("template", {}).get("spec") or {}).get("nodeSelector"))
    counts = [status.get(key, 0) for key in keys]
    return [name, *counts, selector, age(obj), names, images, format_selector(spec.get("selector"))]


def _condition(obj: Obj, kind: str) -> bool:
    rows = (obj.get("status") or {}).get("conditions") or ()
    return any(row["type"] == kind and row["status"] == "True" for row in rows)


def _job_status(obj: Obj) -> str:
    names = (
        ("Complete", "Complete"),
        ("Failed", "Failed"),
        ("Suspended", "Suspended"),
        ("FailureTarget", "FailureTarget"),
        ("SuccessCriteriaMet", "SuccessCriteriaMet"),
    )
    if obj["metadata"].get("deletionTimestamp") and not _condition(obj, "Complete") and not _condition(obj, "Failed"):
        return "Terminating"
    return next((text for kind, text in names if _condition(obj, kind)), "Running")


def _job_completions(spec: Obj, status: Obj) -> str:
    done, wanted = status.get("succeeded", 0), spec.get("completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    parallel = spec.get("parallelism", 0)
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _job_duration(status: Obj) -> Any:
    start, end = moment(status.get("startTime")), moment(status.get("completionTime"))
    if start is None:
        return ""
    return Age(start) if end is None else human(end - start)


def job(obj: Obj) -> Cells:
    """Status, completions, duration."""
    name, spec, status, (names, images) = _parts(obj)
    row = [_job_status(obj), _job_completions(spec, status), _job_duration(status)]
    return [name, *row, age(obj), names, images, format_selector(spec.get("selector"))]


def cronjob(obj: Obj) -> Cells:
    """Schedule and last run."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    template = ((spec.get("jobTemplate") or {}).get("spec") or {}).get("template") or {}
    names, images = containers(template.get("spec") or {})
    last = Age(moment(status.get("lastScheduleTime")), missing=NONE)
    suspend = "True" if spec.get("suspend") else "False" if "suspend" in spec else UNSET
    row = [spec.get("schedule", ""), spec.get("timeZone") or NONE, suspend, len(status.get("active") or ()), last]
    return [obj["metadata"]["name"], *row, age(obj), names, images, NONE]


def revision(obj: Obj) -> Cells:
    """Controller and number."""
    owner = next((row for row in obj["metadata"].get("ownerReferences") or () if row.get("controller")), None)
    text = NONE
    if owner is not None:
        group = owner["apiVersion"].rpartition("/")[0]
        text = (
            f"{owner['kind'].lower()}.{group}/{owner['name']}" if group else f"{owner['kind'].lower()}/{owner['name']}"
        )
    return [obj["metadata"]["name"], text, obj.get("revision", 0), age(obj)]
