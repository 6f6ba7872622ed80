"""Puts trials together: agents by name, drivers by scenario. Called by the worker."""

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from itbench.agents import select
from itbench.agents.base import Agent, HandOver, Script
from itbench.core.causes import Cause
from itbench.core.documents.scenario import Repair, Scenario
from itbench.core.documents.task import RootCause, Submission
from itbench.core.errors import EnvironmentFault
from itbench.library.store import Found, Library
from itbench.run.checkpoints import checkpoint
from itbench.run.driver import Driver, Plan
from itbench.run.files import TrialFolder
from itbench.run.handover import Session
from itbench.run.home import cache_home
from itbench.run.jobs import Job, clock_for, driver_module
from itbench.run.known import vocabulary
from itbench.run.page import render_data
from itbench.run.phases import room
from itbench.run.trial import Progress, TrialRunner

WALL_S = 3600.0
"""Wall seconds that an agent gets when `--timeout` says nothing."""


def find(job: Job) -> tuple[Library, Found]:
    """The library and the scenario of a job."""
    library = Library(job.library, vocabulary())
    return library, library.scenario(job.scenario)


def make_driver(plan: Plan) -> Driver:
    """The driver that can stand up what the scenario asks for."""
    driver: Driver = import_module(driver_module(plan.scenario.environment)).make(plan)
    return driver


def make_plan(job: Job, found: Found, base: Path) -> Plan:
    """Where a trial lives and how it runs. No path that an agent sees names scenario, run or agent."""
    place = room(base) if job.folder else base
    return Plan(
        scenario=found.scenario,
        folder=found.folder,
        private=place / "private",
        workspace=place / "workspace",
        seed=job.seed,
        trial=job.trial,
        clock=clock_for(job),
        environment=job.environment,
        kubeconfig=job.kubeconfig,
        library=job.library,
    )


def answer_of(scenario: Scenario, values: Mapping[str, str]) -> Submission:
    """The true answer, as `oracle` and `decoy` submit it; `values` are those of the page."""
    truth = scenario.truth
    return Submission(
        diagnosis=tuple(RootCause(entity=cause.entity, mechanism=cause.mechanism) for cause in truth.root_causes),
        chain=truth.chain,
        verdict=truth.verdict,
        answer=render_data(truth.answer, values),
    )


def script(repair: Repair, scenario: Scenario, values: Mapping[str, str]) -> Script:
    """Steps and the answer after them, with what the seed drew put in."""
    steps = tuple(step.model_copy(update={"spec": render_data(step.spec, values)}) for step in repair.steps)
    return Script(repair.name, steps, answer_of(scenario, values))


def hand_maker(job: Job, found: Found, base: Path, library: Library) -> Callable[[Session], HandOver]:
    """What turns a session into what the agent gets."""
    scenario = found.scenario

    def make(session: Session) -> HandOver:
        return HandOver(
            task=session.task,
            toolbox=session.toolbox,
            folder=session.plan.private.parent / "agent",
            workspace=session.plan.workspace,
            wall_s=job.timeout_s or WALL_S,
            isolation=job.isolation,
            hidden=hidden_folders(library, base, Path(job.cwd or ".")),
            agent_dirs=tuple(Path(folder) for folder in job.agent_dirs),
            ports=session.ports,
            repairs=tuple(script(repair, scenario, session.values) for repair in scenario.repairs),
            decoys=tuple(script(decoy, scenario, session.values) for decoy in scenario.decoys),
        )

    return make


def hidden_folders(library: Library, base: Path, cwd: Path) -> tuple[Path, ...]:
    """What no foreign agent may read: the library's parts, checkpoints, the trial's own private files and results, and other
    trials: those of the same run and the runs in the folder where the command was typed."""
    parts = [
        root / part
        for root in library.roots
        for part in ("scenarios", "playbooks", "metrics", "suites", "tests", "docs", ".git", "runs")
    ]
    parts.append(cwd / "runs")
    run = base.parents[3] if len(base.parents) > 3 else base
    trials = (run,) if (run / "run.yaml").is_file() else ()
    return (*(path for path in parts if path.exists()), cache_home(), base, *trials)


def make_agent(job: Job) -> Agent:
    """The agent of a job, by name."""
    return select.agent(job.agent, Path(job.cwd or ".").resolve())


def trial_runner(job: Job, base: Path, progress: Progress, agent: Agent | None = None) -> TrialRunner:
    """Everything of one trial, ready to run."""
    library, found = find(job)
    plan = make_plan(job, found, base)
    keeps = job.environment == "embedded" and not job.fresh
    return TrialRunner(
        plan,
        lambda: make_driver(plan),
        agent or make_agent(job),
        hand_maker(job, found, base, library),
        folder=TrialFolder(base) if job.folder else None,
        checkpoint=checkpoint(found, library, job.seed) if keeps else None,
        answers=job.answers,
        progress=progress,
    )


async def revert_proof(job: Job, base: Path, progress: Progress) -> dict[str, Any]:
    """Stage or restore, revert the faults, and see whether the baseline comes back; a document like a result."""
    library, found = find(job)
    plan = make_plan(job, found, base)
    saved = None if job.fresh else checkpoint(found, library, job.seed).read()
    driver = make_driver(plan)
    try:
        if saved is not None:
            await driver.restore(saved["driver"])
        elif reason := await _stand_up(driver):
            return _proof("invalid", reason)
        progress({"state": "agent", "say": "reverting"})
        await driver.revert()
        await driver.settle(plan.scenario.settle)
        reason = await driver.baseline()
        return _proof("fail", reason) if reason else _proof("pass", "")
    finally:
        await driver.close()


async def _stand_up(driver: Driver) -> str:
    """Stage until the symptom shows, as a trial does; why that failed, empty when it did not."""

    async def gate() -> None:
        if reason := await driver.baseline():
            raise EnvironmentFault("the baseline is not green", cause=Cause.BASELINE_NOT_GREEN, seen=reason)

    await driver.start()
    await driver.stage(gate)
    return await driver.symptom()


def _proof(outcome: str, detail: str) -> dict[str, Any]:
    checks = [{"kind": "baseline", "name": "baseline", "passed": outcome == "pass"}]
    return {"outcome": outcome, "cause": "checks", "detail": detail, "checks": checks}
