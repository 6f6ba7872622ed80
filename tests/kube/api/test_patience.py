"""When a blocked request may move a stepped world."""

from itbench.kube.api.door import PUSH_S, REST_S, Patience
from itbench.kube.door import StandingPacer


class Wall:
    """A wall clock moved by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_client_that_was_told_something_reacts_before_its_request_moves_the_world():
    wall = Wall()
    patience = Patience(StandingPacer(), wall)
    assert not patience.pushes(), "a request has just been answered with what there was"
    wall.now += REST_S
    assert patience.pushes()
    patience.told()
    assert not patience.pushes()
    wall.now += REST_S
    assert patience.pushes()


def test_a_request_that_nobody_takes_back_stops_pushing_the_world_ahead():
    wall, pacer = Wall(), StandingPacer()
    patience = Patience(pacer, wall)
    wall.now += REST_S
    pacer.at = PUSH_S
    assert patience.pushes()
    pacer.at = PUSH_S + 10.0
    assert not patience.pushes()
