"""How world time passes for those who ask, and what time it is on the wire."""

import pytest

from itbench.core.clock import unix
from itbench.core.errors import UsageError
from itbench.kube.client import Client
from itbench.kube.door import Pacer
from itbench.world.estate import World
from itbench.world.pace import WorldPacer


class Wall:
    """A wall clock that a test moves."""

    def __init__(self) -> None:
        self.at = 1_800_000_000.25

    def __call__(self) -> float:
        return self.at


def test_a_world_pacer_is_a_pacer(world: World) -> None:
    pacer: Pacer = WorldPacer(world, wall=Wall())
    assert pacer.now() == world.now


@pytest.mark.parametrize(("mode", "rate", "expected"), [("live", 1.0, 10.0), ("scaled", 6.0, 60.0)])
def test_the_world_follows_the_wall_when_somebody_asks(world: World, mode: str, rate: float, expected: float) -> None:
    wall, start = Wall(), world.now
    pacer = WorldPacer(world, mode, rate, wall=wall)  # type: ignore[arg-type]
    wall.at += 10
    assert world.now == start
    pacer.enter(outside=True, free=False)
    assert world.now == pytest.approx(start + expected)


def test_in_stepped_mode_each_paid_request_costs_a_step(world: World) -> None:
    wall, start = Wall(), world.now
    pacer = WorldPacer(world, "stepped", step_s=5.0, wall=wall)
    wall.at += 1000
    pacer.enter(outside=True, free=True)
    assert world.now == start
    pacer.enter(outside=True, free=False)
    assert world.now == start + 5
    with pacer.tool_call():
        pacer.enter(outside=True, free=False)
        pacer.enter(outside=False, free=False)
    assert world.now == start + 10


def test_a_standing_clock_moves_only_by_settling_and_by_passing_time(world: World, kubectl: Client) -> None:
    wall, start = Wall(), world.now
    pacer = WorldPacer(world, wall=wall, standing=True)
    wall.at += 50
    pacer.enter(outside=True, free=False)
    assert world.now == start
    kubectl.patch("deployments.apps", "api", "toy", {"spec": {"replicas": 3}})
    pacer.settle()
    assert start < world.now < start + 30
    assert kubectl.get("deployments.apps", "api", "toy")["status"]["readyReplicas"] == 3
    pacer.pass_time(60)
    assert world.now > start + 60
    pacer.go()
    since = world.now
    wall.at += 7
    pacer.enter(outside=True, free=True)
    assert world.now == pytest.approx(since + 7)


def test_wire_now_is_wall_now_and_times_come_back_as_they_went(world: World) -> None:
    wall = Wall()
    pacer = WorldPacer(world, wall=wall)
    assert pacer.to_wire(world.now) == pytest.approx(wall.at, abs=0.5)
    assert pacer.from_wire(pacer.to_wire(12.5)) == pytest.approx(12.5)
    wall.at += 100
    pacer.enter(outside=True, free=False)
    assert pacer.to_wire(world.now) == pytest.approx(wall.at, abs=0.5)


def test_in_stepped_mode_a_clients_now_is_world_now(world: World) -> None:
    wall = Wall()
    pacer = WorldPacer(world, "stepped", wall=wall)
    assert pacer.from_wire(wall.at + 3) == world.now
    assert pacer.from_wire(wall.at - 100) == pytest.approx(world.now - 100, abs=0.5)


async def test_a_blocked_request_moves_a_stepped_world_to_its_next_event(world: World) -> None:
    pacer = WorldPacer(world, "stepped", wall=Wall())
    due = world.next_event()
    await pacer.wait()
    assert world.now == due
    await pacer.wait(world.now + 0.01)
    assert world.now <= due + 0.01


async def test_a_blocked_request_leaves_a_standing_clock_alone(world: World) -> None:
    pacer, start = WorldPacer(world, wall=Wall(), standing=True), world.now
    await pacer.wait()
    assert world.now == start


@pytest.mark.parametrize(("mode", "rate", "step_s"), [("fast", 1.0, 5.0), ("scaled", 0.0, 5.0), ("stepped", 1.0, -1.0)])
def test_a_clock_that_makes_no_sense_is_refused(world: World, mode: str, rate: float, step_s: float) -> None:
    with pytest.raises(UsageError, match="clock"):
        WorldPacer(world, mode, rate, step_s)  # type: ignore[arg-type]


def test_times_on_the_wire_do_not_flicker_while_the_world_lags_a_little(world: World) -> None:
    """Half a second of lag, which is nothing, must not move every creationTimestamp by a second."""
    wall = Wall()
    pacer = WorldPacer(world, "live", wall=wall)
    shown, behind = set(), 0.0
    for lag in (0.0, 0.3, 0.6, 0.2):
        wall.at += 10
        world.advance(world.now + 10 - lag + behind)
        behind = lag
        pacer._note_offset()
        shown.add(pacer.to_wire(0.0))
        assert abs(pacer.to_wire(world.now) - wall.at) < 1.0
    assert len(shown) == 1


def test_containers_know_the_clients_calendar(world: World) -> None:
    """`date` in a container agrees with the timestamps of objects."""
    pacer = WorldPacer(world, "live", wall=Wall())
    assert unix(0.0) + world.main.calendar_ahead_s == pacer.to_wire(0.0)
