"""The registry of tools: one description of each, one way to call them, whatever door the agent comes through.

Knows no SDK. `itbench.tools.http` and `itbench.tools.mcp` are thin adapters over a `Toolbox`; built-in agents call it directly.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Protocol

from itbench.core.documents.task import Submission, ToolSpec, not_plain
from itbench.tools.context import CallRecord, ToolContext, stable_digest

POLL_S = 0.2
"""Wall seconds between looks at the limits while a tool is busy."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answers. `structured` is the same as data, where there is more structure than text."""

    text: str
    ok: bool = True
    structured: Any = None


Call = Callable[[Mapping[str, Any], ToolContext], Awaitable[ToolResult]]


@dataclass(frozen=True, slots=True)
class Tool:
    """One thing an agent may do."""

    name: str
    description: str
    input_schema: dict[str, Any]
    call: Call
    read_only: bool = False
    destructive: bool = False
    deadline_s: float = 60.0
    """Wall seconds after which a call is given up."""
    limit: int = 16_000
    """Characters of output that the agent gets to see; a tool with an argument `limit` lets it ask for another number."""
    counts: bool = True
    """Whether a call is a step."""
    paced: bool = True
    """Whether a step's cost in world time is paid; `wait` pays its own."""

    def spec(self) -> ToolSpec:
        """The tool as shown to agents."""
        return ToolSpec(
            name=self.name,
            description=self.description,
            input_schema=self.input_schema,
            read_only=self.read_only,
            destructive=self.destructive,
        )


class Tools(Protocol):
    """What an agent holds: in process a `Toolbox`, in a child process `itbench.tools.remote.RemoteToolbox`."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools there are."""

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> ToolResult:
        """Call one; failures are results with `ok=False`, never exceptions."""

    async def submit(self, submission: Submission) -> ToolResult:
        """Hand in the answer; the first that can be read counts, and nothing may be done after it."""


class Toolbox:
    """The tools of one trial, bound to it. Calls are served one at a time, in the order in which they came."""

    def __init__(self, tools: Iterable[Tool], context: ToolContext) -> None:
        self.tools = {tool.name: tool for tool in tools}
        self.context = context
        self._turn = asyncio.Lock()
        self._validators: dict[str, Any] = {}

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools there are, in the registry's order."""
        return tuple(tool.spec() for tool in self.tools.values())

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> ToolResult:
        """Call a tool: limits, schema, deadline, cut, record.

        Args:
            name: of the tool.
            arguments: an object that the tool's input schema allows.

        Returns:
            The result; `ok=False` with one clear line when the call was refused, failed, or took too long.
        """
        arguments = dict(arguments or {})
        async with self._turn:
            refusal = self._refusal(name, arguments)
            if refusal:
                return ToolResult(refusal, ok=False)
            tool = self.tools[name]
            limit = (
                arguments.get("limit", tool.limit) if "limit" in tool.input_schema.get("properties", {}) else tool.limit
            )
            start, result = await self._paced(tool, arguments)
            result = _cut(result, limit)
            self._record(tool, arguments, start, result)
            if self.context.submission is not None:  # told only now: who waits for it ends the trial at once
                self.context.submitted.set()
            self.context.meter.check(self.context.clock.now())
            return result

    async def submit(self, submission: Submission) -> ToolResult:
        """Hand in an answer through the tool of that name."""
        return await self.call("submit", submission.model_dump(mode="json", by_alias=True))

    def _refusal(self, name: str, arguments: Mapping[str, Any]) -> str:
        tool = self.tools.get(name)
        if tool is None:
            near = get_close_matches(name, self.tools, n=1)
            return f"no tool {name!r}; " + (
                f"did you mean {near[0]!r}?" if near else f"there are {', '.join(self.tools)}"
            )
        problem = not_plain(arguments)  # what cannot be recorded is not done: evidence is written as JSON
        if problem:
            return f"{name}: arguments are not plain JSON: {problem}"
        if name not in self._validators:
            self._validators[name] = _validator(self.tools[name])
        errors = sorted(self._validators[name].iter_errors(arguments), key=lambda e: list(map(str, e.path)))
        if errors:
            place = ".".join(map(str, errors[0].path)) or "arguments"
            return f"{name}: {place}: {errors[0].message[:300]}"
        context = self.context
        if context.submission is not None:
            return "the answer has been submitted; nothing can be done after it"
        if tool.counts and not (context.meter.check(context.clock.now()) and context.meter.step()):
            return f"{context.meter.cause.replace('_', ' ')} reached: only submit is left"
        return ""

    async def _paced(self, tool: Tool, arguments: Mapping[str, Any]) -> tuple[float, ToolResult]:
        """When the call began, its step having been paid, and what it gave."""
        clock = self.context.clock
        with clock.tool_call() if tool.counts and tool.paced else nullcontext():
            start = clock.now()
            return start, await self._bounded(tool, arguments)

    async def _bounded(self, tool: Tool, arguments: Mapping[str, Any]) -> ToolResult:
        """Run the call until it answers, its deadline passes, or the agent's time is over."""
        job = asyncio.ensure_future(tool.call(arguments, self.context))
        loop = asyncio.get_running_loop()
        end = loop.time() + tool.deadline_s
        try:
            while not job.done():
                await asyncio.wait({job}, timeout=min(POLL_S, tool.deadline_s))
                if not job.done() and loop.time() >= end:
                    return ToolResult(f"{tool.name}: no answer within {tool.deadline_s:g} s; given up", ok=False)
                if not job.done() and tool.counts and not self.context.meter.check(self.context.clock.now()):
                    return ToolResult(f"{tool.name}: {self.context.meter.cause.replace('_', ' ')} reached", ok=False)
            return job.result()
        except Exception as error:
            return ToolResult(f"{tool.name}: {type(error).__name__}: {error}", ok=False)
        finally:
            if not job.done():
                job.cancel()
                await asyncio.gather(job, return_exceptions=True)

    def _record(self, tool: Tool, arguments: dict[str, Any], start: float, result: ToolResult) -> None:
        context = self.context
        context.seq += 1
        context.sink(
            CallRecord(
                seq=context.seq,
                tool=tool.name,
                arguments=arguments,
                start=start,
                end=context.clock.now(),
                ok=result.ok,
                text=result.text,
                digest=stable_digest(result.ok, result.text),
            )
        )


LIMIT = {
    "type": "integer",
    "minimum": 200,
    "maximum": 2_000_000,
    "description": "characters of output wanted; longer output is cut in the middle",
}
"""The schema of an argument `limit`."""


def _validator(tool: Tool) -> Any:
    """A JSON Schema validator; imported here, because agents in child processes import this module and validate nothing."""
    from jsonschema import Draft202012Validator

    return Draft202012Validator(tool.input_schema)


def _cut(result: ToolResult, limit: int) -> ToolResult:
    text = result.text
    if len(text) <= limit:
        return result
    head, tail = limit * 3 // 4, limit // 4
    note = f"\n... [{len(text)} characters in all; the first {head} and the last {tail} are shown] ...\n"
    return ToolResult(text[:head] + note + text[-tail:], result.ok, None)
