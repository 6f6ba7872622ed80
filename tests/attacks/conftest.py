"""A trial in miniature for tests of agents: a hand-over with a clock that only moves when told."""

import contextlib
import sys
from pathlib import Path

import pytest

from itbench.agents.base import HandOver
from itbench.core.documents.task import Endpoints, Limits, Task, submission_schema
from itbench.tools.catalog import toolbox
from itbench.tools.context import Meter, ToolContext

sys.path.insert(0, str(Path(__file__).parent))


class FakeClock:
    """Five seconds for a tool call."""

    def __init__(self):
        self.time = 0.0

    def now(self):
        """World seconds."""
        return self.time

    @contextlib.contextmanager
    def tool_call(self):
        """One step."""
        self.time += 5.0
        yield

    async def advance(self, seconds):
        """Time passes."""
        self.time += seconds


@pytest.fixture
def make_hand(tmp_path):
    """Makes a hand-over whose trial folder holds a secret; `hand.calls` are the recorded calls."""

    def make(*, steps=20, time_s=1800.0, wall_s=30.0, **more):
        workspace = tmp_path / "run" / "trial" / "workspace"
        workspace.mkdir(parents=True)
        (workspace.parent / "truth.yaml").write_text("the truth")
        calls = []
        endpoints = Endpoints(workspace=str(workspace))
        context = ToolContext(
            endpoints=endpoints,
            clock=FakeClock(),
            meter=Meter(Limits(steps=steps, time_s=time_s)),
            scratch=tmp_path / "scratch",
            sink=calls.append,
        )
        box = toolbox(context)
        task = Task(
            trial="t1",
            domain=more.pop("domain", "sre"),
            page="The shop is broken.",
            answers=("diagnosis", "mitigation"),
            tools=box.specs,
            endpoints=endpoints,
            answer_schema=submission_schema(("diagnosis", "mitigation")),
        )
        hand = HandOver(
            task, box, workspace.parent / "private", workspace, wall_s=wall_s, hidden=(tmp_path / "run",), **more
        )
        hand.folder.mkdir()
        object.__setattr__(hand, "calls", calls)
        return hand

    return make
