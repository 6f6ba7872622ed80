"""A trial as a state machine: State x Event -> State and the actions to perform. No I/O; `itbench.run.trial` performs.

    new -> staging -> baseline -> injecting -> symptom -> hand_over -> agent -> settling -> challenging -> grading -> done
              (a checkpoint leads from new straight to hand_over; what an attempt that died after the agent's end left behind
              leads to settling or challenging)

A failure leads through the cause table: retried from the start while attempts are left, else recorded as that cause says.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from itbench.core.causes import rule


class State(StrEnum):
    """Where a trial stands."""

    NEW = "new"
    STAGING = "staging"
    BASELINE = "baseline"
    INJECTING = "injecting"
    SYMPTOM = "symptom"
    HAND_OVER = "hand_over"
    AGENT = "agent"
    SETTLING = "settling"
    CHALLENGING = "challenging"
    GRADING = "grading"
    DONE = "done"


class Event(StrEnum):
    """What can happen to a trial."""

    STARTED = "started"
    RESTORED = "restored"
    RESUMED_SUBMITTED = "resumed_submitted"
    RESUMED_SETTLED = "resumed_settled"
    GATE_REACHED = "gate_reached"
    BASELINE_GREEN = "baseline_green"
    INJECTED = "injected"
    SYMPTOM_SEEN = "symptom_seen"
    HANDED_OVER = "handed_over"
    SUBMITTED = "submitted"
    SETTLED = "settled"
    CHALLENGED = "challenged"
    GRADED = "graded"
    FAILED = "failed"


class Action(StrEnum):
    """What the runner is asked to do."""

    STAGE = "stage"
    PROBE_BASELINE = "probe_baseline"
    OPEN_GATE = "open_gate"
    PROBE_SYMPTOM = "probe_symptom"
    SAVE_CHECKPOINT = "save_checkpoint"
    HAND_OVER = "hand_over"
    RUN_AGENT = "run_agent"
    SETTLE = "settle"
    CHALLENGE = "challenge"
    GRADE = "grade"
    RECORD = "record"
    RESTART = "restart"


TABLE: dict[tuple[State, Event], tuple[State, tuple[Action, ...]]] = {
    (State.NEW, Event.STARTED): (State.STAGING, (Action.STAGE,)),
    (State.NEW, Event.RESTORED): (State.HAND_OVER, (Action.HAND_OVER,)),
    (State.NEW, Event.RESUMED_SUBMITTED): (State.SETTLING, (Action.SETTLE,)),
    (State.NEW, Event.RESUMED_SETTLED): (State.CHALLENGING, (Action.CHALLENGE,)),
    (State.STAGING, Event.GATE_REACHED): (State.BASELINE, (Action.PROBE_BASELINE,)),
    (State.BASELINE, Event.BASELINE_GREEN): (State.INJECTING, (Action.OPEN_GATE,)),
    (State.INJECTING, Event.INJECTED): (State.SYMPTOM, (Action.PROBE_SYMPTOM,)),
    (State.SYMPTOM, Event.SYMPTOM_SEEN): (State.HAND_OVER, (Action.SAVE_CHECKPOINT, Action.HAND_OVER)),
    (State.HAND_OVER, Event.HANDED_OVER): (State.AGENT, (Action.RUN_AGENT,)),
    (State.AGENT, Event.SUBMITTED): (State.SETTLING, (Action.SETTLE,)),
    (State.SETTLING, Event.SETTLED): (State.CHALLENGING, (Action.CHALLENGE,)),
    (State.CHALLENGING, Event.CHALLENGED): (State.GRADING, (Action.GRADE,)),
    (State.GRADING, Event.GRADED): (State.DONE, (Action.RECORD,)),
}
"""The only ways forward; FAILED is possible in every state but DONE."""


AGENT_ENDED = (Event.SUBMITTED, Event.RESUMED_SUBMITTED, Event.RESUMED_SETTLED)
"""Events that tell how the agent ended."""


class WrongEvent(Exception):
    """An event that cannot happen in this state: a mistake in the runner."""


@dataclass(frozen=True)
class Trial:
    """The whole state of a trial. `retries` counts the attempts already given up, by cause."""

    state: State = State.NEW
    cause: str = "checks"
    detail: str = ""
    retries: tuple[str, ...] = ()


def advance(trial: Trial, event: Event, *, cause: str = "checks", detail: str = "") -> tuple[Trial, tuple[Action, ...]]:
    """The next state and what to do.

    Args:
        trial: the state before.
        event: what happened.
        cause: with SUBMITTED and after a resumption: how the agent ended; with FAILED: the row of the cause table.
        detail: one line for people.

    Raises:
        WrongEvent: the event cannot happen in this state.
    """
    if event is Event.FAILED:
        return _fail(trial, cause, detail)
    if (trial.state, event) not in TABLE:
        raise WrongEvent(f"{event} in state {trial.state}")
    state, actions = TABLE[trial.state, event]
    if event in AGENT_ENDED:
        trial = replace(trial, cause=cause, detail=detail)
    return replace(trial, state=state), actions


def _fail(trial: Trial, cause: str, detail: str) -> tuple[Trial, tuple[Action, ...]]:
    if trial.state is State.DONE:
        raise WrongEvent("failed after the trial was done")
    if trial.retries.count(cause) < rule(cause).retries:
        return Trial(retries=(*trial.retries, cause), detail=detail), (Action.RESTART,)
    return replace(trial, state=State.DONE, cause=cause, detail=detail), (Action.RECORD,)
