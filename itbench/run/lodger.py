"""The agent that is a person: keeps an estate open until an answer comes in by `itbench submit`, or it is told to end.

What `itbench up` runs.
"""

from collections.abc import Callable
from typing import Any

from itbench.agents.base import HandOver, Outcome, concluded
from itbench.core.documents.task import Task
from itbench.tools.http import ToolServer


class Lodger:
    """Says where the estate and its tools are, then waits."""

    name, scripted = "person", False

    def __init__(self, emit: Callable[[dict[str, Any]], None]) -> None:
        self._emit = emit

    async def run(self, hand: HandOver) -> Outcome:
        """Announce the doors of the estate and stay until there is an answer, which is graded, or the process is ended."""

        def served(url: str, token: str) -> Task:
            doors = {"tools_url": url, "tools_token": token, "mcp_url": f"{url}/mcp"}
            return hand.task.model_copy(update={"endpoints": hand.task.endpoints.model_copy(update=doors)})

        server = ToolServer(hand.toolbox)
        task = await server.open(served)
        try:
            self._emit({"up": {"page": task.page, "endpoints": task.endpoints.model_dump()}})
            await hand.toolbox.context.submitted.wait()
        finally:
            await server.close()
        return concluded(hand, "none")
