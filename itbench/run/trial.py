"""Runs one trial: performs what the state machine asks for, keeps the evidence, writes every phase to disk.

Called by the worker process of a trial, by `prove` and by `up`.
"""

import asyncio
import contextlib
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from itbench.agents.base import Agent, HandOver, Outcome
from itbench.core.causes import Cause, rule
from itbench.core.documents.result import Evidence, Result, Snapshot
from itbench.core.documents.task import Submission
from itbench.core.errors import EnvironmentFault, ItbenchError, ScenarioDefect
from itbench.engines import cel
from itbench.evaluate.grade import grade
from itbench.run.checkpoints import Checkpoint
from itbench.run.driver import Driver, Plan
from itbench.run.files import TrialFolder, canonical, write_atomic
from itbench.run.handover import Session, Trace, open_session
from itbench.run.machine import Action, Event, State, Trial, advance
from itbench.run.phases import Places

Progress = Callable[[dict[str, Any]], None]
WORTH_KEEPING_S = 2.0
"""Wall seconds of work that are worth keeping; less is done again."""


@dataclass
class Kept:
    """What has been recorded so far; saved with checkpoints and phases."""

    times: dict[str, float] = field(default_factory=dict)
    snapshots: dict[str, Snapshot] = field(default_factory=dict)

    def save(self) -> dict[str, Any]:
        """As plain data."""
        return {"times": self.times, "snapshots": {name: shot.plain() for name, shot in self.snapshots.items()}}

    @classmethod
    def load(cls, data: dict[str, Any]) -> "Kept":
        """The inverse of `save`."""
        shots = {name: Snapshot.model_validate(shot) for name, shot in data["snapshots"].items()}
        return cls(dict(data["times"]), shots)


