"""Without trouble the engine is queueing theory: M/M/c, Little's law, latencies of simple nets."""

from math import factorial

import numpy as np
import pytest

from itbench.world.flow import Edge, FlowSpec, Station

FINE = tuple(np.geomspace(2e-3, 30, 90))


def sojourn(c, rho, work):
    """Mean time in an M/M/c system."""
    a = c * rho
    tail = a**c / factorial(c) / (1 - rho)
    wait = tail / (sum(a**k / factorial(k) for k in range(c)) + tail)
    return work + wait * work / (c * (1 - rho))


@pytest.mark.parametrize("step_s", [0.05, 1.0])
@pytest.mark.parametrize(
    ("c", "rho"), [(1, 0.3), (1, 0.62), (1, 0.9), (1, 0.95), (2, 0.62), (2, 0.9), (4, 0.9), (8, 0.9)]
)
def test_steady_state_is_mmc(lab, c, rho, step_s):
    """Mean sojourn within 0.1 % of M/M/c, and L = lambda W."""
    work, rate = 0.02, rho * c / 0.02
    spec = FlowSpec((Station("s", 1, concurrency=c, capacity_cpu=c),), (Edge("e", -1, 0, work),))
    flow = lab.start(spec, {0: rate}, step_s=step_s)
    flow.advance(60)
    pod = flow.pods(0)
    assert pod["age_s"][0] == pytest.approx(sojourn(c, rho, work), rel=1e-3)
    assert pod["backlog_requests"][0] == pytest.approx(rate * pod["age_s"][0], rel=1e-3)
    assert pod["cpu_s"][0] == pytest.approx(60 * c * rho, rel=0.01)


def test_response_times_of_one_station_are_exponential(lab):
    """M/M/1 sojourn quantiles against the closed form."""
    spec = FlowSpec((Station("s", 1),), (Edge("e", -1, 0, 0.02),))
    flow = lab.start(spec, {0: 35.0}, bounds_s=FINE)
    flow.advance(60)
    since = flow.latency_buckets()[0]
    flow.advance(120)
    mean = sojourn(1, 0.7, 0.02)
    for q in (0.5, 0.95, 0.99):
        assert flow.quantile(0, q, since) == pytest.approx(-mean * np.log(1 - q), rel=0.03)


def test_less_variable_work_waits_less(lab):
    """Constant work halves the waiting time (Pollaczek-Khinchine)."""
    spec = FlowSpec((Station("s", 1, scv=0.0),), (Edge("e", -1, 0, 0.02),))
    flow = lab.start(spec, {0: 40.0})
    flow.advance(60)
    assert flow.pods(0)["age_s"][0] == pytest.approx(0.02 + 0.5 * 0.8 * 0.02 / 0.2, rel=0.02)


def test_chain_adds_and_fan_out_takes_the_slowest(lab):
    """Sequential calls add their means; parallel ones cost the mean of the largest (exact for exponentials)."""
    stations = tuple(Station(f"s{i}", 2) for i in range(3))
    root = Edge("root", -1, 0, 0.01)
    means = {}
    for name, after in (("parallel", -1), ("sequence", 1)):
        spec = FlowSpec(stations, (root, Edge("a", 0, 1, 0.012), Edge("b", 0, 2, 0.012, after=after)))
        flow = lab.start(spec, {0: 100.0})
        flow.advance(60)
        means[name] = flow.mean_latency_s()
    own, one = sojourn(1, 0.5, 0.01), sojourn(1, 0.6, 0.012)
    assert means["sequence"][0] == pytest.approx(own + 2 * one, rel=0.01)
    assert means["parallel"][0] == pytest.approx(own + 1.5 * one, rel=0.02)
    assert means["sequence"][1] == pytest.approx(one, rel=0.01)


def test_network_delay_is_part_of_latency_and_of_timeouts(lab):
    """A delay adds to the response time; one beyond the timeout makes every attempt time out while the callee works."""
    spec = FlowSpec(
        (Station("a", 1), Station("b", 1)), (Edge("root", -1, 0, 0.001), Edge("call", 0, 1, 0.001, timeout_s=1.0))
    )
    flow = lab.start(spec, {0: 50.0})
    flow.set_edge(1, delay_s=0.3)
    flow.advance(30)
    assert flow.mean_latency_s()[0] == pytest.approx(0.3 + 2 * sojourn(1, 0.05, 0.001), rel=0.01)
    assert flow.quantile(0, 0.5) == pytest.approx(0.3, abs=0.2)
    served = flow.pods(1)["served"][0]
    flow.set_edge(1, delay_s=1.5)
    assert lab.success(flow, 40, 60) < 1e-6
    assert flow.pods(1)["served"][0] - served == pytest.approx(50 * 30, rel=0.05)
