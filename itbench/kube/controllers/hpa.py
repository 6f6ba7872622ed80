"""Horizontal autoscaler: every 15 seconds from pod metrics to replicas, with tolerance, rates and stabilisation.

The metrics come from an injected callable (`ControlPlane.metrics`, set by the world); without one the API is missing.
"""

from itbench.kube.client import ApiError, Obj, Objs
from itbench.kube.controllers.base import Context, Controller, MetricsSource, is_deleting, own_key, put_status
from itbench.kube.controllers.cache import key_of, labels_of
from itbench.kube.controllers.conditions import upsert
from itbench.kube.controllers.hpa_failures import Failure, failure
from itbench.kube.controllers.hpa_replicas import MetricError, Reading, limit_down, limit_up, read_resource, rules
from itbench.kube.controllers.selectors import matches, selector_of
from itbench.kube.selectors import format_selector

RESOURCE = "horizontalpodautoscalers.autoscaling"
PERIOD_S = 15.0
TARGETS = {
    "Deployment": "deployments.apps",
    "ReplicaSet": "replicasets.apps",
    "StatefulSet": "statefulsets.apps",
    "ReplicationController": "replicationcontrollers",
}
RANGE = "the desired count is within the acceptable range"


class _Pass:
    """One look at one autoscaler; `status` is built up and written at the end."""

    def __init__(self, context: Context, hpa: Obj) -> None:
        self.context, self.hpa = context, hpa
        self.status: Obj = {**(hpa.get("status") or {})}
        memory = context.state.setdefault(hpa["metadata"]["uid"], {})
        self.recommended: list[list[float]] = memory.setdefault("recommended", [])
        self.up: list[list[float]] = memory.setdefault("up", [])
        self.down: list[list[float]] = memory.setdefault("down", [])

    def set(self, kind: str, status: str, reason: str, message: str) -> None:
        """Set a condition."""
        new = {"type": kind, "status": status, "lastTransitionTime": self.context.stamp()}
        self.status["conditions"] = upsert(self.status.get("conditions"), {**new, "reason": reason, "message": message})

    def warn(self, reason: str, message: str) -> None:
        """A warning event."""
        self.context.event(self.hpa, reason, message, "Warning")

    def save(self) -> None:
        """Write the status."""
        self.status.setdefault("desiredReplicas", 0)
        self.status.setdefault("currentMetrics", None)
        put_status(self.context, RESOURCE, self.hpa, self.status)


def controller(metrics: MetricsSource) -> Controller:
    """The row for the manager; `metrics` gives pod metrics of a namespace, None without the API."""

    def reconcile(context: Context, namespace: str, name: str) -> None:
        hpa = context.cache.get(RESOURCE, namespace, name)
        if hpa is None or is_deleting(hpa):
            return
        created = context.state.setdefault("due", {})
        due = created.setdefault(hpa["metadata"]["uid"], context.now + PERIOD_S)
        if context.now < due:
            context.requeue((namespace, name), due)
            return
        created[hpa["metadata"]["uid"]] = context.now + PERIOD_S
        context.requeue((namespace, name), context.now + PERIOD_S)
        this = _Pass(context, hpa)
        _autoscale(this, metrics)
        this.save()

    return Controller("horizontal-pod-autoscaler", {RESOURCE: own_key}, reconcile)


def _autoscale(this: _Pass, metrics: MetricsSource) -> None:
    target = _target(this)
    if target is None:
        return
    resource, obj = target
    this.set(
        "AbleToScale", "True", "SucceededGetScale", "the HPA controller was able to get the target's current scale"
    )
    spec = this.hpa["spec"]
    current, low = int(obj["spec"].get("replicas", 1)), int(spec.get("minReplicas") or 1)
    this.status["currentReplicas"] = current
    if current == 0:
        text = "scaling is disabled since the replica count of the target is zero"
        this.set("ScalingActive", "False", "ScalingDisabled", text)
        this.status["desiredReplicas"] = 0
        return
    if current > spec["maxReplicas"]:
        desired, why = spec["maxReplicas"], "Current number of replicas above Spec.MaxReplicas"
    elif current < low:
        desired, why = low, "Current number of replicas below Spec.MinReplicas"
    else:
        found = _measure(this, metrics, obj, current)
        if found is None:
            return
        why = f"{found.name} above target" if found.replicas > current else "All metrics below target"
        desired = _normalise(this, current, found.replicas)
    this.status["desiredReplicas"] = desired
    if desired != current:
        _rescale(this, resource, obj, desired, why)


