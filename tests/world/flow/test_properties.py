"""Laws that hold for every net: conservation, monotonicity, stability theorems, exact checkpoints."""

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from itbench.core import codec
from itbench.world.flow import Flow

LAW = settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def disturb(lab, flow, station, factor, length):
    """Run to 10 s, cut a station, run on to 60 s; answered share of the last 10 s."""
    flow.advance(10)
    lab.cut(flow, factor, station)
    flow.advance(10 + length)
    lab.cut(flow, 1.0, station)
    return lab.success(flow, 50, 60)


@LAW
@given(data=st.data())
def test_no_call_is_lost(lab, data):
    """First calls = answered + failed + under way, through a cut, a dead pod and a slow one, on any net."""
    spec, rate = data.draw(lab.nets())
    station = data.draw(st.integers(0, len(spec.stations) - 1))
    flow = lab.start(spec, {0: rate})
    flow.advance(5)
    flow.reset(station, 0)
    disturb(lab, flow, station, data.draw(st.sampled_from([0.0, 0.2, 0.6])), data.draw(st.floats(1, 20)))
    assert lab.leak(flow) < 1e-7
    for s in range(len(spec.stations)):
        pods = flow.pods(s)
        assert (pods["rho"] <= 1).all() and (pods["backlog_s"] >= 0).all() and (pods["in_flight"] >= 0).all()
    assert (flow.counter("attempts") + 1e-6 >= flow.counter("ok")).all()


@LAW
@given(data=st.data())
def test_more_harm_is_never_better(lab, data):
    """A deeper or longer cut, or more load, never ends with a better success share (random shops)."""
    load, depth = data.draw(st.floats(0.3, 0.9)), data.draw(st.floats(0.1, 0.7))
    length, retries = data.draw(st.floats(2, 20)), data.draw(st.integers(0, 4))

    def end(load, depth, length, retries):
        flow = lab.start(lab.shop(retries=retries), {0: load * lab.CAPACITY}, pods=(2, 2))
        return disturb(lab, flow, 1, depth, length)

    base = end(load, depth, length, retries)
    harder = data.draw(st.sampled_from(["load", "depth", "length", "retries"]))
    worse = {"load": (min(load + 0.05, 0.95), depth, length, retries), "depth": (load, depth * 0.8, length, retries),
             "length": (load, depth, length + 3, retries), "retries": (load, depth, length, min(retries + 1, 4))}  # fmt: skip
    assert end(*worse[harder]) <= base + 0.02


@LAW
@given(load=st.floats(0.1, 0.9), retries=st.integers(0, 4), depth=st.floats(0.05, 0.9))
def test_stability_theorems(lab, load, retries, depth):
    """No overload, no collapse (T1); below C / (1 + R) every trigger of 20 s heals once the backlog has drained (T2)."""
    flow = lab.start(lab.shop(retries=retries), {0: load * lab.CAPACITY}, pods=(2, 2))
    if depth > load * 1.1:
        assert disturb(lab, flow, 1, depth, 20) > 0.98
    elif load * (1 + retries) < 0.95:
        flow.advance(10)
        lab.cut(flow, depth)
        flow.advance(30)
        lab.cut(flow, 1.0)
        assert lab.success(flow, 500, 520) > 0.98


@LAW
@given(data=st.data())
def test_a_checkpoint_continues_bit_for_bit(lab, data):
    """Saved in mid-transient, packed to bytes, loaded into a new net: every number that follows is the same."""
    spec, rate = data.draw(lab.nets())
    flow = lab.start(spec, {0: rate})
    flow.advance(8)
    lab.cut(flow, 0.2, len(spec.stations) - 1)
    flow.advance(8 + data.draw(st.floats(0.1, 6)))
    other = Flow(spec)
    other.load(codec.loads(codec.dumps(flow.save())))
    for one in (flow, other):
        lab.cut(one, 1.0, len(spec.stations) - 1)
        one.advance(40)
    assert all(np.array_equal(a, b) for a, b in zip(flow.save().values(), other.save().values(), strict=True))


def test_the_same_run_twice_is_the_same(lab):
    """No hidden state: two runs of a collapse agree in every bit."""
    ends = []
    for _ in range(2):
        flow = lab.start(lab.shop(), {0: lab.LOAD}, pods=(2, 2))
        lab.success(flow, 60, 100, lab.pulse(30, 10))
        ends.append(flow.save())
    assert all(np.array_equal(ends[0][k], ends[1][k]) for k in ends[0])
