"""Every lever does what its name says, and what goes in comes out."""

from math import inf

import numpy as np
import pytest

from itbench.core.errors import ScenarioDefect, UsageError
from itbench.world.flow import Edge, Flow, FlowSpec, Station

A, B, C = Station("a", 2), Station("b", 2), Station("c", 2)
ROOT = Edge("root", -1, 0, 0.001)


def gain(flow, name, seconds):
    before = flow.counter(name)
    flow.advance(flow.now + seconds)
    return flow.counter(name) - before


@pytest.mark.parametrize(("kind", "counter"), [("error", "errors"), ("refuse", "rejected"), ("hang", "timed_out")])
def test_a_fault_fails_its_share(lab, kind, counter):
    """A fault on 30 % of the attempts fails 30 % of the calls, in its own counter, and heals at 0."""
    flow = lab.start(FlowSpec((A, B), (ROOT, Edge("call", 0, 1, 0.001, timeout_s=1.0))), {0: 100.0}, step_s=0.1)
    flow.set_fault(1, 0.3, kind)
    flow.advance(10)
    before = flow.counter(counter)[1]
    assert gain(flow, "failed", 10)[0] == pytest.approx(300, rel=0.01)
    assert flow.counter(counter)[1] - before == pytest.approx(300, rel=0.01)
    flow.set_fault(1, 0.0, kind)
    flow.advance(flow.now + 5)
    assert gain(flow, "failed", 10)[0] < 1e-6
    assert lab.leak(flow) < 1e-9


@pytest.mark.parametrize("away", ["no pod ready", "refuse"])
def test_a_child_that_refuses_at_once_takes_no_time_from_a_caller_that_goes_on_without_it(lab, away):
    """What rounding leaves in the queue of a station without traffic does not age, and refusals are not slow."""
    child = Edge("soft", 0, 1, 0.005, timeout_s=6.0, soft=True)
    flow = lab.start(FlowSpec((A, B), (Edge("root", -1, 0, 0.002, timeout_s=30.0), child)), {0: 30.0})
    flow.advance(60)
    if away == "refuse":
        flow.set_fault(1, 1.0, "refuse")
    else:
        for slot in range(2):
            flow.set_ready(1, slot, 0.0)
    flow.advance(75)
    before = flow.latency_buckets()[0]
    for until in (120, 300, 900):
        flow.advance(until)
        assert flow.pods(1)["age_s"].max() == 0.0
    assert flow.quantile(0, 0.99, before) < 0.05
    assert flow.mean_latency_s()[0] < 0.01
    assert gain(flow, "failed", 10)[0] < 1e-6


def test_a_fault_at_one_pod_costs_that_pods_share(lab):
    """Errors of one of two pods fail half of the calls and are counted at that pod; a retry elsewhere halves them again."""
    spec = FlowSpec((A, B), (ROOT, Edge("call", 0, 1, 0.001, timeout_s=1.0, retries=1, backoff_s=0.1)))
    flow = lab.start(spec, {0: 100.0})
    flow.set_fault(1, 1.0, "error", slot=1)
    flow.advance(10)
    assert gain(flow, "failed", 10)[0] == pytest.approx(250, rel=0.01)
    errors = flow.by_slot(1)["errors"]
    assert errors[0] == 0 and errors[1] > 0


def test_refused_calls_cost_the_callee_nothing(lab):
    """Refused and hanging calls use no cpu of the callee, failing ones do."""
    used = {}
    for kind in ("error", "refuse", "hang"):
        flow = lab.start(FlowSpec((A, B), (ROOT, Edge("call", 0, 1, 0.001, timeout_s=1.0))), {0: 100.0})
        flow.set_fault(1, 1.0, kind)
        flow.advance(10)
        used[kind] = flow.pods(1)["cpu_s"].sum()
    assert used["error"] == pytest.approx(1.0, rel=0.05)
    assert used["refuse"] == used["hang"] == 0


def test_admission_turns_away_the_excess(lab):
    """A limit of 30 of 100 calls per second fails 70 at once, without retries and without work."""
    flow = lab.start(FlowSpec((A,), (Edge("root", -1, 0, 0.001, retries=3),)), {0: 100.0})
    flow.set_admission(0, 30.0)
    flow.advance(10)
    assert flow.counter("limited")[0] == flow.counter("failed")[0] == pytest.approx(700)
    assert flow.counter("retried")[0] == 0
    assert flow.counter("attempts")[0] == pytest.approx(300)


