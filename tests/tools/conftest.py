"""A trial in miniature for tests of tools: a clock that only moves when told, and a context with a workspace."""

import contextlib

import pytest

from itbench.core.documents.task import Endpoints, Limits
from itbench.tools.context import Meter, ToolContext


class FakeClock:
    """A stepped clock: a tool call costs five seconds; waiting adds its own."""

    def __init__(self):
        self.time = 100.0
        self.brackets = 0

    def now(self):
        """World seconds."""
        return self.time

    @contextlib.contextmanager
    def tool_call(self):
        """One step."""
        self.time += 5.0
        self.brackets += 1
        yield

    async def advance(self, seconds):
        """Time passes."""
        self.time += seconds


@pytest.fixture
def make_context(tmp_path):
    """Makes a context; endpoints and limits as keywords."""

    def make(*, steps=20, time_s=1800.0, **endpoints):
        workspace = tmp_path / "workspace"
        workspace.mkdir(exist_ok=True)
        records = []
        context = ToolContext(
            endpoints=Endpoints(**{"workspace": str(workspace), **endpoints}),
            clock=FakeClock(),
            meter=Meter(Limits(steps=steps, time_s=time_s), start=100.0),
            scratch=tmp_path / "scratch",
            sink=records.append,
        )
        context.records = records
        return context

    return make
