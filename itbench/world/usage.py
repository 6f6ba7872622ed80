"""CPU and memory of every container, taken from the flow at each scrape; kills what goes over its memory limit.

The door (metrics.k8s.io), the cAdvisor metrics and the shell's `free` read it. Called by the estate every fifteen seconds.
"""

from collections.abc import Callable, Iterable
from typing import Any

from itbench.kube.client import Obj
from itbench.world.cluster import Cluster
from itbench.world.kubelet.kubelets import specs_of
from itbench.world.kubelet.state import ContainerState, PodState
from itbench.world.levers import Levers, cpu_limit
from itbench.world.meter import Meter
from itbench.world.process import memory_limit_mb

PERIOD_S = 15.0
NOTHING = (0.0, 0.0, 0.0)
NODE_OVERHEAD = (0.18, 1450.0)
"""Cores and MiB that the system and the kubelet take on each node."""


class Usage:
    """Usage of one cluster's containers.

    Args:
        cluster: the cluster.
        levers: which slot of the flow a pod has; None where nothing flows.
        flow: the flow; None likewise.
        stolen: (pod, container, limit) -> cores taken by stress.
        held: (pod, container) -> MiB held by stress.
    """

    def __init__(
        self,
        cluster: Cluster,
        levers: Levers | None,
        flow: Meter | None,
        stolen: Callable[[PodState, str, float], float],
        held: Callable[[PodState, str], float],
    ) -> None:
        self.cluster, self.levers, self.flow, self.stolen, self.held = cluster, levers, flow, stolen, held
        self.at = 0.0
        self.cores: dict[str, float] = {}
        self.cpu_s: dict[str, float] = {}
        self.throttled_s: dict[str, float] = {}
        self.node_s: dict[str, float] = {}
        """Core seconds that a node has worked since its beginning."""
        self._work: dict[str, list[float]] = {}

    def record(self, now: float) -> None:
        """Close the interval that ends now."""
        span = now - self.at
        if span <= 0:
            return
        flows = self._flows(span)
        self.cores = {}
        memory: dict[str, float] = {}
        for pod in list(self.cluster.kubelets.pods.values()):
            obj = self.cluster.objects.get("pods", pod.namespace, pod.name)
            if obj is None:
                continue
            specs, serving = specs_of(obj), self._serving(pod, obj)
            for container in list(pod.containers.values()):
                if container.running:
                    flow = flows.get(pod.uid, NOTHING) if container.name == serving else NOTHING
                    self._one(pod, container, specs[container.name], flow, memory, span)
        self.cluster.memory, self.at = memory, now
        for node, (cores, _) in self.nodes().items():
            self.node_s[node] = self.node_s.get(node, 0.0) + cores * span
        for pod in list(self.cluster.kubelets.pods.values()):
            self._check_limits(pod, now)

    def _flows(self, span: float) -> dict[str, tuple[float, float, float]]:
        """Pod uid -> (cores, requests per second, backlog) of its serving container."""
        found: dict[str, tuple[float, float, float]] = {}
        if self.levers is None or self.flow is None:
            return found
        for station, workload in enumerate(self.levers.net.stations):
            readout = self.flow.pods(station)
            share = self.levers.cpu_share(workload)
            before = self._work.get(workload, [0.0] * len(readout["cpu_s"]))
            served = self._work.get(f"{workload}#served", [0.0] * len(readout["served"]))
            for slot, uid in enumerate(self.levers.slots.get(workload, ())):
                if uid:
                    cores = max(float(readout["cpu_s"][slot]) - before[slot], 0.0) * share / span
                    rps = max(float(readout["served"][slot]) - served[slot], 0.0) / span
                    found[uid] = (cores, rps, float(readout["queued"][slot]))
            self._work[workload] = readout["cpu_s"].tolist()
            self._work[f"{workload}#served"] = readout["served"].tolist()
        return found

    def _one(
        self,
        pod: PodState,
        container: ContainerState,
        spec: dict[str, Any],
        flow: tuple[float, float, float],
        memory: dict[str, float],
        span: float,
    ) -> None:
        image = self.cluster.registry.find(spec.get("image", ""))
        if image is None:
            return
        key = f"{pod.uid}/{container.name}"
        cores, rps, backlog = flow
        limit = cpu_limit(spec)
        wanted = cores + image.program.idle_cpu + self.stolen(pod, container.name, limit)
        self.cores[key] = min(wanted, limit)
        self.cpu_s[key] = self.cpu_s.get(key, 0.0) + self.cores[key] * span
        busy = self.cores[key] / limit if limit else 0.0
        self.throttled_s[key] = self.throttled_s.get(key, 0.0) + span * max(0.0, (busy - 0.9) * 5)
        model = image.program.memory_mb
        # A process that has just started has not touched everything yet.
        fresh = min(1.0, 0.6 + 0.4 * (self.cluster.now - container.started_at) / 60.0)
        held = model.base * fresh + model.per_rps * rps + model.per_queued * backlog
        memory[key] = held + self.held(pod, container.name)

    def _serving(self, pod: PodState, obj: Obj) -> str | None:
        """The container of a pod that does the work of its service; None where nothing flows or no container is it."""
        if self.levers is None:
            return None
        if len(pod.containers) == 1:
            return next(iter(pod.containers))
        workload = self.cluster.objects.workload_of(obj)
        service = self.levers.app.services.get(workload)
        return None if service is None else service.container or workload.rsplit("/", 1)[-1]

    def _check_limits(self, pod: PodState, now: float) -> None:
        obj = self.cluster.objects.get("pods", pod.namespace, pod.name)
        if obj is None:
            return
        specs = specs_of(obj)
        for container in pod.containers.values():
            used = self.cluster.memory.get(f"{pod.uid}/{container.name}", 0.0)
            if container.running and used > memory_limit_mb(specs[container.name]):
                self.cluster.kubelets.kill_container(pod, container, now, 137, "OOMKilled")

    # ---- readers

    def containers_of(self, pod: PodState) -> list[tuple[str, float, float]]:
        """(container, cores, MiB) of what ran at the last scrape."""
        keys = {name: f"{pod.uid}/{name}" for name in pod.containers}
        return [
            (name, self.cores[key], self.cluster.memory.get(key, 0.0))
            for name, key in keys.items()
            if key in self.cores
        ]

    def nodes(self) -> dict[str, tuple[float, float]]:
        """(cores, MiB) of every node."""
        return self._sum(self.cluster.nodes.names)

    def node(self, name: str) -> tuple[float, float]:
        """(cores, MiB) of a node."""
        return self._sum([name])[name]

    def _sum(self, names: Iterable[str]) -> dict[str, tuple[float, float]]:
        found = dict.fromkeys(names, NODE_OVERHEAD)
        for pod in self.cluster.kubelets.pods.values():
            if pod.node in found:
                cores, memory = found[pod.node]
                for _, used, held in self.containers_of(pod):
                    cores, memory = cores + used, memory + held
                found[pod.node] = cores, memory
        return found

    # ---- checkpoints

    def save(self) -> dict[str, Any]:
        """State as plain data."""
        return {
            "at": self.at,
            "cores": dict(self.cores),
            "cpu_s": dict(self.cpu_s),
            "throttled_s": dict(self.throttled_s),
            "node_s": dict(self.node_s),
            "work": {name: list(values) for name, values in self._work.items()},
        }

    def restore(self, data: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self.at, self.cores, self.cpu_s = data["at"], dict(data["cores"]), dict(data["cpu_s"])
        self.throttled_s, self.node_s = dict(data["throttled_s"]), dict(data["node_s"])
        self._work = {name: list(values) for name, values in data["work"].items()}
