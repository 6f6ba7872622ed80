"""Request flow: queues, retries, timeouts and latencies of all calls between pods.

`spec` describes a net, `engine.Flow` runs it. Importing this package is light; numba loads when an engine first advances.
"""

from itbench.world.flow.engine import Flow, warm
from itbench.world.flow.spec import Edge, FlowSpec, Station

__all__ = ["Edge", "Flow", "FlowSpec", "Station", "warm"]
