"""The clock of account trials: stands until hand-over, then follows its mode."""

import pytest

from itbench.core.errors import UsageError
from itbench.run.account_clock import AccountClock


class Wall:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def test_it_stands_while_staging_and_after_submission():
    wall = Wall()
    clock = AccountClock("live", 1000.0, wall)
    wall.now += 50
    assert clock.now() == 1000.0
    clock.go()
    wall.now += 7
    clock.stand()
    wall.now += 50
    assert clock.now() == 1007.0


def test_a_scaled_clock_runs_faster_than_the_wall():
    wall = Wall()
    clock = AccountClock("scaled:60", 0.0, wall)
    clock.go()
    wall.now += 2
    assert clock.now() == 120.0


def test_a_stepped_clock_moves_with_tool_calls_and_requests_from_outside_only():
    wall, steps = Wall(), []
    clock = AccountClock("stepped:5", 0.0, wall)
    clock.on_step = lambda: steps.append(1)
    clock.go()
    wall.now += 1000
    with clock.tool_call(), clock.request(True):
        assert (clock.now(), len(steps)) == (5.0, 0)
    with clock.request(True):
        assert (clock.now(), len(steps)) == (10.0, 1)


def test_an_unknown_mode_is_refused():
    with pytest.raises(UsageError):
        AccountClock("warp", 0.0)