def _target(this: _Pass) -> tuple[str, Obj] | None:
    ref, namespace = this.hpa["spec"]["scaleTargetRef"], this.hpa["metadata"]["namespace"]
    resource = TARGETS.get(ref["kind"])
    obj = this.context.cache.get(resource, namespace, ref["name"]) if resource else None
    if resource is not None and obj is not None:
        return resource, obj
    if resource is None:
        problem = f'no matches for kind "{ref["kind"]}" in group "{(ref.get("apiVersion") or "").rpartition("/")[0]}"'
    else:
        problem = f'{resource} "{ref["name"]}" not found'
    this.warn("FailedGetScale", problem)
    text = f"the HPA controller was unable to get the target's current scale: {problem}"
    this.set("AbleToScale", "False", "FailedGetScale", text)
    return None


def _measure(this: _Pass, metrics: MetricsSource, obj: Obj, current: int) -> Reading | None:
    """The metric that asks for most; None when none gives a number (or one fails and the others ask for less)."""
    namespace = this.hpa["metadata"]["namespace"]
    selector = selector_of(obj) or {}
    pods = this.context.cache.pods_matching(namespace, selector)
    if _is_ambiguous(this, selector, pods):
        return None
    given = metrics(namespace)
    readings: list[Reading] = []
    shown: Objs = []
    failures: list[Failure] = []
    specs = this.hpa["spec"].get("metrics") or []
    for spec in specs:
        try:
            reading = _read(spec, given, pods, current, this.context.now)
        except MetricError as error:
            failures.append(failure(spec, str(error), namespace))
            shown.append({"type": ""})
            continue
        readings.append(reading)
        kind = spec["type"]
        field = kind[0].lower() + kind[1:]
        shown.append(
            {
                "type": kind,
                field: {**{k: v for k, v in spec[field].items() if k != "target"}, "current": reading.current},
            }
        )
    this.status["currentMetrics"] = shown
    best = max(readings, key=lambda r: r.replicas, default=None)
    if failures and (best is None or best.replicas < current):
        _report(this, failures, len(specs))
        return None
    if best is not None:
        text = f"the HPA was able to successfully calculate a replica count from {best.name}"
        this.set("ScalingActive", "True", "ValidMetricFound", text)
    return best


def _is_ambiguous(this: _Pass, selector: Obj, pods: Objs) -> bool:
    """Whether other autoscalers scale the same pods; says so."""
    namespace, cache = this.hpa["metadata"]["namespace"], this.context.cache
    found = []
    for hpa in cache.list(RESOURCE, namespace):
        ref = hpa["spec"]["scaleTargetRef"]
        resource = TARGETS.get(ref["kind"])
        target = cache.get(resource, namespace, ref["name"]) if resource else None
        theirs = selector_of(target) if target is not None else None
        if theirs is not None and any(matches(theirs, labels_of(pod)) for pod in pods):
            found.append(f"{namespace}/{hpa['metadata']['name']}")
    if len(found) < 2:
        return False
    text = f"pods by selector {format_selector(selector)} are controlled by multiple HPAs: [{' '.join(found)}]"
    this.warn("AmbiguousSelector", text)
    this.set("ScalingActive", "False", "AmbiguousSelector", text)
    this.warn("FailedComputeMetricsReplicas", text)
    this.status["currentMetrics"] = None
    return True


def _read(spec: Obj, given: Objs | None, pods: Objs, current: int, now: float) -> Reading:
    if spec["type"] == "Resource":
        return read_resource(spec["resource"], given, pods, current, now)
    if spec["type"] == "ContainerResource":
        return read_resource(spec["containerResource"], given, pods, current, now)
    raise MetricError("no such API")


