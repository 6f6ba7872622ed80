"""The agent that does nothing but keep an estate open until it is told to end: what `itbench up` runs."""

import asyncio
from collections.abc import Callable
from typing import Any

from itbench.agents.base import HandOver, Outcome


class Lodger:
    """Says where the estate is, then waits to be cancelled."""

    name, scripted = "person", False

    def __init__(self, emit: Callable[[dict[str, Any]], None]) -> None:
        self._emit = emit

    async def run(self, hand: HandOver) -> Outcome:
        """Announce the doors of the estate and stay until the process is ended."""
        self._emit({"up": {"page": hand.task.page, "endpoints": hand.task.endpoints.model_dump()}})
        await asyncio.Event().wait()
        return Outcome()