class TrialRunner:
    """One trial from start to result.

    Args:
        plan: what to run.
        make_driver: makes a fresh estate; called again for every attempt.
        agent: who acts.
        folder: where files go; None keeps everything in memory (`prove`).
        checkpoint: where a staged estate is kept; None stages afresh.
        make_hand: what the agent gets, made from the session.
        answers: narrowed answers (`--task`).
        progress: told of every change of state.
    """

    def __init__(
        self,
        plan: Plan,
        make_driver: Callable[[], Driver],
        agent: Agent,
        make_hand: Callable[[Session], HandOver],
        *,
        folder: TrialFolder | None = None,
        checkpoint: Checkpoint | None = None,
        answers: tuple[str, ...] = (),
        progress: Progress = lambda record: None,
    ) -> None:
        self.plan, self.make_driver, self.agent, self.make_hand = plan, make_driver, agent, make_hand
        self.folder, self.checkpoint, self.answers, self.progress = folder, checkpoint, answers, progress
        self.places = Places(folder.path if folder is not None else None, plan.private, plan.workspace)
        self.trial, self.kept, self.end = Trial(), Kept(), Outcome()
        self.trace: Trace | None = None
        self.driver: Driver | None = None
        self.session: Session | None = None
        self.evidence: Evidence | None = None
        self.result: Result | None = None
        self._engines = contextlib.ExitStack()
        self._kept_at = time.monotonic()
        """When what a crash would cost was last kept: at first, the checkpoint."""

    async def run(self) -> Result:
        """Run to the end, whatever happens, and leave nothing behind; go on where an earlier process of this trial died."""
        phase = self.places.last()
        if phase is None:
            self.places.put_aside(Cause.RUNNER_CRASH)
        else:
            self.places.clean(phases=True)
        try:
            while self.trial.state is State.NEW:
                await self._attempt(phase)
                phase = None
        finally:
            await self._close()
            self.places.clean(phases=self.result is None)
        assert self.result is not None
        return self.result

    async def _attempt(self, phase: tuple[str, Any] | None) -> None:
        try:
            self.driver = self.make_driver()
            if phase is not None:
                await self._resume(*phase)
            elif not await self._restored():
                await self.driver.start()
                await self._happen(Event.STARTED)
        except EnvironmentFault as fault:
            await self._fail(fault.cause, str(fault))
        except ScenarioDefect as defect:
            await self._fail(Cause.SCENARIO_DEFECT, str(defect))
        except ItbenchError as error:
            await self._fail(Cause.UNKNOWN, str(error))
        except Exception as error:
            self._keep_trace()
            if self.trial.state is State.DONE:  # the files of a finished trial cannot be written
                raise
            await self._fail(Cause.UNKNOWN, f"{type(error).__name__}: {error}")

    async def _restored(self) -> bool:
        data = self.checkpoint.read() if self.checkpoint is not None else None
        if data is None:
            return False
        assert self.driver is not None
        try:
            await self.driver.restore(data["driver"])
            self.kept = Kept.load(data["kept"])
        except ItbenchError:
            raise
        except Exception as error:
            assert self.checkpoint is not None
            self.checkpoint.drop()
            raise _unusable("checkpoint", error) from error
        await self._happen(Event.RESTORED)
        return True

    async def _resume(self, phase: str, data: Any) -> None:
        """Go on from the last phase that an earlier process kept."""
        assert self.driver is not None
        try:
            await self.driver.restore(data["driver"])
            self.kept, self.trace, self.end = Kept.load(data["kept"]), Trace.load(data["trace"]), _load_end(data["end"])
            self.trial = replace(self.trial, retries=tuple(data["retries"]))
        except ItbenchError:
            raise
        except Exception as error:
            raise _unusable("phase", error) from error
        event = Event.RESUMED_SETTLED if phase == "settled" else Event.RESUMED_SUBMITTED
        await self._happen(event, cause=self.end.cause, detail=self.end.detail)

    async def _happen(self, event: Event, *, cause: str = "checks", detail: str = "") -> None:
        self.trial, actions = advance(self.trial, event, cause=cause, detail=detail)
        self._persist(event)
        for action in actions:
            await self._PERFORM[action](self)

    async def _fail(self, cause: str, detail: str) -> None:
        await self._happen(Event.FAILED, cause=str(cause), detail=detail)

    def _persist(self, event: Event) -> None:
        now = self.driver.clock.now() if self.driver is not None and self.trial.state is not State.NEW else 0.0
        record = {"state": str(self.trial.state), "event": str(event), "t": now, "cause": self.trial.cause}
        if self.trial.detail:
            record["detail"] = self.trial.detail
        self.progress(record)
        if self.folder is not None:
            write_atomic(self.folder.path / "state.json", canonical(record | {"retries": list(self.trial.retries)}))
            with (self.folder.path / "events.jsonl").open("ab") as file:
                file.write(canonical(record | {"wall": round(time.time(), 3)}).replace(b"\n", b"") + b"\n")

    def _keep_trace(self) -> None:
        if self.folder is not None:
            write_atomic(self.folder.path / "trace.txt", traceback.format_exc().encode())

    async def _close(self) -> None:
        self._engines.close()
        session, self.session = self.session, None
        if session is not None:
            await session.close()
        driver, self.driver = self.driver, None
        if driver is not None:
            await driver.close()

    # -- actions ----------------------------------------------------------------------------------------------------

    async def _stage(self) -> None:
        assert self.driver is not None
        await self.driver.stage(lambda: self._happen(Event.GATE_REACHED))
        await self._happen(Event.INJECTED)

    async def _probe_baseline(self) -> None:
        assert self.driver is not None
        reason = await self.driver.baseline()
        if reason:
            raise EnvironmentFault("the baseline is not green", cause=Cause.BASELINE_NOT_GREEN, seen=reason)
        self._note("staged")
        self.kept.snapshots["baseline"] = self.driver.snapshot()
        await self._happen(Event.BASELINE_GREEN)

    async def _open_gate(self) -> None:
        """Returning from the gate lets the playbook go on."""

    async def _probe_symptom(self) -> None:
        assert self.driver is not None
        reason = await self.driver.symptom()
        if reason:
            raise EnvironmentFault("the symptom is not as the scenario says", cause=Cause.SYMPTOM_ABSENT, seen=reason)
        self.kept.times |= self.driver.times()
        await self._happen(Event.SYMPTOM_SEEN)

    async def _save_checkpoint(self) -> None:
        assert self.driver is not None
        if self.checkpoint is not None and (data := self.driver.save()) is not None:
            self.checkpoint.write({"driver": data, "kept": self.kept.save()})
            self._kept_at = time.monotonic()

    async def _hand_over(self) -> None:
        assert self.driver is not None
        await self.driver.hand_over()
        self._note("hand_over")
        self.kept.snapshots["hand_over"] = self.driver.snapshot()
        self.session = await open_session(self.plan, self.driver, self.answers)
        self.trace = self.session.trace
        await self._happen(Event.HANDED_OVER)

    async def _run_agent(self) -> None:
        assert self.session is not None and self.driver is not None
        self.end = await self.agent.run(self.make_hand(self.session))
        await self.driver.submit()
        self._note("submit")
        self.kept.snapshots["submit"] = self.driver.snapshot()
        self._keep_phase("submit")
        await self._happen(Event.SUBMITTED, cause=self.end.cause, detail=self.end.detail)

    async def _settle(self) -> None:
        assert self.driver is not None
        if any(check.kind == "state" for check in self.plan.scenario.checks):
            self._engines.enter_context(cel.kept())  # it starts while time passes
        await self.driver.settle(self.plan.scenario.settle)
        self._note("settled")
        self.kept.snapshots["settled"] = self.driver.snapshot()
        self._keep_phase("settled")
        await self._happen(Event.SETTLED)

    async def _challenge(self) -> None:
        assert self.driver is not None
        if await self.driver.challenge():
            self._note("challenged")
            self.kept.snapshots["challenged"] = self.driver.snapshot()
        await self._happen(Event.CHALLENGED)

    async def _grade(self) -> None:
        assert self.driver is not None and self.trace is not None
        records = await self.driver.records()
        self.evidence = Evidence(
            scenario=self.plan.scenario.id,
            seed=self.plan.seed,
            trial=self.plan.trial,
            times=self.kept.times,
            snapshots=self.kept.snapshots,
            journeys=records.journeys,
            actions=self.trace.actions,
            writes=records.writes,
            submission=self._submission(),
            cause=self.end.cause,
            facts=records.facts,
        )
        await self._happen(Event.GRADED)

    async def _record(self) -> None:
        evidence = self.evidence or Evidence(
            scenario=self.plan.scenario.id,
            seed=self.plan.seed,
            trial=self.plan.trial,
            times=self.kept.times,
            snapshots=self.kept.snapshots,
            cause=self.trial.cause,
        )
        self.evidence = evidence
        result = self._graded(evidence)
        if self.folder is not None:
            self.folder.write_evidence(evidence)
            if self.trace is not None:
                self.trace.write(self.folder.path / "trajectory.json", result)
            self.folder.write_result(result)
        self.result = result

    def _graded(self, evidence: Evidence) -> Result:
        who = (self.agent.name, self.end.isolation)
        try:
            return make_result(self.plan, evidence, self.trial, who, self.answers)
        except Exception as error:
            self._keep_trace()
            if rule(self.trial.cause).outcome != "invalid":
                text = f"grading failed: {type(error).__name__}: {error}"
                self.trial = replace(self.trial, cause=str(Cause.EVALUATOR_ERROR), detail=text)
            ungraded = evidence.model_copy(update={"cause": str(Cause.EVALUATOR_ERROR)})
            return make_result(self.plan, ungraded, self.trial, who, self.answers)

    async def _restart(self) -> None:
        await self._close()
        self.places.put_aside(self.trial.retries[-1])
        self.kept, self.end, self.trace, self.evidence = Kept(), Outcome(), None, None

    def _submission(self) -> dict[str, Any] | None:
        given = self.end.submission
        return None if given is None else given.model_dump(mode="json", by_alias=True)

    def _note(self, moment: str) -> None:
        assert self.driver is not None
        self.kept.times[moment] = round(self.driver.clock.now(), 6)

    def _keep_phase(self, name: str) -> None:
        """From here a crashed trial goes on, unless what it would do again takes no longer than to keep it."""
        now, since = time.monotonic(), self._kept_at
        if now - since < WORTH_KEEPING_S:
            return
        self._kept_at = now
        if self.folder is None or self.driver is None or self.trace is None or (data := self.driver.save()) is None:
            return
        end = (self.end.cause, self.end.detail, self.end.isolation, self._submission())
        kept = {"kept": self.kept.save(), "trace": self.trace.save(), "retries": list(self.trial.retries)}
        self.places.keep(name, kept | {"driver": data, "end": end})

    _PERFORM: dict[Action, Callable[["TrialRunner"], Awaitable[None]]] = {  # noqa: RUF012 - a constant table
        Action.STAGE: _stage,
        Action.PROBE_BASELINE: _probe_baseline,
        Action.OPEN_GATE: _open_gate,
        Action.PROBE_SYMPTOM: _probe_symptom,
        Action.SAVE_CHECKPOINT: _save_checkpoint,
        Action.HAND_OVER: _hand_over,
        Action.RUN_AGENT: _run_agent,
        Action.SETTLE: _settle,
        Action.CHALLENGE: _challenge,
        Action.GRADE: _grade,
        Action.RECORD: _record,
        Action.RESTART: _restart,
    }


