"""What a tool call may use: endpoints, the trial's clock, what is left of the limits, and where the call is recorded.

The runner makes one `ToolContext` per trial; tools get it with every call.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from itbench.core.documents.task import Endpoints, Limits, Submission
from itbench.core.ids import digest


class TrialClock(Protocol):
    """The part of the trial's pacer that tools need."""

    def now(self) -> float:
        """World seconds, caught up with the wall where the clock follows it: limits are checked with it while an agent thinks."""

    def tool_call(self) -> AbstractContextManager[None]:
        """Bracket of one step: its cost in world time is paid on entry, and requests made inside are not steps."""

    async def advance(self, seconds: float) -> None:
        """Let world time pass: fast-forward when simulated, really waiting otherwise."""


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One tool call as the trajectory keeps it. Times are world seconds."""

    seq: int
    tool: str
    arguments: dict[str, Any]
    start: float
    end: float
    ok: bool
    text: str
    digest: str
    """Of the result without what differs between equal runs: see `stable_digest`."""


@dataclass
class Meter:
    """What an agent has used up of its limits; `over` is set once, with the cause, when the agent has to stop."""

    limits: Limits
    start: float = 0.0
    """World second of hand-over."""
    steps: int = 0
    cause: str = ""
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def step(self) -> bool:
        """Count one step; False, and `step_limit`, when none was left. The pacer calls it for requests from outside."""
        if self.steps >= self.limits.steps:
            self.stop("step_limit")
            return False
        self.steps += 1
        return True

    def check(self, now: float) -> bool:
        """Whether the agent may go on at world second `now`."""
        if now - self.start >= self.limits.time_s:
            self.stop("time_limit")
        return not self.cause

    def stop(self, cause: str) -> None:
        """End the agent for `cause`; the first cause stays."""
        self.cause = self.cause or cause
        self.over.set()


@dataclass
class ToolContext:
    """One trial, as its tools see it."""

    endpoints: Endpoints
    clock: TrialClock
    meter: Meter
    scratch: Path
    """Folder of the trial for HOME, caches and temporary files of programs that tools start; not the agent's workspace."""
    answers: tuple[str, ...] = ()
    sink: Callable[[CallRecord], None] = lambda record: None
    confine: Callable[[Sequence[str]], list[str]] = list
    """Makes an argv run with no more rights than the agent has; set for foreign agents."""
    seq: int = 0
    submission: Submission | None = None
    refused: int = 0
    """Submissions that could not be read."""
    submitted: asyncio.Event = field(default_factory=asyncio.Event)


_VOLATILE = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"\b1[5-9]\d{8}(?:\.\d+)?\b"), "<time>"),
    (re.compile(r"\b(?:\d+(?:ms|[dhms]))+\b"), "<age>"),
    (re.compile(r"\b(?:127\.0\.0\.1|localhost):\d+"), "<host>"),
    (re.compile(r"\s+"), " "),
)


def stable_digest(ok: bool, text: str) -> str:
    """Digest of a result that is equal in equal runs: wall times, ages, loopback ports and column widths are masked.

    A client computes ages and prints times from its own wall clock, so the bytes of an answer are no evidence.
    """
    for pattern, mask in _VOLATILE:
        text = pattern.sub(mask, text)
    return digest(ok, text.strip()).hex()[:16]
