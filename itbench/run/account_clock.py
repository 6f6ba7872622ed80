"""The clock of an account trial: absolute world dates; it stands while staging and grading. Made by the account driver."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from itbench.core.errors import UsageError


class AccountClock:
    """World seconds as the mode says.

    Args:
        mode: `live`, `scaled:N` or `stepped:S`.
        now: world second at which it starts.
        wall: seconds of a monotonic clock; injected by tests.

    Attributes:
        on_step: told of every request that goes past the tools.
    """

    def __init__(self, mode: str, now: float, wall: Callable[[], float] = time.monotonic) -> None:
        kind, _, number = mode.partition(":")
        if kind not in ("live", "scaled", "stepped"):
            raise UsageError("clock mode", seen=mode, expected="live, scaled:N or stepped:S")
        self.rate = {"live": 1.0, "scaled": float(number or 60), "stepped": 0.0}[kind]
        self.step_s = float(number or 5) if kind == "stepped" else 0.0
        self.on_step: Callable[[], object] = lambda: None
        self._now, self._wall, self._since = now, wall, wall()
        self._running, self._brackets = False, 0

    def now(self) -> float:
        """World seconds."""
        if self._running and self.rate:
            wall = self._wall()
            self._now += (wall - self._since) * self.rate
            self._since = wall
        return self._now

    def go(self) -> None:
        """From now on time passes as the mode says."""
        self._running, self._since = True, self._wall()

    def stand(self) -> None:
        """From now on only `pass_time` moves it."""
        self.now()
        self._running = False

    def pass_time(self, seconds: float) -> None:
        """Fast-forward."""
        self._now = self.now() + seconds

    @contextmanager
    def tool_call(self) -> Iterator[None]:
        """Bracket of one step; requests inside are part of it."""
        self.pass_time(self.step_s)
        self._brackets += 1
        try:
            yield
        finally:
            self._brackets -= 1

    @contextmanager
    def request(self, reads: bool) -> Iterator[None]:
        """Bracket of one request at the front: a step of its own unless a tool makes it."""
        if self._running and not self._brackets:
            self.on_step()
            self.pass_time(self.step_s)
        yield

    async def advance(self, seconds: float) -> None:
        """What the `wait` tool does: the future comes at once."""
        self.pass_time(seconds)
