"""The row of a pod: readiness, the status word, restarts."""

from typing import Any

from itbench.kube.client import Obj
from itbench.kube.tables.cells import NONE, Age, Cells, age, moment

_COMPLETED = {
    "Succeeded": [
        {
            "type": "Completed",
            "status": "True",
            "reason": "Succeeded",
            "message": "The pod has completed successfully.",
        }
    ],
    "Failed": [{"type": "Completed", "status": "True", "reason": "Failed", "message": "The pod failed."}],
}


def conditions(pod: Obj) -> list[Obj] | None:
    """`conditions` of the row of a finished pod."""
    return _COMPLETED.get((pod.get("status") or {}).get("phase", ""))


def _sidecars(spec: Obj) -> set[str]:
    return {row["name"] for row in spec.get("initContainers") or () if row.get("restartPolicy") == "Always"}


def _init_reason(rows: list[Obj], total: int, sidecars: set[str]) -> str | None:
    """The status word while init containers run; None once they are through."""
    for index, row in enumerate(rows):
        state = row.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting")
        if ended is not None and ended.get("exitCode") == 0:
            continue
        if row["name"] in sidecars and row.get("started"):
            continue
        if ended is not None:
            if ended.get("reason"):
                return f"Init:{ended['reason']}"
            return (
                f"Init:Signal:{ended['signal']}" if ended.get("signal") else f"Init:ExitCode:{ended.get('exitCode', 0)}"
            )
        if waiting is not None and waiting.get("reason") and waiting["reason"] != "PodInitializing":
            return f"Init:{waiting['reason']}"
        return f"Init:{index}/{total}"
    return None


def _container_reason(reason: str, rows: list[Obj]) -> tuple[str, bool]:
    """The status word from ordinary containers, and whether one of them runs ready."""
    running = False
    for row in reversed(rows):
        state = row.get("state") or {}
        waiting, ended = state.get("waiting"), state.get("terminated")
        if waiting is not None and waiting.get("reason"):
            reason = waiting["reason"]
        elif ended is not None and ended.get("reason"):
            reason = ended["reason"]
        elif ended is not None:
            signal = ended.get("signal")
            reason = f"Signal:{signal}" if signal else f"ExitCode:{ended.get('exitCode', 0)}"
        elif row.get("ready") and state.get("running") is not None:
            running = True
    return reason, running


def _is_ready(status: Obj) -> bool:
    return any(row["type"] == "Ready" and row["status"] == "True" for row in status.get("conditions") or ())


def status_word(pod: Obj) -> str:
    """The Status cell."""
    status, spec = pod.get("status") or {}, pod.get("spec") or {}
    reason = status.get("reason") or status.get("phase", "")
    for row in status.get("conditions") or ():
        if row["type"] == "PodScheduled" and row.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    sidecars = _sidecars(spec)
    total = len(spec.get("initContainers") or ())
    initial = _init_reason(status.get("initContainerStatuses") or [], total, sidecars)
    initialized = any(
        row["type"] == "Initialized" and row["status"] == "True" for row in status.get("conditions") or ()
    )
    if initial is not None and not initialized:
        reason = initial
    else:
        reason, running = _container_reason(reason, status.get("containerStatuses") or [])
        if reason == "Completed" and running:
            reason = "Running" if _is_ready(status) else "NotReady"
    if pod["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            return "Unknown"
        if status.get("phase") not in ("Succeeded", "Failed"):
            return "Terminating"
    return str(reason)


def _restarts(rows: list[Obj]) -> Any:
    """Restart count, with the time of the latest one."""
    count = sum(row.get("restartCount", 0) for row in rows)
    ends = [
        moment(ended["finishedAt"])
        for row in rows
        if (ended := (row.get("lastState") or {}).get("terminated")) and ended.get("finishedAt")
    ]
    known = [end for end in ends if end is not None]
    return Age(max(known), f"{count} ({{}} ago)") if count and known else str(count)


def pod(obj: Obj) -> Cells:
    """All cells of a pod."""
    status, spec = obj.get("status") or {}, obj.get("spec") or {}
    sidecars = _sidecars(spec)
    rows = status.get("containerStatuses") or []
    beside = [row for row in status.get("initContainerStatuses") or () if row["name"] in sidecars]
    initial = _init_reason(status.get("initContainerStatuses") or [], len(spec.get("initContainers") or ()), sidecars)
    counted = [*(status.get("initContainerStatuses") or [])] if initial is not None else [*rows, *beside]
    total = len(spec.get("containers") or ()) + len(sidecars)
    ready = sum(1 for row in rows if row.get("ready") and (row.get("state") or {}).get("running") is not None)
    ready += sum(1 for row in beside if row.get("started") and row.get("ready"))
    gates = spec.get("readinessGates") or ()
    gate = NONE
    if gates:
        known = {row["type"]: row["status"] for row in status.get("conditions") or ()}
        gate = f"{sum(1 for row in gates if known.get(row['conditionType']) == 'True')}/{len(gates)}"
    ips = status.get("podIPs") or ()
    address = ips[0]["ip"] if ips else status.get("podIP") or NONE
    return [
        obj["metadata"]["name"],
        f"{ready}/{total}",
        status_word(obj),
        _restarts(counted),
        age(obj),
        address,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        gate,
    ]
