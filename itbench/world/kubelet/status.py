"""Builds the `status` of a pod from what its kubelet knows. Pure; texts and shapes as a 1.34 kubelet writes them."""

from itbench.core.clock import rfc3339
from itbench.kube.client import Obj
from itbench.world.kubelet.state import ContainerState, PodState, Terminated


def _terminated(end: Terminated) -> Obj:
    found: Obj = {
        "exitCode": end.exit_code,
        "reason": end.reason,
        "startedAt": rfc3339(end.started_at) if end.started_at else None,
        "finishedAt": rfc3339(end.finished_at),
    }
    if end.message:
        found["message"] = end.message
    if end.container_id:
        found["containerID"] = end.container_id
    return {"terminated": found}


def _state(container: ContainerState) -> Obj:
    if container.running:
        return {"running": {"startedAt": rfc3339(container.started_at)}}
    if container.phase in ("exited", "restarting") and container.ended is not None:
        return _terminated(container.ended)
    waiting = {"reason": container.reason}
    if container.message:
        waiting["message"] = container.message
    return {"waiting": waiting}


def container_status(container: ContainerState, spec: Obj) -> Obj:
    """One entry of containerStatuses or initContainerStatuses."""
    last, ephemeral = container.previous, container.kind == "ephemeral"
    finished = container.phase == "exited" and container.ended is not None and container.ended.exit_code == 0
    found: Obj = {
        "name": container.name,
        "state": _state(container),
        "lastState": _terminated(last) if last is not None else {},
        "ready": finished if container.kind == "init" else container.ready and container.running and not ephemeral,
        "restartCount": container.restarts,
        "image": container.image_name or spec.get("image", ""),
        "imageID": container.image_id,
        "started": container.running and container.started and not ephemeral,
    }
    if ephemeral:
        del found["started"]
    if container.container_id:
        found["containerID"] = container.container_id
    resources = spec.get("resources")
    if resources and container.running and container.kind != "init":
        found["resources"] = resources
        if resources.get("requests"):
            found["allocatedResources"] = resources["requests"]
    return found


def phase_of(pod: PodState, restart_policy: str) -> str:
    """Pending, Running, Succeeded or Failed."""
    if pod.stage in ("volumes", "sandbox", "init"):
        return "Pending"
    mains = [c for c in pod.containers.values() if c.kind == "main"]
    over = [c for c in mains if c.phase == "exited" and c.ended is not None]
    if mains and len(over) == len(mains) and (restart_policy != "Always" or pod.stage in ("stopping", "ended")):
        good = all(c.ended is not None and c.ended.exit_code == 0 for c in over)
        if restart_policy != "OnFailure" or good or pod.stage in ("stopping", "ended"):
            return "Succeeded" if good else "Failed"
    if all(c.phase in ("new", "pulling", "pull-error", "pull-backoff", "config-error") and not c.runs for c in mains):
        return "Pending"
    return "Running"


def _condition(pod: PodState, kind: str, status: str, now: float, reason: str = "", message: str = "") -> Obj:
    before = pod.conditions.get(kind)
    since = before[1] if before is not None and before[0] == status else now
    pod.conditions[kind] = (status, since)
    found: Obj = {"type": kind, "status": status, "lastProbeTime": None, "lastTransitionTime": rfc3339(since)}
    if reason:
        found["reason"] = reason
    if message:
        found["message"] = message
    return found


