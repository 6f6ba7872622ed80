"""Readouts of the flow in whole requests: undoes the grain of stations. Probes, usage and metrics read it."""

import numpy as np
from numpy.typing import NDArray

from itbench.world.flow.engine import Flow
from itbench.world.wiring import Net

Floats = NDArray[np.float64]


class Meter:
    """Counters, buckets and pods of a flow.

    Args:
        flow: the engine.
        net: its legend.
    """

    def __init__(self, flow: Flow, net: Net) -> None:
        self._flow = flow
        self._edges = np.array([net.grains[link.workload] for link in net.links])
        self._stations = [net.grains[workload] for workload in net.stations]

    def counters(self) -> dict[str, Floats]:
        """Cumulative counts by edge, as `Flow.counters`."""
        return {name: values / self._edges for name, values in self._flow.counters().items()}

    def latency_buckets(self, *, server: bool = False) -> Floats:
        """Cumulative calls per bucket, as `Flow.latency_buckets`."""
        return np.asarray(self._flow.latency_buckets(server=server) / self._edges[:, None])

    def pods(self, station: int) -> dict[str, Floats]:
        """Arrays by slot, as `Flow.pods`; amounts of requests in whole requests."""
        found = dict(self._flow.pods(station))
        for name in ("served", "backlog_requests", "in_flight"):
            found[name] = found[name] / self._stations[station]
        return found

    def lag(self, edge: int) -> float:
        """Calls that a broker holds for a queued edge."""
        return float(self._flow.lag(edge) / self._edges[edge])