def _unusable(what: str, error: Exception) -> EnvironmentFault:
    seen = f"{type(error).__name__}: {error}"
    return EnvironmentFault(f"cannot restore the {what}", cause=Cause.CHECKPOINT_CORRUPT, seen=seen)


def _load_end(data: Sequence[Any]) -> Outcome:
    cause, detail, isolation, given = data
    return Outcome(None if given is None else Submission.model_validate(given), cause, detail, isolation)


def make_result(
    plan: Plan, evidence: Evidence, trial: Trial, agent: tuple[str, str], answers: tuple[str, ...]
) -> Result:
    """Grade the evidence and put the result document together; `agent` is its name and the isolation reached."""
    graded = grade(plan.scenario, evidence, answers)
    return Result.model_validate(
        {
            "scenario": plan.scenario.id,
            "seed": plan.seed,
            "trial": plan.trial,
            "agent": agent[0],
            "cause": trial.cause,
            "detail": trial.detail,
            "clock": plan.clock,
            "isolation": agent[1],
            "family": plan.scenario.family,
            "domain": plan.scenario.domain,
            "title": plan.scenario.title,
            **graded,
        }
    )


def run_trial(runner: TrialRunner) -> Result:
    """Run a trial on an event loop of its own."""
    return asyncio.run(runner.run())