def test_soft_children_do_not_fail_their_parent(lab):
    """A dead soft child costs nothing; the same child as a hard one fails every call."""
    for soft in (True, False):
        spec = FlowSpec((A, B), (ROOT, Edge("ads", 0, 1, 0.001, timeout_s=1.0, soft=soft)))
        flow = lab.start(spec, {0: 100.0}, pods=(2, 0))
        flow.advance(10)
        failed = gain(flow, "failed", 10)
        assert failed[0] == pytest.approx(0.0 if soft else 1000.0, abs=1e-3)
        assert failed[1] == pytest.approx(1000, rel=1e-3)


def test_a_slow_soft_child_makes_its_parent_wait(lab):
    """A hanging soft child with a timeout of 2 s leaves the calls successful and two seconds slow."""
    flow = lab.start(FlowSpec((A, B), (ROOT, Edge("ads", 0, 1, 0.001, timeout_s=2.0, soft=True))), {0: 50.0})
    flow.set_fault(1, 1.0, "hang")
    flow.advance(20)
    since = flow.latency_buckets()[0]
    assert gain(flow, "ok", 20)[0] == pytest.approx(1000, rel=0.01)
    assert 1.5 < flow.quantile(0, 0.5, since) < 2.5


def test_share_of_calls_below_one_fails_its_share(lab):
    """When 10 % of the requests call a dead service, 10 % fail and the others do not wait."""
    flow = lab.start(
        FlowSpec((A, B), (ROOT, Edge("rare", 0, 1, 0.001, calls=0.1, timeout_s=1.0))), {0: 100.0}, pods=(2, 0)
    )
    flow.advance(10)
    assert gain(flow, "failed", 10)[0] == pytest.approx(100, rel=0.01)


def test_a_failed_predecessor_stops_the_sequence(lab):
    """What is called after a dead sibling is no longer called, and comes back with it."""
    edges = (ROOT, Edge("pay", 0, 1, 0.001, timeout_s=1.0), Edge("mail", 0, 2, 0.001, timeout_s=1.0, after=1))
    flow = lab.start(FlowSpec((A, B, C), edges), {0: 100.0})
    flow.advance(10)
    assert gain(flow, "first", 10)[2] == pytest.approx(1000, rel=1e-3)
    for slot in (0, 1):
        flow.set_ready(1, slot, 0)
    flow.advance(25)
    assert gain(flow, "first", 10)[2] < 1
    for slot in (0, 1):
        flow.set_ready(1, slot, 1)
    flow.advance(40)
    assert gain(flow, "ok", 10)[[0, 2]] == pytest.approx(1000, rel=1e-3)
    assert lab.leak(flow) < 1e-9


def test_a_broker_holds_what_consumers_cannot_take(lab):
    """Consumers at half the rate build a lag, a stopped one loses nothing, a fast one catches up; the caller never waits."""
    edges = (ROOT, Edge("publish", 0, 1, 0.0005), Edge("consume", 1, 2, 0.01, join=False, queued=True))
    flow = lab.start(FlowSpec((A, B, C), edges), {0: 100.0})
    flow.advance(10)
    assert flow.lag(2) < 1
    flow.set_admission(2, 50.0)
    flow.advance(30)
    assert flow.lag(2) == pytest.approx(1000, rel=0.01)
    flow.set_admission(2)
    for slot in (0, 1):
        flow.set_ready(2, slot, 0)
        flow.reset(2, slot)
    flow.advance(2030)
    assert flow.lag(2) == pytest.approx(201000, rel=0.01)
    for slot in (0, 1):
        flow.set_ready(2, slot, 1)
    flow.advance(4330)
    assert flow.lag(2) < 300
    assert flow.counter("ok")[2] == pytest.approx(433000, rel=1e-3)
    assert flow.counter("failed").sum() == 0
    assert lab.leak(flow) < 1e-9


def test_weights_share_and_no_ready_pod_refuses(lab):
    """Weights 1 and 0.5 give two thirds and one third; with none ready every call is refused at once."""
    flow = lab.start(FlowSpec((A,), (ROOT,)), {0: 90.0})
    flow.set_ready(0, 1, 0.5)
    flow.advance(10)
    served = flow.pods(0)["served"]
    assert served[0] / served[1] == pytest.approx(2.0, rel=1e-3)
    flow.set_ready(0, 0, 0)
    flow.set_ready(0, 1, 0)
    flow.advance(11)
    assert gain(flow, "rejected", 10)[0] == pytest.approx(900)


