"""What an agent is to a trial: it is handed a task and tools, and comes back with an outcome.

The runner makes a `HandOver`, `itbench.agents.select` gives the `Agent`, and `await agent.run(hand)` returns an `Outcome`.
Built-in agents are functions `solve(task, tools)` run in the trial's own process by `InProcess`; all others are child processes
(`itbench.agents.command`, `itbench.agents.python`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from itbench.core.documents.scenario import Entry
from itbench.core.documents.task import Submission, Task
from itbench.core.errors import ItbenchError
from itbench.tools.registry import Toolbox, Tools

POLL_S = 0.25
"""Wall seconds between looks at the limits while an agent thinks."""

Cause = Literal[
    "checks",
    "agent_not_startable",
    "agent_exit_nonzero",
    "agent_crash",
    "resource_exhausted_by_agent",
    "wall_limit",
    "time_limit",
    "step_limit",
    "no_submission",
    "submission_invalid",
]
"""`checks`: the agent ended properly and the checks decide. The others are rows of the cause table."""


@dataclass(frozen=True, slots=True)
class Script:
    """Steps of a repair or decoy, and the answer that is submitted after them. The runner makes it; tasks never carry it."""

    name: str
    steps: tuple[Entry, ...] = ()
    submission: Submission = field(default_factory=Submission)


@dataclass(frozen=True)
class HandOver:
    """One agent, one trial."""

    task: Task
    toolbox: Toolbox
    folder: Path
    """The trial's folder for what the agent prints; not readable by the agent."""
    workspace: Path
    wall_s: float = 3600.0
    """Wall seconds after which the agent is ended."""
    isolation: str = "auto"
    hidden: tuple[Path, ...] = ()
    """Folders that no foreign agent may read: library, checkpoints, runs."""
    agent_dirs: tuple[Path, ...] = ()
    """Folders that it may read although they lie in hidden ones (`--agent-dir`)."""
    ports: tuple[int, ...] = ()
    """TCP ports of the trial's own doors."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables that the user passes on to the agent."""
    repairs: tuple[Script, ...] = ()
    decoys: tuple[Script, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an agent's part of a trial ended."""

    submission: Submission | None = None
    cause: Cause = "checks"
    detail: str = ""
    isolation: str = "in-process"


class Agent(Protocol):
    """Anything that `--agent` can name."""

    name: str
    scripted: bool
    """Deterministic and without thinking time: runs on the stepped clock by default."""

    async def run(self, hand: HandOver) -> Outcome:
        """Do the agent's part of a trial; raises only what is not the agent's fault."""


class AgentFailed(Exception):
    """A built-in agent cannot go on; the text says why."""


Solve = Callable[[Task, Tools], Awaitable[Submission | None]]


async def until_over(hand: HandOver, jobs: Sequence["asyncio.Future[Any]"]) -> None:
    """Wait until a job ends, the answer is in, or a limit is reached (which the meter then names)."""
    context = hand.toolbox.context
    loop = asyncio.get_running_loop()
    end = loop.time() + hand.wall_s
    while not any(job.done() for job in jobs) and not context.submitted.is_set() and not context.meter.over.is_set():
        await asyncio.wait(
            [*jobs], timeout=min(POLL_S, max(0.0, end - loop.time())), return_when=asyncio.FIRST_COMPLETED
        )
        if loop.time() >= end:
            context.meter.stop("wall_limit")
        context.meter.check(context.clock.now())


def concluded(hand: HandOver, isolation: str, *, cause: Cause = "no_submission", detail: str = "") -> Outcome:
    """The outcome of an agent that has ended: an answer counts whatever came after it, then limits, then `cause`."""
    context = hand.toolbox.context
    if context.submission is not None:
        return Outcome(context.submission, isolation=isolation)
    met = context.meter.cause
    if met:
        known: dict[str, Cause] = {
            "wall_limit": "wall_limit",
            "time_limit": "time_limit",
            "step_limit": "step_limit",
            "submission_invalid": "submission_invalid",
        }
        return Outcome(None, known[met], f"{met.replace('_', ' ')} reached", isolation)
    if context.refused and cause == "no_submission":
        return Outcome(None, "submission_invalid", detail, isolation)
    return Outcome(None, cause, detail, isolation)


class InProcess:
    """A built-in agent: its `solve` runs in the trial's process and talks to the toolbox directly."""

    def __init__(self, name: str, solve: Callable[[HandOver], Solve], *, scripted: bool = True) -> None:
        self.name, self.scripted = name, scripted
        self._solve = solve

    async def run(self, hand: HandOver) -> Outcome:
        """Run `solve` within the limits and submit what it returns."""
        job = asyncio.ensure_future(self._guarded(hand))
        try:
            await until_over(hand, [job])
        finally:
            if not job.done():
                job.cancel()
            await asyncio.gather(job, return_exceptions=True)
        if job.cancelled():
            return concluded(hand, "in-process")
        error = job.exception()
        if error is None:
            return concluded(hand, "in-process", detail=job.result())
        if isinstance(error, ItbenchError) or not isinstance(error, Exception):
            raise error
        text = str(error) if isinstance(error, AgentFailed) else f"{type(error).__name__}: {error}"
        return concluded(hand, "in-process", cause="agent_crash", detail=text)

    async def _guarded(self, hand: HandOver) -> str:
        submission = await self._solve(hand)(hand.task, hand.toolbox)
        if submission is None:
            return "the agent ended without an answer"
        result = await hand.toolbox.submit(submission)
        return "" if result.ok else result.text
