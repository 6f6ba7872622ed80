"""Trajectories in the Agent Trajectory Interchange Format, version 1.8: models that check every rule, and a builder.

The run room writes `trajectory.json` through `trajectory_of`; `Trajectory.model_validate` checks foreign documents.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from itbench.core.clock import EPOCH, unix
from itbench.report.model import ActionView, TrialView

VERSION: Literal["ATIF-v1.8"] = "ATIF-v1.8"
READABLE = Literal[
    "ATIF-v1.0", "ATIF-v1.1", "ATIF-v1.2", "ATIF-v1.3", "ATIF-v1.4", "ATIF-v1.5", "ATIF-v1.6", "ATIF-v1.7", "ATIF-v1.8"
]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Source(_Model):
    """Where an image or sound is."""

    media_type: str
    path: str
    duration_sec: float | None = None


class ContentPart(_Model):
    """A piece of a message: text, or a reference to an image or sound."""

    type: Literal["text", "image", "audio"]
    text: str | None = None
    source: Source | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.text is None) == (self.type == "text") or (self.source is None) == (self.type != "text"):
            raise ValueError(
                f"a content part of type {self.type} has {'text' if self.type == 'text' else 'a source'} and nothing else"
            )
        return self


Content = str | list[ContentPart]


class ToolCall(_Model):
    """One call of a tool."""

    tool_call_id: str
    function_name: str
    arguments: dict[str, Any]
    extra: dict[str, Any] | None = None


class SubagentTrajectoryRef(_Model):
    """Another agent's trajectory, embedded (by id) or in a file."""

    trajectory_id: str | None = None
    trajectory_path: str | None = None
    session_id: str | None = None
    extra: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _named(self) -> Self:
        if self.trajectory_id is None and self.trajectory_path is None:
            raise ValueError("a sub-agent reference needs trajectory_id or trajectory_path")
        return self


class ObservationResult(_Model):
    """What came back."""

    source_call_id: str | None = None
    content: Content | None = None
    subagent_trajectory_ref: list[SubagentTrajectoryRef] | None = None
    extra: dict[str, Any] | None = None


class Observation(_Model):
    """Results of a step's tool calls."""

    results: list[ObservationResult]


class Metrics(_Model):
    """Tokens and cost of a step; `prompt_tokens` includes the cached ones."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None
    prompt_token_ids: list[int] | None = None
    completion_token_ids: list[int] | None = None
    logprobs: list[float] | None = None
    extra: dict[str, Any] | None = None


class FinalMetrics(_Model):
    """Totals; the cost is absent when any part of it is unknown."""

    total_prompt_tokens: int | None = None
    total_completion_tokens: int | None = None
    total_cached_tokens: int | None = None
    total_cost_usd: float | None = None
    total_steps: int | None = None
    extra: dict[str, Any] | None = None


_AGENT_ONLY = ("model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics")


class Step(_Model):
    """One turn."""

    step_id: Annotated[int, Field(ge=1)]
    source: Literal["system", "user", "agent"]
    message: Content
    timestamp: datetime | None = None
    model_name: str | None = None
    reasoning_effort: str | float | None = None
    reasoning_content: str | None = None
    tool_calls: list[ToolCall] | None = None
    observation: Observation | None = None
    metrics: Metrics | None = None
    is_copied_context: bool | None = None
    llm_call_count: Annotated[int, Field(ge=0)] | None = None
    extra: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.source != "agent":
            wrong = [name for name in _AGENT_ONLY if getattr(self, name) is not None]
            if wrong:
                raise ValueError(f"step {self.step_id}: a {self.source} step has no {wrong[0]}")
        if self.llm_call_count == 0 and (self.metrics is not None or self.reasoning_content is not None):
            raise ValueError(
                f"step {self.step_id}: without model calls there are neither metrics nor reasoning_content"
            )
        calls = {call.tool_call_id for call in self.tool_calls or ()}
        for result in self.observation.results if self.observation else ():
            if result.source_call_id is not None and result.source_call_id not in calls:
                raise ValueError(
                    f"step {self.step_id}: source_call_id {result.source_call_id!r} names no tool call of this step"
                )
        return self


class Agent(_Model):
    """Who acted."""

    name: str
    version: str
    model_name: str | None = None
    tool_definitions: list[dict[str, Any]] | None = None
    extra: dict[str, Any] | None = None


class Trajectory(_Model):
    """The document."""

    schema_version: READABLE
    agent: Agent
    steps: Annotated[list[Step], Field(min_length=1)]
    session_id: str | None = None
    trajectory_id: str | None = None
    notes: str | None = None
    final_metrics: FinalMetrics | None = None
    continued_trajectory_ref: str | None = None
    subagent_trajectories: list["Trajectory"] | None = None
    extra: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        ids = [step.step_id for step in self.steps]
        if ids != list(range(1, len(ids) + 1)):
            raise ValueError(f"step_id has to count from 1 without gaps, not {ids[:5]}")
        inner = [each.trajectory_id for each in self.subagent_trajectories or ()]
        if None in inner or len(set(inner)) != len(inner):
            raise ValueError("embedded sub-agents need a trajectory_id each, all different")
        total = self.final_metrics.total_steps if self.final_metrics else None
        if total is not None and total != len(ids) and not self.notes:
            raise ValueError(f"total_steps is {total}, there are {len(ids)} steps, and notes do not say why")
        return self


def world_time(seconds: float) -> datetime:
    """World seconds as a time of the world's calendar."""
    return datetime.fromtimestamp(unix(seconds), UTC)


def _action_step(number: int, action: ActionView, output: str, *, scripted: bool) -> Step:
    call = ToolCall(tool_call_id=f"call-{number}", function_name=action.tool, arguments={"text": action.text})
    result = ObservationResult(source_call_id=call.tool_call_id, content=output or _outcome(action))
    return Step(
        step_id=number,
        source="agent",
        message="",
        timestamp=world_time(action.t),
        tool_calls=[call],
        observation=Observation(results=[result]),
        llm_call_count=0 if scripted else None,
        extra=None if action.ok is None else {"ok": action.ok},
    )


def _outcome(action: ActionView) -> str:
    return "" if action.ok is None else "ok" if action.ok else "failed"


def trajectory_of(
    view: TrialView,
    *,
    version: str,
    outputs: Sequence[str] = (),
    scripted: bool = False,
    trajectory_id: str | None = None,
) -> Trajectory:
    """The trajectory of a trial: the page, then one step per action.

    Args:
        view: the trial; its actions become tool calls.
        version: of the agent.
        outputs: what each action gave back, in their order; missing ones are told as ok or failed.
        scripted: the agent asks no model.
        trajectory_id: unique name of the document.
    """
    begin = next((t for name, t in view.phases if name in ("hand-over", "handover", "agent")), None)
    stamp = None if begin is None else world_time(begin)
    steps = [Step(step_id=1, source="user", message=view.page or view.title, timestamp=stamp)]
    for number, action in enumerate(view.actions):
        output = outputs[number] if number < len(outputs) else ""
        steps.append(_action_step(number + 2, action, output, scripted=scripted))
    extra = {"scenario": view.scenario, "seed": view.seed, "trial": view.trial, "epoch": EPOCH.isoformat()}
    return Trajectory(
        schema_version=VERSION,
        agent=Agent(name=view.agent, version=version),
        steps=steps,
        trajectory_id=trajectory_id,
        final_metrics=FinalMetrics(total_steps=len(steps)),
        extra=extra,
    )


def dump(trajectory: Trajectory) -> dict[str, Any]:
    """The document as JSON data, without what is not said."""
    return trajectory.model_dump(mode="json", exclude_none=True)
