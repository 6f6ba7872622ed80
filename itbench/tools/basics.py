"""The tools that every task has: `wait` lets world time pass, `submit` hands in the answer."""

from collections.abc import Mapping
from typing import Any

from itbench.core.documents.task import SubmissionInvalid, parse_submission
from itbench.tools.context import ToolContext
from itbench.tools.registry import Tool, ToolResult

MAX_WAIT_S = 3600.0
MAX_REFUSED = 5
"""Unreadable submissions after which the trial goes on without one."""


async def _wait(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    meter, before = context.meter, context.clock.now()
    left = max(0.0, meter.start + meter.limits.time_s - before)
    await context.clock.advance(min(float(arguments["seconds"]), left))
    passed = context.clock.now() - before
    return ToolResult(f"{passed:.0f} seconds have passed", structured={"seconds": passed})


async def _submit(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    try:
        submission = parse_submission(arguments)
    except SubmissionInvalid as error:
        context.refused += 1
        if context.refused >= MAX_REFUSED:
            context.meter.stop("submission_invalid")
            return ToolResult(f"{error}; this was the last of {MAX_REFUSED} attempts", ok=False)
        return ToolResult(
            f"{error}; correct it and submit again ({MAX_REFUSED - context.refused} attempts left)", ok=False
        )
    context.submission = submission
    return ToolResult("submitted")


WAIT = Tool(
    name="wait",
    description="Let time pass in the estate, for example to see whether a change helps.",
    input_schema={
        "type": "object",
        "required": ["seconds"],
        "additionalProperties": False,
        "properties": {"seconds": {"type": "number", "exclusiveMinimum": 0, "maximum": MAX_WAIT_S}},
    },
    call=_wait,
    read_only=True,
    deadline_s=MAX_WAIT_S + 60.0,
    paced=False,
)

SUBMIT = Tool(
    name="submit",
    description="Hand in your answer, once you are done; nothing can be done after it. The form is the task's answer_schema.",
    input_schema={"type": "object"},
    call=_submit,
    counts=False,
    paced=False,
)
