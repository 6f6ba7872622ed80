"""Nets and experiments that several flow tests share: the published retry experiment, its repairs and decoys, random nets."""

from math import inf

import numpy as np
from hypothesis import strategies as st

from itbench.world.flow import Edge, Flow, FlowSpec, Station

LOAD, CAPACITY = 620.0, 1000.0
QUADRUPLE = {"a": (0.44, 10.0, 1.0), "b": (0.40, 10.0, 1.0), "c": (0.40, 9.0, 1.0), "d": (0.40, 10.0, 0.68)}
"""Fraction of the capacity during the cut, its length (s), load: OSDI'22 section 5.2 in the calibration of docs/physics.md."""


def shop(queue_s=10.0, retries=4, timeout_s=3.0, budget=-1.0):
    """Frontend (utilisation 0.3) calls checkout (2 pods, 1000 calls a second together, room for 4)."""
    return FlowSpec(
        (Station("frontend", 2), Station("checkout", 4, queue=queue_s * CAPACITY / 2)),
        (
            Edge("buy", -1, 0, 0.6 / LOAD, timeout_s=20.0),
            Edge("place", 0, 1, 2 / CAPACITY, timeout_s=timeout_s, retries=retries, max_retries=4, budget=budget),
        ),
    )


def start(spec, rates=None, pods=None, **options):
    """A net with pods ready (all, or as many per station as `pods` says) and journeys running."""
    flow = Flow(spec, **options)
    for s, station in enumerate(spec.stations):
        for slot in range(station.slots if pods is None else pods[s]):
            flow.set_ready(s, slot, 1.0)
    for e, rate in (rates or {}).items():
        flow.set_rate(e, rate)
    return flow


def cut(flow, factor, station=1):
    for slot in range(flow.spec.stations[station].slots):
        flow.set_capacity(station, slot, factor)


def kill(flow, *slots):
    for slot in slots:
        flow.set_ready(1, slot, 0.0)
        flow.reset(1, slot)


def up(flow, *slots):
    for slot in slots:
        flow.set_ready(1, slot, 1.0)


def bound(flow, requests):
    for slot in range(4):
        flow.set_queue(1, slot, requests)


def success(flow, start_s, end_s, acts=(), edge=0):
    """Share of the calls issued in a window that are answered in it, while acts (time, function of the flow) happen."""
    play(flow, start_s, acts)
    ok, first = flow.counter("ok")[edge], flow.counter("first")[edge]
    play(flow, end_s, acts)
    return (flow.counter("ok")[edge] - ok) / max(flow.counter("first")[edge] - first, 1e-9)


def play(flow, until, acts):
    """Run to `until`; acts that are due happen once (those at or after now)."""
    for t, act in sorted((x for x in acts if flow.now <= x[0] < until), key=lambda x: x[0]):
        flow.advance(t)
        act(flow)
    flow.advance(until)


def pulse(t, length, factor=0.40):
    return [(t, lambda f: cut(f, factor)), (t + length, lambda f: cut(f, 1.0))]


def _rate(x):
    return lambda f: f.set_rate(0, x * LOAD)


_SURGE = [(128, lambda f: (up(f, 2), kill(f, 0))), (136, lambda f: (up(f, 3), kill(f, 1)))]

