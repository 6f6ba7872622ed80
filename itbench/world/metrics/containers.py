"""cAdvisor, kubelet and node metrics of one cluster, with a little measurement noise. Called by the estate at each scrape."""

from collections.abc import Iterator

import numpy as np

from itbench.telemetry.labels import freeze
from itbench.telemetry.metrics import MetricStore
from itbench.world.cluster import Cluster
from itbench.world.kubelet.kubelets import specs_of
from itbench.world.kubelet.nodes import CORES, MEMORY_KI
from itbench.world.levers import cpu_limit
from itbench.world.metrics.sheet import Row, Sheet
from itbench.world.process import memory_limit_mb
from itbench.world.usage import Usage

NOISE = 0.02
CFS_PERIOD_S = 0.1


class ContainerMetrics:
    """The exporter of one cluster."""

    def __init__(self, store: MetricStore, cluster: Cluster, usage: Usage, seed: int) -> None:
        suffix = "" if cluster.plane.name == "main" else f"/{cluster.plane.name}"
        self._sheet = Sheet(store, f"kubelet{suffix}")
        self._cluster, self._usage, self._seed = cluster, usage, seed

    def scrape(self, now: float) -> None:
        """One scrape."""
        self._sheet.write(now, [*self._containers(now), *self._nodes(now)])

    def _containers(self, now: float) -> Iterator[Row]:
        rng = np.random.default_rng([self._seed, int(now * 1000), 1])
        for pod in self._cluster.kubelets.pods.values():
            obj = self._cluster.objects.get("pods", pod.namespace, pod.name)
            if obj is None:
                continue
            specs = specs_of(obj)
            for name, _, memory in self._usage.containers_of(pod):
                key, spec = f"{pod.uid}/{name}", specs[name]
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
                held = memory * 2**20 * (1 + NOISE * float(rng.standard_normal()) / 3)
                yield freeze({"__name__": "container_cpu_usage_seconds_total", **who}), self._usage.cpu_s[key]
                yield freeze({"__name__": "container_memory_working_set_bytes", **who}), held
                yield freeze({"__name__": "container_memory_rss", **who}), held * 0.93
                limit = memory_limit_mb(spec)
                if np.isfinite(limit):
                    yield freeze({"__name__": "container_spec_memory_limit_bytes", **who}), limit * 2**20
                if ((spec.get("resources") or {}).get("limits") or {}).get("cpu") is not None:
                    yield from self._quota(who, key, cpu_limit(spec), pod.containers[name].started_at, now)

    def _quota(self, who: dict[str, str], key: str, limit: float, started_at: float, now: float) -> Iterator[Row]:
        throttled = self._usage.throttled_s.get(key, 0.0)
        quota = {"container_spec_cpu_quota": limit * 1e5, "container_spec_cpu_period": 1e5}
        periods = {
            "container_cpu_cfs_periods_total": max(now - started_at, 0.0) / CFS_PERIOD_S,
            "container_cpu_cfs_throttled_periods_total": throttled / CFS_PERIOD_S,
            "container_cpu_cfs_throttled_seconds_total": throttled * 0.6,
        }
        for name, value in (quota | periods).items():
            yield freeze({"__name__": name, **who}), value

    def _cpu(self, who: dict[str, str], node: str, now: float) -> Iterator[Row]:
        """Time by core and mode, as if the work were shared evenly by the cores."""
        busy = min(self._usage.node_s.get(node, 0.0), CORES * now) / CORES
        for core in range(int(CORES)):
            for mode, seconds in (("idle", now - busy), ("system", busy * 0.2), ("user", busy * 0.8)):
                yield freeze({"__name__": "node_cpu_seconds_total", **who, "cpu": str(core), "mode": mode}), seconds

    def _nodes(self, now: float) -> Iterator[Row]:
        for node in self._cluster.nodes.names:
            cores, memory = self._usage.node(node)
            who = {"job": "node-exporter", "instance": f"{node}:9100", "node": node}
            total = MEMORY_KI * 1024.0
            yield freeze({"__name__": "node_load1", **who}), cores
            yield from self._cpu(who, node, now)
            yield freeze({"__name__": "node_memory_MemTotal_bytes", **who}), total
            yield freeze({"__name__": "node_memory_MemAvailable_bytes", **who}), total - memory * 2**20
            yield (
                freeze({"__name__": "machine_cpu_cores", "job": "kubelet", "instance": f"{node}:10250", "node": node}),
                CORES,
            )
            for job, port in (("kubelet", 10250), ("node-exporter", 9100)):
                yield freeze({"__name__": "up", "job": job, "instance": f"{node}:{port}", "node": node}), 1.0
