"""Evaluates container probes against the model and counts successes and failures, as a kubelet's prober does.

A probe whose result is known and whose inputs have not changed is *settled*: it costs nothing until something wakes it.
"""

from collections.abc import Callable
from math import inf
from typing import Protocol

from itbench.kube.client import Obj
from itbench.world.kubelet.state import ContainerState, PodState, ProbeState

KINDS = {"startupProbe": "Startup", "livenessProbe": "Liveness", "readinessProbe": "Readiness"}


class Prober(Protocol):
    """Asks the model."""

    def check(self, pod: PodState, container: ContainerState, obj: Obj, spec: Obj, probe: Obj) -> str:
        """Empty when the probe succeeds, else the text that the event carries after `probe failed: `."""


Report = Callable[[str, str], None]
"""(kind such as `Liveness`, text): writes the Unhealthy event."""


def begin(container: ContainerState, spec: Obj, now: float) -> None:
    """Forget earlier results: the process has just started."""
    container.probes = {}
    for name in KINDS:
        probe = spec.get(name)
        if probe:
            container.probes[name] = ProbeState(next_at=now + float(probe.get("initialDelaySeconds") or 0) + 0.3)
    container.started = "startupProbe" not in container.probes
    container.ready = container.started and "readinessProbe" not in container.probes


def due(container: ContainerState) -> float:
    """When the next probe wants to run; inf when all are settled."""
    times = [
        probe.next_at for name, probe in container.probes.items() if _active(container, name) and not probe.settled
    ]
    return min(times, default=inf)


def _active(container: ContainerState, name: str) -> bool:
    return container.started is not (name == "startupProbe")


def wake(container: ContainerState, now: float, spec: Obj) -> None:
    """Something that probes look at has changed: settled ones run again at their next period."""
    for name, state in container.probes.items():
        if state.settled:
            period = float((spec.get(name) or {}).get("periodSeconds") or 10)
            passed = max(0.0, now - state.next_at)
            state.next_at += period * (passed // period + 1) if now >= state.next_at else 0.0
            state.settled = False


def run(
    prober: Prober, pod: PodState, container: ContainerState, obj: Obj, spec: Obj, now: float, report: Report
) -> str:
    """Run what is due.

    Returns:
        `startup` or `liveness` when the container must be restarted for it, else nothing.
    """
    for name, state in container.probes.items():
        if not _active(container, name) or state.settled or state.next_at > now:
            continue
        probe = spec[name]
        text = prober.check(pod, container, obj, spec, probe)
        state.next_at = now + float(probe.get("periodSeconds") or 10)
        _count(state, text)
        if text:
            report(KINDS[name], text)
        doomed = _conclude(container, name, state, probe)
        if doomed:
            return doomed
    return ""


def _count(state: ProbeState, text: str) -> None:
    if text:
        state.failed, state.passed = state.failed + 1, 0
    else:
        state.passed, state.failed = state.passed + 1, 0
    state.message = text


def _conclude(container: ContainerState, name: str, state: ProbeState, probe: Obj) -> str:
    good = state.passed >= int(probe.get("successThreshold") or 1)
    bad = state.failed >= int(probe.get("failureThreshold") or 3)
    state.settled = good
    if name == "startupProbe":
        if good:
            container.started = True
            container.ready = "readinessProbe" not in container.probes
        return "startup" if bad else ""
    if name == "livenessProbe":
        return "liveness" if bad else ""
    if good or bad:
        container.ready = good
    return ""