def _conditions(pod: PodState, obj: Obj, phase: str, now: float) -> list[Obj]:
    inits = [c for c in pod.containers.values() if c.kind in ("init", "sidecar")]
    serving = [c for c in pod.containers.values() if c.kind in ("main", "sidecar")]
    waiting = [c.name for c in inits if not _init_done(c)]
    unready = [c.name for c in serving if not (c.running and c.ready)]
    sandbox = "True" if pod.ip and phase not in ("Succeeded", "Failed") else "False"
    found = [_condition(pod, "PodReadyToStartContainers", sandbox, now)]
    if pod.stage in ("volumes", "sandbox", "init") and inits:
        text = f"containers with incomplete status: [{' '.join(waiting)}]"
        found.append(_condition(pod, "Initialized", "False", now, "ContainersNotInitialized", text))
    else:
        found.append(_condition(pod, "Initialized", "True", now, "PodCompleted" if phase == "Succeeded" else ""))
    gates = [gate["conditionType"] for gate in obj["spec"].get("readinessGates") or ()]
    if phase == "Succeeded":
        reason, text = "PodCompleted", ""
    elif phase == "Failed":
        reason, text = "PodFailed", ""
    else:
        reason, text = "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]"
    up = not unready and phase == "Running"
    extra = ("", "") if up else (reason, text)
    given = {c["type"]: c for c in (obj.get("status") or {}).get("conditions") or ()}
    open_gates = [gate for gate in gates if given.get(gate, {}).get("status") != "True"]
    if up and open_gates:
        texts = ", ".join(f'the status of pod readiness gate "{gate}" is not "True", but False' for gate in open_gates)
        found.append(_condition(pod, "Ready", "False", now, "ReadinessGatesNotReady", texts))
    else:
        found.append(_condition(pod, "Ready", "True" if up else "False", now, *extra))
    found.append(_condition(pod, "ContainersReady", "True" if up else "False", now, *extra))
    if "PodScheduled" in given:
        found.append(given["PodScheduled"])
    else:
        found.append(_condition(pod, "PodScheduled", "True", pod.accepted_at))
    ours = {item["type"] for item in found}
    return found + [item for kind, item in given.items() if kind not in ours]


def _init_done(container: ContainerState) -> bool:
    if container.kind == "sidecar":
        return container.running and container.started
    return container.phase == "exited" and container.ended is not None and container.ended.exit_code == 0


def pod_status(pod: PodState, obj: Obj, host_ip: str, now: float) -> Obj:
    """The whole status of a pod."""
    spec = obj["spec"]
    phase = phase_of(pod, spec.get("restartPolicy", "Always"))
    pod.phase = phase
    lists = ("initContainers", "containers", "ephemeralContainers")
    specs = {item["name"]: item for key in lists for item in spec.get(key) or ()}
    status: Obj = {
        "phase": phase,
        "conditions": _conditions(pod, obj, phase, now),
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "startTime": rfc3339(pod.accepted_at),
        "containerStatuses": [
            container_status(c, specs[c.name])
            for c in sorted(pod.containers.values(), key=lambda c: c.name)
            if c.kind == "main"
        ],
        "qosClass": (obj.get("status") or {}).get("qosClass") or qos_class(spec),
    }
    if "observedGeneration" in (obj.get("status") or {}) or obj["metadata"].get("generation"):
        status["observedGeneration"] = obj["metadata"].get("generation", 1)
    if pod.ip:
        status["podIP"], status["podIPs"] = pod.ip, [{"ip": pod.ip}]
    inits = [container_status(c, specs[c.name]) for c in pod.containers.values() if c.kind in ("init", "sidecar")]
    if inits:
        status["initContainerStatuses"] = inits
    guests = [container_status(c, specs[c.name]) for c in pod.containers.values() if c.kind == "ephemeral"]
    if guests:
        status["ephemeralContainerStatuses"] = guests
    return status


def qos_class(spec: Obj) -> str:
    """Guaranteed, Burstable or BestEffort."""
    limits = [(c.get("resources") or {}).get("limits") or {} for c in spec["containers"]]
    requests = [(c.get("resources") or {}).get("requests") or {} for c in spec["containers"]]
    if not any(limits) and not any(requests):
        return "BestEffort"
    whole = all({"cpu", "memory"} <= set(limit) for limit in limits)
    equal = all(all(r.get(k, limit[k]) == limit[k] for k in limit) for limit, r in zip(limits, requests, strict=True))
    return "Guaranteed" if whole and equal else "Burstable"
