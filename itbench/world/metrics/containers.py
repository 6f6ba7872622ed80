"""cAdvisor, kubelet and node metrics of one cluster, with a little measurement noise. Called by the estate at each scrape."""

from dataclasses import dataclass
from math import isfinite

import numpy as np

from itbench.kube.client import Obj
from itbench.telemetry.labels import Labels, freeze
from itbench.telemetry.metrics import MetricStore
from itbench.world.cluster import Cluster
from itbench.world.kubelet.kubelets import specs_of
from itbench.world.kubelet.nodes import CORES, MEMORY_KI
from itbench.world.kubelet.state import PodState
from itbench.world.levers import cpu_limit
from itbench.world.metrics.sheet import Layout, Sheet
from itbench.world.noise import Noise
from itbench.world.process import memory_limit_mb
from itbench.world.usage import Usage

NOISE = 0.02
CFS_PERIOD_S = 0.1
ALWAYS = (
    "container_cpu_usage_seconds_total",
    "container_memory_working_set_bytes",
    "container_memory_rss",
)
LIMITED = ("container_spec_memory_limit_bytes",)
QUOTA = (
    "container_spec_cpu_quota",
    "container_spec_cpu_period",
    "container_cpu_cfs_periods_total",
    "container_cpu_cfs_throttled_periods_total",
    "container_cpu_cfs_throttled_seconds_total",
)


@dataclass(frozen=True, slots=True, eq=False)
class _Container:
    """The series of one container: the same as long as its spec is."""

    spec: Obj
    node: str
    key: str
    series: tuple[Labels, ...]
    memory_limit: float
    cpu_limit: float | None

    def values(self, usage: Usage, held: float, running_s: float) -> list[float]:
        """Values in the order of `series`; `held` is memory in bytes."""
        found = [usage.cpu_s[self.key], held, held * 0.93]
        if isfinite(self.memory_limit):
            found.append(self.memory_limit)
        if self.cpu_limit is not None:
            throttled = usage.throttled_s.get(self.key, 0.0)
            periods = max(running_s, 0.0) / CFS_PERIOD_S
            found += [self.cpu_limit * 1e5, 1e5, periods, throttled / CFS_PERIOD_S, throttled * 0.6]
        return found


def _container(pod: PodState, name: str, spec: Obj) -> _Container:
    who = {
        "job": "kubelet",
        "metrics_path": "/metrics/cadvisor",
        "instance": f"{pod.node}:10250",
        "node": pod.node,
        "namespace": pod.namespace,
        "pod": pod.name,
        "container": name,
        "image": spec.get("image", ""),
    }
    memory = memory_limit_mb(spec) * 2**20
    has_quota = ((spec.get("resources") or {}).get("limits") or {}).get("cpu") is not None
    names = (*ALWAYS, *(LIMITED if isfinite(memory) else ()), *(QUOTA if has_quota else ()))
    series = tuple(freeze({"__name__": each, **who}) for each in names)
    return _Container(spec, pod.node, f"{pod.uid}/{name}", series, memory, cpu_limit(spec) if has_quota else None)


class ContainerMetrics:
    """The exporter of one cluster."""

    def __init__(self, store: MetricStore, cluster: Cluster, usage: Usage, noise: Noise) -> None:
        suffix = "" if cluster.plane.name == "main" else f"/{cluster.plane.name}"
        self._sheet = Sheet(store, f"kubelet{suffix}")
        self._cluster, self._usage, self._noise = cluster, usage, noise
        self._known: dict[str, _Container] = {}
        self._listed: list[_Container] = []
        self._layout = Layout(())
        self._names: list[str] = []
        self._nodes_layout = Layout(())

    def scrape(self, now: float) -> None:
        """One scrape."""
        rng = np.random.default_rng([self._noise.seed, int(now * 1000), 1])
        listed: list[_Container] = []
        values: list[float] = []
        for pod in self._cluster.kubelets.pods.values():
            obj = self._cluster.objects.get("pods", pod.namespace, pod.name)
            if obj is None:
                continue
            specs = specs_of(obj)
            for name, _, memory in self._usage.containers_of(pod):
                each = self._of(pod, name, specs[name])
                held = memory * 2**20 * (1 + NOISE * float(rng.standard_normal()) / 3)
                listed.append(each)
                values += each.values(self._usage, held, now - pod.containers[name].started_at)
        if listed != self._listed:
            self._layout, self._listed = Layout(series for each in listed for series in each.series), listed
            self._known = {each.key: each for each in listed}
        if self._names != self._cluster.nodes.names:
            self._names = list(self._cluster.nodes.names)
            self._nodes_layout = Layout(series for node in self._names for series in _node_series(node))
        nodes = np.array(self._node_values(now))
        self._sheet.write(now, fixed=[(self._layout, np.array(values)), (self._nodes_layout, nodes)])

    def _of(self, pod: PodState, name: str, spec: Obj) -> _Container:
        known = self._known.get(f"{pod.uid}/{name}")
        if known is None or known.spec is not spec or known.node != pod.node:
            known = self._known[f"{pod.uid}/{name}"] = _container(pod, name, spec)
        return known

    def _node_values(self, now: float) -> list[float]:
        """Values in the order of `_node_series`, node by node."""
        found: list[float] = []
        for node, (cores, memory) in self._usage.nodes().items():
            # Time by core and mode, as if the work were shared evenly by the cores.
            busy = min(self._usage.node_s.get(node, 0.0), CORES * now) / CORES
            total = MEMORY_KI * 1024.0
            found += [cores, *((now - busy, busy * 0.2, busy * 0.8) * int(CORES))]
            found += [total, total - memory * 2**20, CORES, 1.0, 1.0]
        return found


def _node_series(node: str) -> list[Labels]:
    who = {"job": "node-exporter", "instance": f"{node}:9100", "node": node}
    kubelet = {"job": "kubelet", "instance": f"{node}:10250", "node": node}
    found = [{"__name__": "node_load1", **who}]
    for core in range(int(CORES)):
        for mode in ("idle", "system", "user"):
            found.append({"__name__": "node_cpu_seconds_total", **who, "cpu": str(core), "mode": mode})
    found += [{"__name__": f"node_memory_{part}_bytes", **who} for part in ("MemTotal", "MemAvailable")]
    found.append({"__name__": "machine_cpu_cores", **kubelet})
    found += [{"__name__": "up", **each} for each in (kubelet, who)]
    return [freeze(each) for each in found]
