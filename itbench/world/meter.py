"""Readouts of the flow in whole requests: undoes the grain of its edges. Probes, usage and metrics read it."""

import numpy as np
from numpy.typing import NDArray

from itbench.core.documents.app import App
from itbench.world.flow.engine import Flow
from itbench.world.wiring import Net

Floats = NDArray[np.float64]


class Meter:
    """Counters, buckets and pods of a flow.

    Args:
        flow: the engine.
        net: its legend.
        app: service times, for the length of queues.
    """

    def __init__(self, flow: Flow, net: Net, app: App) -> None:
        self._flow = flow
        self._grain = np.array([link.grain for link in net.links])
        self._edges = [[x.index for x in net.links if x.workload == workload] for workload in net.stations]
        self._mean_s = []
        for workload in net.stations:
            operations = app.services[workload].operations.values()
            self._mean_s.append(sum(each.service_ms for each in operations) / 1000 / max(len(operations), 1))

    def counters(self) -> dict[str, Floats]:
        """Cumulative counts by edge, as `Flow.counters`."""
        return {name: values / self._grain for name, values in self._flow.counters().items()}

    def latency_buckets(self, *, server: bool = False) -> Floats:
        """Cumulative calls per bucket, as `Flow.latency_buckets`."""
        return np.asarray(self._flow.latency_buckets(server=server) / self._grain[:, None])

    def pods(self, station: int) -> dict[str, Floats]:
        """Arrays by slot: `cpu_s` (busy seconds of workers) and `served` (requests), cumulative; `queued` requests now."""
        busy = self._flow.busy_s(station)
        served = np.zeros(len(busy))
        for edge in self._edges[station]:
            served += self._flow.answered(edge) / self._grain[edge]
        return {"cpu_s": busy, "served": served, "queued": self.queued(station)}

    def queued(self, station: int) -> Floats:
        """Requests in the queue of every slot now."""
        return np.asarray(self._flow.backlog_s(station) / self._mean_s[station])

    def lag(self, edge: int) -> float:
        """Calls that a broker holds for a queued edge."""
        return float(self._flow.lag(edge) / self._grain[edge])