REPAIRS = {
    "nothing": ("slo", []),
    "rolling restart with surge": ("slo", _SURGE),
    "one pod at a time": (
        "slo",
        [(120, lambda f: kill(f, 0)), (128, lambda f: (up(f, 0), kill(f, 1))), (136, lambda f: up(f, 1))],
    ),
    "delete both": ("challenge", [(120, lambda f: kill(f, 0, 1)), (128, lambda f: up(f, 0, 1))]),
    "scale to 0, then 2": ("challenge", [(120, lambda f: kill(f, 0, 1)), (150, lambda f: up(f, 0, 1))]),
    "shed 20 % for 120 s": ("slo", [(120, _rate(0.8)), (240, _rate(1))]),
    "shed to 15 % for 30 s": ("challenge", [(120, _rate(0.15)), (150, _rate(1))]),
    "shed to 5 % for 60 s": ("challenge", [(120, _rate(0.05)), (180, _rate(1))]),
    "shed deep, retries 0, restore in steps": (
        "pass",
        [(120, lambda f: (f.set_rate(0, 0.05 * LOAD), f.set_edge(1, retries=0))), (180, _rate(0.5)), (210, _rate(1))],
    ),
    "limit at the edge, retries 0, lift": (
        "pass",
        [(120, lambda f: (f.set_admission(0, 31.0), f.set_edge(1, retries=0))), (180, lambda f: f.set_admission(0))],
    ),
    "retries 0": ("pass", [(120, lambda f: f.set_edge(1, retries=0))]),
    "retry budget 10 %": ("pass", [(120, lambda f: f.set_edge(1, budget=0.1))]),
    "retries 1": ("slo", [(120, lambda f: f.set_edge(1, retries=1))]),
    "scale 2 to 3": ("slo", [(128, lambda f: up(f, 2))]),
    "scale 2 to 4": ("pass", [(128, lambda f: up(f, 2, 3))]),
    "bound 2 s and restart": ("pass", [(120, lambda f: bound(f, CAPACITY)), *_SURGE]),
    "bound 2 s": ("pass", [(120, lambda f: bound(f, CAPACITY))]),
    "timeout 6 s": ("slo", [(120, lambda f: f.set_edge(1, timeout_s=6.0))]),
}
"""Name: verdict, acts. Trigger at 60 s, repair at 120 s, judged at 260 s; trigger again at 300 and 340 s, judged at 390 s."""


def verdict(acts, queue_s=10.0, step_s=0.0):
    """slo = still down before the replay, challenge = down after it, pass = up."""
    flow = start(shop(queue_s), {0: LOAD}, pods=(2, 2), step_s=step_s)
    acts = [*acts, *pulse(60, 10), *pulse(300, 10), *pulse(340, 10)]
    before = success(flow, 260, 295, acts)
    after = success(flow, 390, 415, acts)
    assert leak(flow) < 1e-6
    return "slo" if before < 0.99 else "challenge" if after < 0.99 else "pass"


def leak(flow):
    """Largest share of calls that are neither answered, failed nor under way."""
    lost = flow.counter("first") - flow.counter("ok") - flow.counter("failed") - flow.waiting()
    return float((np.abs(lost) / np.maximum(flow.counter("attempts"), 1.0)).max())


@st.composite
def nets(draw, budgets=True):
    """A random tree of calls over 2 to 5 stations, and the rate that loads its busiest station to a drawn utilisation."""
    share = st.floats(0.0, 1.0)
    n = draw(st.integers(2, 5))
    pods = [draw(st.integers(1, 3)) for _ in range(n)]
    queue = draw(st.sampled_from([inf, 40.0, 200.0]))
    stations = tuple(Station(f"s{i}", pods[i], concurrency=draw(st.integers(1, 4)), queue=queue) for i in range(n))
    edges, calls = [], []
    for i in range(draw(st.integers(n, 7))):
        parent = -1 if i == 0 else draw(st.integers(0, i - 1))
        if parent >= 0 and edges[parent].station == n - 1:
            parent = 0
        low = 0 if parent < 0 else edges[parent].station + 1
        edges.append(
            Edge(
                f"e{i}", parent, draw(st.integers(low, n - 1)) if parent >= 0 else 0, 0.002 + 0.02 * draw(share),
                timeout_s=inf if parent < 0 else draw(st.sampled_from([0.5, 1.0, 3.0])), retries=draw(st.integers(0, 2)),
                backoff_s=draw(st.sampled_from([0.0, 0.1, 1.0])), calls=draw(st.sampled_from([0.3, 1.0, 2.0])),
                soft=draw(st.booleans()), budget=draw(st.sampled_from([-1.0, 0.1])) if budgets else -1.0,
                join=draw(st.booleans()), retry_errors=draw(st.booleans()),
            )
        )  # fmt: skip
        calls.append(1.0 if parent < 0 else calls[parent] * edges[i].calls)
    load = max(sum(calls[i] * e.work_s for i, e in enumerate(edges) if e.station == s) / pods[s] for s in range(n))
    return FlowSpec(stations, tuple(edges)), draw(st.floats(0.2, 0.8)) / load
