"""Speed of the request-flow engine on a net of shop size: microseconds per step and multiple of real time.

Run: python benchmarks/flow.py
"""

import statistics
import time

from itbench.world.flow import Edge, Flow, FlowSpec, Station


def shop_size() -> tuple[FlowSpec, list[float]]:
    """25 stations with 60 pods, 48 edges on five levels, four journeys; utilisation 0.55. Also the rates of the edges."""
    pods = [3] * 10 + [2] * 15
    rows: list[tuple[int, int, float, int, float]] = []  # parent, station, timeout, retries, rate

    def add(parent: int, station: int, timeout_s: float, retries: int) -> int:
        rows.append((parent, station, timeout_s, retries, 30.0 if parent < 0 else rows[parent][4]))
        return len(rows) - 1

    for j in range(4):
        a = add(add(-1, 0, 20.0, 0), 1 + j % 2, 10.0, 1)
        for x in range(2):
            b = add(a, 3 + (3 * j + x) % 7, 3.0, 4 if j + x == 0 else 1)
            for y in range(2):
                add(add(b, 10 + (5 * j + 2 * x + y) % 9, 2.0, 1), 19 + (j + x + y) % 6, 1.0, 0)
    load = [sum(r[4] for r in rows if r[1] == s) for s in range(25)]
    edges = [
        Edge(f"e{i}", p, s, 0.55 * pods[s] / load[s], timeout_s=t, retries=n) for i, (p, s, t, n, _) in enumerate(rows)
    ]
    return FlowSpec(tuple(Station(f"s{i}", n, queue=200) for i, n in enumerate(pods)), tuple(edges)), [
        r[4] for r in rows
    ]


def start(spec: FlowSpec, rates: list[float], step_s: float) -> Flow:
    """All pods ready, all journeys running, at rest."""
    flow = Flow(spec, step_s=step_s)
    for s, station in enumerate(spec.stations):
        for slot in range(station.slots):
            flow.set_ready(s, slot, 1.0)
    for e, edge in enumerate(spec.edges):
        if edge.parent < 0:
            flow.set_rate(e, rates[e])
    flow.advance(30.0)
    return flow


def measure(flow: Flow, seconds: float) -> float:
    """Median processor seconds of three runs of `seconds` world seconds."""
    times = []
    for _ in range(3):
        begin = time.process_time()
        flow.advance(flow.now + seconds)
        times.append(time.process_time() - begin)
    return statistics.median(times)


def main() -> None:
    """Print one line per case."""
    spec, rates = shop_size()
    for name, step_s, cut in (
        ("at rest", 0.1, 1.0),
        ("overload", 0.1, 0.2),
        ("at rest", 0.0, 1.0),
        ("overload", 0.0, 0.2),
    ):
        flow = start(spec, rates, step_s)
        for slot in range(spec.stations[3].slots):
            flow.set_capacity(3, slot, cut)
        before, seconds = flow.steps, 30.0 if step_s else 120.0
        cpu = measure(flow, seconds)
        steps = (flow.steps - before) / 3
        kind = f"{step_s} s" if step_s else "adaptive"
        print(f"{name:9} step {kind:8} {1e6 * cpu / steps:6.0f} us a step, {seconds / cpu:8.0f} x real time")


if __name__ == "__main__":
    main()
