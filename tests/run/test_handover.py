"""What an agent is told, what it may use, and what stays of its calls."""

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from itbench.core.documents.result import Result
from itbench.core.documents.scenario import Scenario
from itbench.core.documents.task import Endpoints
from itbench.run.driver import Plan
from itbench.run.handover import TEXT_LIMIT, Session, Trace, open_session
from itbench.tools.context import CallRecord

SCENARIO = {
    "schema": "itbench/scenario/v1",
    "id": "sre-901",
    "title": "Secret title",
    "domain": "sre",
    "family": "small",
    "level": "easy",
    "source": {"what": "made for tests"},
    "environment": {},
    "page": "Slow since {at.fault}.",
    "task": {"answers": ["verdict"], "tools": ["wait", "submit"], "files": ["notes.txt"], "limits": {"steps": 3}},
    "truth": {"verdict": "incident"},
    "checks": [{"verdict": {}}],
    "repairs": [],
}


class Estate:
    """As much of a driver as a hand-over needs; its own clock."""

    tools: tuple[str, ...] = ("kubectl",)
    ports = (4711,)
    endpoints = Endpoints(prometheus_url="http://127.0.0.1:1")

    def __init__(self) -> None:
        self.t, self.clock = 100.0, self
        self.step: Callable[[], object] = lambda: None

    def now(self) -> float:
        return self.t

    def tool_call(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    async def advance(self, seconds: float) -> None:
        self.t += seconds

    def count_steps(self, step: Callable[[], object]) -> None:
        self.step = step

    def page_values(self) -> dict[str, str]:
        return {"at.fault": "08:01 UTC"}


async def hand_over(folder: Path, estate: Estate, answers: tuple[str, ...] = ()) -> Session:
    (folder / "scenario").mkdir()
    (folder / "scenario" / "notes.txt").write_text("hint")
    plan = Plan(
        scenario=Scenario.model_validate(SCENARIO),
        folder=folder / "scenario",
        private=folder / "private",
        workspace=folder / "workspace",
    )
    return await open_session(plan, estate, answers)  # type: ignore[arg-type]


async def test_the_task_holds_the_page_the_doors_and_no_truth(tmp_path: Path) -> None:
    session = await hand_over(tmp_path, Estate())
    task = session.task
    assert (task.page, task.answers, session.ports) == ("Slow since 08:01 UTC.\n", ("verdict",), (4711,))
    assert task.endpoints.workspace == str(tmp_path / "workspace")
    assert {tool.name for tool in task.tools} == {"wait", "submit"}
    told = task.model_dump_json()
    assert not any(secret in told for secret in ("sre-901", "Secret title", "repairs", "truth"))
    assert (tmp_path / "workspace" / "notes.txt").read_text() == "hint"


async def test_answers_can_be_narrowed(tmp_path: Path) -> None:
    session = await hand_over(tmp_path, Estate(), ("mitigation",))
    assert session.task.answers == ("mitigation",)


async def test_calls_are_kept_as_evidence_and_requests_past_the_tools_are_steps(tmp_path: Path) -> None:
    estate = Estate()
    session = await hand_over(tmp_path, estate)
    assert (await session.toolbox.call("wait", {"seconds": 5})).ok
    (action,) = session.trace.actions
    assert (action.tool, action.arguments, action.t, action.end, action.ok) == (
        "wait",
        {"seconds": 5},
        100.0,
        105.0,
        True,
    )
    estate.step()
    assert session.context.meter.steps == 2
    estate.step()
    assert not (await session.toolbox.call("wait", {"seconds": 5})).ok
    assert session.context.meter.cause == "step_limit"


async def test_closing_removes_what_tools_left(tmp_path: Path) -> None:
    session = await hand_over(tmp_path, Estate())
    (session.context.scratch / "cache").write_text("x")
    await session.close()
    assert not session.context.scratch.exists()


def test_a_trace_survives_its_process_and_is_written_with_texts_cut(tmp_path: Path) -> None:
    call = CallRecord(seq=1, tool="wait", arguments={}, start=1.0, end=2.0, ok=True, text="x" * 9999, digest="d")
    trace = Trace.load(json.loads(json.dumps(Trace("t", "page", [call]).save())))
    assert trace == Trace("t", "page", [call])
    result: dict[str, Any] = {
        "scenario": "s",
        "seed": 0,
        "trial": 1,
        "agent": "a",
        "outcome": "pass",
        "cause": "checks",
    }
    trace.write(tmp_path / "t.json", Result.model_validate(result))
    written = json.loads((tmp_path / "t.json").read_bytes())
    assert [step["source"] for step in written["steps"]] == ["user", "agent"]
    assert written["steps"][1]["observation"]["results"][0]["content"] == "x" * TEXT_LIMIT
