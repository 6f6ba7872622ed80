"""The trial state machine."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from itbench.core.causes import TABLE as CAUSES
from itbench.core.causes import Cause, rule
from itbench.run.machine import TABLE, Action, Event, State, Trial, WrongEvent, advance

FORWARD = [
    Event.STARTED,
    Event.GATE_REACHED,
    Event.BASELINE_GREEN,
    Event.INJECTED,
    Event.SYMPTOM_SEEN,
    Event.HANDED_OVER,
    Event.SUBMITTED,
    Event.SETTLED,
    Event.CHALLENGED,
    Event.GRADED,
]


def test_the_undisturbed_life_of_a_trial_ends_recorded_once():
    trial, done = Trial(), []
    for event in FORWARD:
        trial, actions = advance(trial, event)
        done += actions
    assert trial == Trial(state=State.DONE)
    assert done.count(Action.RECORD) == 1 and done[-1] is Action.RECORD


def test_every_state_but_the_last_has_exactly_one_way_forward_besides_checkpoint_and_resumption():
    ways = {state: [event for source, event in TABLE if source is state] for state in State}
    assert ways.pop(State.DONE) == []
    assert ways.pop(State.NEW) == [Event.STARTED, Event.RESTORED, Event.RESUMED_SUBMITTED, Event.RESUMED_SETTLED]
    assert all(len(events) == 1 for events in ways.values())


def test_the_table_of_causes_is_total_and_an_unknown_cause_is_never_valid():
    assert set(CAUSES) == set(Cause)
    assert rule("never-heard-of").outcome == "invalid" and not rule("never-heard-of").valid


@given(st.lists(st.sampled_from([str(cause) for cause in Cause]), min_size=1, max_size=12))
def test_failures_are_retried_exactly_as_often_as_their_cause_says_and_then_recorded(causes):
    trial, restarts = Trial(), []
    for cause in causes:
        if trial.state is State.DONE:
            break
        trial, actions = advance(advance(trial, Event.STARTED)[0], Event.FAILED, cause=cause)
        if actions == (Action.RESTART,):
            restarts.append(cause)
            assert trial.state is State.NEW
        else:
            assert actions == (Action.RECORD,) and trial.cause == cause
            assert restarts.count(cause) == rule(cause).retries
    assert all(restarts.count(cause) <= rule(cause).retries for cause in restarts)


def test_the_agents_end_becomes_the_cause_of_the_trial():
    trial = Trial(state=State.AGENT)
    trial, actions = advance(trial, Event.SUBMITTED, cause="step_limit", detail="80 steps used")
    assert (trial.cause, trial.detail, actions) == ("step_limit", "80 steps used", (Action.SETTLE,))


@pytest.mark.parametrize("event", [Event.SUBMITTED, Event.GRADED, Event.GATE_REACHED])
def test_an_event_out_of_place_is_a_mistake_of_the_runner(event):
    with pytest.raises(WrongEvent, match=f"{event} in state new"):
        advance(Trial(), event)
