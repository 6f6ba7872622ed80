"""A person as the agent: tools over HTTP, and an answer that ends the stay."""

import asyncio
import contextlib
from pathlib import Path
from typing import Any

from itbench.agents.base import HandOver
from itbench.core.documents.task import Limits, Task
from itbench.run.lodger import Lodger
from itbench.tools.catalog import toolbox
from itbench.tools.context import Meter, ToolContext
from itbench.tools.remote import Connection


class Clock:
    def now(self) -> float:
        return 0.0

    def tool_call(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    async def advance(self, seconds: float) -> None:
        """Nothing moves."""


async def test_a_person_uses_the_tools_and_hands_in_an_answer_that_counts(tmp_path: Path) -> None:
    task = Task(trial="t", domain="sre", page="Look.\n", answers=("verdict",))
    context = ToolContext(
        endpoints=task.endpoints, clock=Clock(), meter=Meter(limits=Limits()), scratch=tmp_path, answers=("verdict",)
    )
    hand = HandOver(task=task, toolbox=toolbox(context, ("wait", "submit")), folder=tmp_path, workspace=tmp_path)
    said: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    stay = asyncio.create_task(Lodger(said.put_nowait).run(hand))
    doors = (await said.get())["up"]["endpoints"]
    person = Connection(doors["tools_url"], doors["tools_token"])
    assert (await asyncio.to_thread(person.task)).endpoints.tools_url == doors["tools_url"]
    assert (await asyncio.to_thread(person.call, "wait", {"seconds": 1})).ok
    assert not (await asyncio.to_thread(person.submit, {"verdict": "no such word"})).ok
    assert not stay.done()
    assert (await asyncio.to_thread(person.submit, {"verdict": "incident"})).ok
    outcome = await stay
    assert outcome.submission is not None
    assert outcome.submission.verdict == "incident"
