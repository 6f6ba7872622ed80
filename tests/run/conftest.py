"""A whole trial without an estate: a driver that counts, an agent that answers, a scenario that asks for a verdict."""

import asyncio
import contextlib
from types import SimpleNamespace

import pytest

from itbench.agents.base import Outcome
from itbench.core.documents.result import Snapshot
from itbench.core.documents.scenario import Scenario
from itbench.core.documents.task import Endpoints, Submission
from itbench.run.checkpoints import Checkpoint
from itbench.run.driver import Plan, Records
from itbench.run.files import TrialFolder
from itbench.run.trial import TrialRunner

SCENARIO = {
    "schema": "itbench/scenario/v1",
    "id": "sre-900",
    "title": "A small one",
    "domain": "sre",
    "family": "small",
    "level": "easy",
    "source": {"what": "made for tests"},
    "environment": {},
    "page": "Something is wrong since {at.fault}.",
    "task": {"answers": ["verdict"], "tools": ["wait", "submit"]},
    "truth": {"verdict": "incident"},
    "checks": [{"verdict": {}}],
    "repairs": [],
    "settle": "30s",
}


class Clock:
    """World seconds that pass when told."""

    def __init__(self):
        self.t = 0.0

    def now(self):
        return self.t

    def tool_call(self):
        return contextlib.nullcontext()

    async def advance(self, seconds):
        self.t += seconds


class FakeDriver:
    """Follows the driver's protocol; `fail` maps a method to what it raises, `log` tells what was done."""

    tools, ports = (), ()

    def __init__(self, plan, log, fail):
        self.plan, self.log, self.fail, self.clock = plan, log, fail, Clock()
        self.handed_over = False

    @property
    def endpoints(self):
        return Endpoints()

    def _do(self, name, seconds=0.0):
        self.log.append(name)
        self.clock.t += seconds
        if self.fail.get(name):
            raise self.fail[name].pop(0)

    async def start(self):
        self.plan.private.mkdir(parents=True, exist_ok=True)
        (self.plan.private / "kubeconfig-stager").write_text("secret")
        self._do("start")

    async def stage(self, gate):
        self._do("stage", 10.0)
        await gate()
        self._do("inject", 5.0)

    async def baseline(self):
        self._do("baseline")
        return ""

    async def symptom(self):
        self._do("symptom", 7.0)
        return ""

    def page_values(self):
        return {"at.fault": f"second {self.clock.t:g}"}

    def count_steps(self, step):
        self.step = step

    async def hand_over(self):
        self._do("hand_over")

    async def submit(self):
        self._do("submit", 1.0)

    async def settle(self, seconds):
        self._do("settle", seconds)

    async def challenge(self):
        self._do("challenge", 3.0)
        return True

    async def revert(self):
        self._do("revert")

    def snapshot(self):
        return Snapshot(t=self.clock.t, objects={"pods": [{"metadata": {"name": "a"}}]})

    async def records(self):
        self._do("records")
        return Records(facts={"seconds": self.clock.t})

    def times(self):
        return {"fault": 15.0}

    def save(self):
        return {"t": self.clock.t}

    async def restore(self, data):
        self._do("restore")
        self.clock.t = data["t"]

    async def close(self):
        self.log.append("close")


class FakeAgent:
    """Waits, leaves a file, and hands in the truth, unless it is given another `end`."""

    name, scripted = "fake", True

    def __init__(self, end=None):
        self.end = end

    async def run(self, hand):
        assert not list(hand.workspace.iterdir()), "an agent begins in an empty workspace"
        (hand.workspace / "notes").write_text("mine")
        await hand.toolbox.call("wait", {"seconds": 20})
        if self.end is not None:
            return self.end
        return Outcome(Submission(verdict="incident"))


@pytest.fixture
def trial(tmp_path):
    """`trial(fail={...})` makes a runner on one folder; `.log` is shared by all of them."""
    log = []
    base = tmp_path / "run" / "trials" / "sre-900" / "fake" / "1"

    def make(*, fail=None, agent=None, keeps=True, checkpoint=True, scenario=None):
        fail = {} if fail is None else fail
        document = Scenario.model_validate(SCENARIO | (scenario or {}))
        plan = Plan(document, tmp_path, base / "private", base / "workspace", clock="stepped:5")
        return TrialRunner(
            plan,
            lambda: FakeDriver(plan, log, fail),
            agent or FakeAgent(),
            lambda session: SimpleNamespace(task=session.task, toolbox=session.toolbox, workspace=plan.workspace),
            folder=TrialFolder(base) if keeps else None,
            checkpoint=Checkpoint(tmp_path / "checkpoint") if checkpoint else None,
        )

    make.log, make.base, make.run = log, base, lambda **more: asyncio.run(make(**more).run())
    return make
