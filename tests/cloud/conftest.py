"""One account in its own process, shared by the tests of a module; its front runs on a loop in a thread."""

import asyncio
import threading
from dataclasses import dataclass
from typing import Any

import pytest

from itbench.cloud.access import Identity
from itbench.cloud.client import Clients
from itbench.cloud.front import Front
from itbench.cloud.process import AccountProcess

NOW = 6_742_800.0
STAGER = Identity("stager", "admin", "AKIASTAGER", "a")
ONCALL = Identity("oncall", "operator", "AKIAONCALL", "b")
READER = Identity("reader", "read-only", "AKIAREADER", "c")


@dataclass
class Stand:
    """An account and those who may use it."""

    front: Front
    loop: asyncio.AbstractEventLoop

    def run(self, work: Any) -> Any:
        """Run a coroutine on the front's loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(120)

    def clients(self, identity: Identity) -> Clients:
        """Clients with these keys."""
        return Clients(self.front.url, identity)


@pytest.fixture(scope="module")
def loop():
    """An event loop in a thread."""
    made = asyncio.new_event_loop()
    thread = threading.Thread(target=made.run_forever, daemon=True)
    thread.start()
    yield made
    made.call_soon_threadsafe(made.stop)
    thread.join()
    made.close()


@pytest.fixture(scope="module")
def stand(loop):
    """An empty account with three identities."""

    async def start() -> Front:
        process = AccountProcess(seed=7)
        await process.start()
        front = Front(process, lambda: NOW)
        await front.start()
        front.admit(STAGER, ONCALL, READER)
        return front

    front = asyncio.run_coroutine_threadsafe(start(), loop).result(120)
    made = Stand(front, loop)
    yield made
    made.run(front.close())
    made.run(front.process.close())