def _report(this: _Pass, failures: list[Failure], count: int) -> None:
    for one in failures:
        this.warn(one.reason, one.message)
    first = failures[0]
    text = f"the HPA was unable to compute the replica count: {first.message}"
    this.set("ScalingActive", "False", first.reason, text)
    summary = f"invalid metrics ({len(failures)} invalid out of {count}), first error is: {first.summary}"
    this.warn("FailedComputeMetricsReplicas", summary)


def _normalise(this: _Pass, current: int, wanted: int) -> int:
    """Stabilise, then limit by rate and range."""
    stable = _stabilise(this, current, wanted)
    if stable == wanted:
        this.set("AbleToScale", "True", "ReadyForNewScale", "recommended size matches current size")
    elif stable > wanted:
        text = "recent recommendations were higher than current one, applying the highest recent recommendation"
        this.set("AbleToScale", "True", "ScaleDownStabilized", text)
    else:
        text = "recent recommendations were lower than current one, applying the lowest recent recommendation"
        this.set("AbleToScale", "True", "ScaleUpStabilized", text)
    limited, reason, text = _limit(this, current, stable)
    this.set("ScalingLimited", "False" if limited == stable else "True", reason, text)
    return limited


def _stabilise(this: _Pass, current: int, wanted: int) -> int:
    now = this.context.now
    up_s = rules(this.hpa, "scaleUp")["stabilizationWindowSeconds"]
    down_s = rules(this.hpa, "scaleDown")["stabilizationWindowSeconds"]
    past = [[at, count] for at, count in this.recommended if at > now - max(up_s, down_s)]
    lowest = min([wanted, *(int(count) for at, count in past if at > now - up_s)])
    highest = max([wanted, *(int(count) for at, count in past if at > now - down_s)])
    this.recommended[:] = [*past, [now, wanted]]
    if wanted > current:
        return max(current, lowest)
    return min(current, highest) if wanted < current else wanted


def _limit(this: _Pass, current: int, wanted: int) -> tuple[int, str, str]:
    spec, now = this.hpa["spec"], this.context.now
    low = int(spec.get("minReplicas") or 1)
    if wanted > current:
        rate = limit_up(this.hpa, current, this.up, this.down, now)
        if wanted > min(rate, spec["maxReplicas"]):
            if rate < spec["maxReplicas"]:
                return (
                    rate,
                    "ScaleUpLimit",
                    "the desired replica count is increasing faster than the maximum scale rate",
                )
            return (
                spec["maxReplicas"],
                "TooManyReplicas",
                "the desired replica count is more than the maximum replica count",
            )
    elif wanted < current:
        rate = limit_down(this.hpa, current, this.up, this.down, now)
        if wanted < max(rate, low):
            if rate > low:
                return (
                    rate,
                    "ScaleDownLimit",
                    "the desired replica count is decreasing faster than the maximum scale rate",
                )
            return low, "TooFewReplicas", "the desired replica count is less than the minimum replica count"
    elif wanted > spec["maxReplicas"] or wanted < low:
        return max(low, min(wanted, spec["maxReplicas"])), "DesiredWithinRange", RANGE
    return wanted, "DesiredWithinRange", RANGE


def _rescale(this: _Pass, resource: str, obj: Obj, desired: int, why: str) -> None:
    namespace, name = key_of(obj)
    current = int(obj["spec"].get("replicas", 1))
    try:
        this.context.client.patch(resource, name, namespace, {"spec": {"replicas": desired}}, subresource="scale")
    except ApiError as error:
        this.warn("FailedRescale", f"New size: {desired}; reason: {why}; error: {error}")
        text = f"the HPA controller was unable to update the target scale: {error}"
        this.set("AbleToScale", "False", "FailedUpdateScale", text)
        this.status["desiredReplicas"] = current
        return
    this.context.event(this.hpa, "SuccessfulRescale", f"New size: {desired}; reason: {why}")
    text = f"the HPA controller was able to update the target scale to {desired}"
    this.set("AbleToScale", "True", "SucceededRescale", text)
    this.status["lastScaleTime"] = this.context.stamp()
    past = this.up if desired > current else this.down
    past.append([this.context.now, abs(desired - current)])
    del past[:-100]