def test_reset_fails_what_was_open_and_empties_the_pod(lab):
    """A frozen pod's calls fail when it dies and succeed on the other pod where there is a retry."""
    spec = FlowSpec((A, B), (ROOT, Edge("call", 0, 1, 0.001, timeout_s=60.0, retries=1)))
    flow = lab.start(spec, {0: 100.0})
    flow.advance(10)
    flow.set_capacity(1, 0, 0.0)
    flow.advance(20)
    assert flow.pods(1)["in_flight"][0] == pytest.approx(500, rel=0.01)
    flow.set_ready(1, 0, 0)
    flow.reset(1, 0)
    flow.advance(30)
    assert flow.counter("reset")[1] == pytest.approx(500, rel=0.01)
    assert flow.pods(1)["in_flight"][0] == 0
    assert flow.counter("failed")[0] < 1e-3
    assert gain(flow, "ok", 10)[0] == pytest.approx(1000, rel=1e-3)


def test_a_frozen_pod_may_outlive_the_rings(lab):
    """Hours in a full queue lose nothing: old cohorts merge, the number of requests stays right."""
    flow = lab.start(
        FlowSpec((Station("a", 1, queue=5000),), (Edge("e", -1, 0, 0.01, timeout_s=3.0),)), {0: 50.0}, slots=128
    )
    flow.advance(10)
    flow.set_capacity(0, 0, 0.0)
    flow.advance(600)
    assert flow.folded > 0
    assert flow.pods(0)["backlog_requests"][0] == pytest.approx(5000, rel=0.02)
    flow.set_capacity(0, 0, 1.0)
    flow.advance(900)
    assert gain(flow, "ok", 60)[0] == pytest.approx(3000, rel=1e-3)
    assert lab.leak(flow) < 1e-9


def test_shared_stations_add_up(lab):
    """Two journeys over one station: its work is the sum, each keeps its own counters."""
    edges = (Edge("x", -1, 0, 0.001), Edge("y", -1, 0, 0.002), Edge("xb", 0, 1, 0.004), Edge("yb", 1, 1, 0.003))
    flow = lab.start(FlowSpec((A, B), edges), {0: 100.0, 1: 50.0})
    flow.advance(60)
    before = flow.pods(1)["cpu_s"].sum()
    flow.advance(120)
    assert flow.pods(1)["cpu_s"].sum() - before == pytest.approx(60 * (0.4 + 0.15), rel=1e-3)
    assert flow.counter("ok")[2:] == pytest.approx([12000, 6000], rel=2e-3)


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda f: f.set_rate(1, 5.0), "rate of edge call"),
        (lambda f: f.set_ready(1, 2, 1.0), "slot of station b: 2; expected 0 to 1"),
        (lambda f: f.set_ready(1, 0, 1.5), "weight"),
        (lambda f: f.set_edge(1, retries=5), "set max_retries"),
        (lambda f: f.set_edge(1, timeout_s=1e6), "raise slots"),
        (lambda f: f.set_edge(1, work_s=-1.0), "new number of edge call"),
        (lambda f: f.set_fault(0, 0.5, "hang"), "a finite timeout_s"),
        (lambda f: f.set_fault(0, 0.5, "melt"), "kind of fault"),
        (lambda f: f.advance(inf), "finite"),
        (lambda f: f.load({**f.save(), "x": np.zeros(3)}), "array x"),
    ],
)
def test_nonsense_is_one_clear_line(lab, act, text):
    """Levers refuse what makes no sense and say what would."""
    flow = lab.start(FlowSpec((A, B), (ROOT, Edge("call", 0, 1, 0.001, timeout_s=1.0))))
    with pytest.raises(UsageError, match=text) as error:
        act(flow)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("stations", "edges", "text"),
    [
        ((A, B), (ROOT, Edge("x", 0, 1, 0.1), Edge("y", 1, 0, 0.1)), "circle"),
        ((A,), (Edge("x", 3, 0, 0.1),), "parent of edge x"),
        ((A,), (Edge("x", -1, 4, 0.1),), "station of edge x"),
        ((A, B), (ROOT, Edge("x", 0, 1, 0.1, queued=True)), "queued edge x"),
        ((A, B), (ROOT, Edge("x", 0, 1, 0.1, after=0)), "after of edge x"),
        ((A,), (Edge("x", -1, 0, 0.0),), "numbers of edge x"),
        ((Station("z", 0),), (ROOT,), "station z"),
        ((Station("z", 1, concurrency=65),), (ROOT,), "concurrency of station z"),
    ],
)
def test_unsound_nets_are_refused(stations, edges, text):
    """A net that cannot run is a defect that names its part."""
    with pytest.raises(ScenarioDefect, match=text):
        FlowSpec(stations, edges)


def test_rings_must_carry_the_longest_timeout():
    """A timeout longer than the rings is refused when the engine is made."""
    with pytest.raises(UsageError, match="raise slots"):
        Flow(FlowSpec((A,), (Edge("e", -1, 0, 0.1, timeout_s=500.0),)))
