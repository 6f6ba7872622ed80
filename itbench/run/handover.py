"""Hand-over: what the agent is told and what it may do, bound to one trial; keeps the trajectory of its calls."""

import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from itbench import __version__
from itbench.core.clock import rfc3339
from itbench.core.documents.result import Action, Result
from itbench.core.documents.task import Limits, Task, submission_schema
from itbench.core.ids import digest
from itbench.report.atif import Trajectory, dump
from itbench.run.driver import Driver, Plan
from itbench.run.files import canonical, write_atomic
from itbench.run.page import render
from itbench.tools.catalog import toolbox
from itbench.tools.context import CallRecord, Meter, ToolContext
from itbench.tools.registry import Toolbox

TEXT_LIMIT = 4000
"""Characters of a tool's answer that the trajectory keeps."""


@dataclass
class Trace:
    """What one agent was told and did; plain enough to outlive the process of its trial."""

    trial: str
    page: str
    calls: list[CallRecord] = field(default_factory=list)

    @property
    def actions(self) -> list[Action]:
        """The calls as evidence: world time, arguments, a digest that is equal in equal runs."""
        return [
            Action(t=call.start, end=call.end, tool=call.tool, arguments=call.arguments, ok=call.ok, digest=call.digest)
            for call in self.calls
        ]

    def save(self) -> dict[str, Any]:
        """As plain data."""
        return {"trial": self.trial, "page": self.page, "calls": [asdict(call) for call in self.calls]}

    @classmethod
    def load(cls, data: dict[str, Any]) -> "Trace":
        """The inverse of `save`."""
        return cls(data["trial"], data["page"], [CallRecord(**call) for call in data["calls"]])

    def write(self, file: Path, result: Result) -> None:
        """Its ATIF document."""
        write_atomic(file, canonical(dump(Trajectory.model_validate(trajectory(self, result)))))


@dataclass
class Session:
    """One agent at work on one trial."""

    plan: Plan
    task: Task
    toolbox: Toolbox
    context: ToolContext
    ports: tuple[int, ...]
    trace: Trace
    values: dict[str, str] = field(default_factory=dict)
    """What `{name.field}` stands for in this trial."""

    async def close(self) -> None:
        """Remove what tools left in the trial's scratch folder."""
        shutil.rmtree(self.context.scratch, ignore_errors=True)


async def open_session(plan: Plan, driver: Driver, answers: tuple[str, ...]) -> Session:
    """Make the task and the tools of a trial that has just been handed over."""
    scenario = plan.scenario
    wanted = answers or scenario.task.answers
    limits = Limits(time_s=scenario.task.limits.time, steps=scenario.task.limits.steps)
    endpoints = driver.endpoints.model_copy(update={"workspace": str(plan.workspace)})
    scratch = plan.private / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    plan.workspace.mkdir(parents=True, exist_ok=True)
    for name in scenario.task.files:
        shutil.copy2(plan.folder / name, plan.workspace / Path(name).name)
    calls: list[CallRecord] = []
    context = ToolContext(
        endpoints=endpoints,
        clock=driver.clock,
        meter=Meter(limits=limits, start=driver.clock.now()),
        scratch=scratch,
        answers=wanted,
        sink=calls.append,
    )
    driver.count_steps(context.meter.step)
    values = driver.page_values()
    box = toolbox(context, scenario.task.tools or driver.tools)
    task = Task(
        trial=digest("task", scenario.id, plan.seed, plan.trial).hex()[:12],
        domain=scenario.domain,
        page=render(scenario.page, values).strip() + "\n",
        answers=wanted,
        today=scenario.environment.today,
        tools=box.specs,
        endpoints=endpoints,
        limits=limits,
        answer_schema=submission_schema(wanted, scenario.task.answer_schema or None),
    )
    return Session(plan, task, box, context, driver.ports, Trace(task.trial, task.page, calls), values)


def trajectory(trace: Trace, result: Result) -> dict[str, Any]:
    """ATIF v1.8: the page as the user's message, then one step per tool call. Times are the estate's own."""
    steps: list[dict[str, Any]] = [{"step_id": 1, "source": "user", "message": trace.page}]
    for number, call in enumerate(trace.calls, start=2):
        identifier = f"call-{call.seq}"
        steps.append(
            {
                "step_id": number,
                "source": "agent",
                "message": "",
                "timestamp": rfc3339(call.start),
                "tool_calls": [{"tool_call_id": identifier, "function_name": call.tool, "arguments": call.arguments}],
                "observation": {"results": [{"source_call_id": identifier, "content": call.text[:TEXT_LIMIT]}]},
            }
        )
    return {
        "schema_version": "ATIF-v1.8",
        "session_id": trace.trial,
        "agent": {"name": result.agent, "version": __version__},
        "steps": steps,
        "final_metrics": {"total_steps": len(steps)},
        "extra": {"scenario": result.scenario, "outcome": result.outcome, "cause": result.cause},
    }
