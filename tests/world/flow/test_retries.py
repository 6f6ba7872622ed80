"""Retry storms: the published experiments, what repairs them and what does not, thresholds, hysteresis, layers."""

import pytest

from itbench.world.flow import Edge, FlowSpec, Station


@pytest.mark.parametrize("step_s", [0.0, 0.1])
@pytest.mark.parametrize(("case", "recovers"), [("a", True), ("b", False), ("c", True), ("d", True)])
def test_published_quadruple(lab, case, recovers, step_s):
    """A cut to 0.44 for 10 s, to 0.40 for 9 s, or at 0.68 of the load heals by itself; to 0.40 for 10 s it stays down."""
    fraction, length, load = lab.QUADRUPLE[case]
    flow = lab.start(lab.shop(), {0: lab.LOAD * load}, pods=(2, 2), step_s=step_s)
    assert lab.success(flow, 30, 59) > 0.999
    share = lab.success(flow, 120, 155, lab.pulse(60, length, fraction))
    assert share > 0.99 if recovers else share < 0.05
    assert lab.leak(flow) < 1e-9


@pytest.mark.parametrize("name", list(range(18)))
def test_repairs_and_decoys(lab, name):
    """Every repair of the checkout collapse holds when the trigger is replayed; every decoy fails where it should."""
    title, (expected, acts) = list(lab.REPAIRS.items())[name]
    assert lab.verdict(acts) == expected, title


@pytest.mark.parametrize(("queue_s", "expected"), [(10.0, "slo"), (5.0, "pass"), (3.5, "pass")])
def test_longer_timeout_helps_only_with_a_short_queue(lab, queue_s, expected):
    """Raising the client timeout to 6 s repairs the collapse where the queue holds less than that."""
    assert lab.verdict([(120, lambda f: f.set_edge(1, timeout_s=6.0))], queue_s=queue_s) == expected


@pytest.mark.parametrize("step_s", [0.2, 0.1, 0.05])
@pytest.mark.parametrize("name", ["delete both", "retries 1", "bound 2 s", "shed to 15 % for 30 s"])
def test_verdicts_do_not_depend_on_the_step(lab, name, step_s):
    """A fixed step of 50 to 200 ms gives the verdict of the adaptive one."""
    expected, acts = lab.REPAIRS[name]
    assert lab.verdict(acts, step_s=step_s) == expected


@pytest.mark.parametrize(("load", "recovers"), [(0.15, True), (0.19, True), (0.22, False), (0.3, False), (0.7, False)])
def test_hysteresis_and_threshold(lab, load, recovers):
    """After a deep cut only load below C / (1 + R) = 0.2 comes back; before it every one of these loads ran well."""
    flow = lab.start(lab.shop(), {0: lab.CAPACITY * load}, pods=(2, 2))
    assert lab.success(flow, 30, 59) > 0.999
    share = lab.success(flow, 380, 399, lab.pulse(60, 30, 0.1))
    assert share > 0.99 if recovers else share < 0.5


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_layered_retries_multiply(lab, depth):
    """Two retries on each of `depth` layers make 3, 9, 27 attempts at a dead leaf."""
    edges = [Edge("root", -1, 0, 0.0005)]
    edges += [Edge(f"e{i}", i, i + 1, 0.0005, timeout_s=5.0, retries=2) for i in range(depth)]
    spec = FlowSpec(tuple(Station(f"s{i}", 2) for i in range(depth + 1)), tuple(edges))
    flow = lab.start(spec, {0: 10.0}, pods=[2] * depth + [0], step_s=0.05)
    flow.advance(20)
    before = flow.counter("attempts")[depth]
    flow.advance(30)
    assert (flow.counter("attempts")[depth] - before) / 100 == pytest.approx(3**depth, rel=0.005)


def test_retry_budget_bounds_the_work(lab):
    """With every call failing, a budget of 10 % adds at most 10 % of the successes before plus what the bucket held."""
    flow = lab.start(lab.shop(budget=0.1), {0: 100.0}, pods=(2, 2))
    flow.advance(60)
    flow.set_fault(1, 1.0)
    before = flow.counter("retried")[1]
    flow.advance(120)
    assert flow.counter("retried")[1] - before == pytest.approx(100.0, rel=1e-6)
