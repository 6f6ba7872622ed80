"""The pacer of a trial: how fast world time passes for those who ask, and what time it is on the wire.

Modes: `live` (1:1 with the wall), `scaled` (N:1), `stepped` (each step costs some seconds; deterministic). In every mode the
clock can be made to stand, as it does while a playbook runs; then only settling moves it. API and telemetry servers call
`enter` and `wait`, the tool registry brackets its calls with `tool_call()`, the runner calls `go`, `stand` and `pass_time`.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import Literal

from itbench.core.clock import unix
from itbench.core.errors import UsageError
from itbench.world.estate import World

Mode = Literal["live", "scaled", "stepped"]
NEAR_S = 5.0
"""In stepped mode a client's time this close to wall now means world now."""
SLACK_S = 0.9
"""How far wire now may be from wall now. Clients show `<invalid>` for times more than 1 s in the future."""
NAP_S = 0.05
"""Longest wall sleep of a blocked request before it looks again (others may have moved the world)."""
YIELD_S = 0.001


class WorldPacer:
    """Lets world time pass on behalf of requests and translates times.

    Args:
        world: what moves.
        mode: `live`, `scaled` or `stepped`.
        rate: world seconds per wall second in `scaled` mode (`live` is 1).
        step_s: what one step costs in `stepped` mode.
        wall: Unix seconds now; injected by tests.
        standing: begin with a standing clock (staging).

    Attributes:
        on_step: told of every paid request from outside the tool registry, so that the trial counts it as a step.

    Raises:
        UsageError: unknown mode, or a number that makes no sense.
    """

    def __init__(
        self,
        world: World,
        mode: Mode = "live",
        rate: float = 1.0,
        step_s: float = 5.0,
        *,
        wall: Callable[[], float] = time.time,
        standing: bool = False,
    ) -> None:
        if mode not in ("live", "scaled", "stepped"):
            raise UsageError("clock mode", seen=mode, expected="live, scaled or stepped")
        if not 0 < rate < inf or not 0 < step_s < inf:
            raise UsageError("clock", seen=(rate, step_s), expected="rate > 0 and step_s > 0")
        self.world, self.mode, self.step_s = world, mode, step_s
        self.rate = 1.0 if mode == "live" else rate
        self.standing = True
        self.on_step: Callable[[], object] = lambda: None
        self._wall = wall
        self._anchor = (world.now, wall())
        self._offset = 0
        self._note_offset()
        self._brackets = 0
        if not standing:
            self.go()

    # ---- the runner's side

    def go(self) -> None:
        """From now on time passes as the mode says."""
        self.standing = False
        self._anchor = (self.world.now, self._wall())
        self._note_offset()

    def stand(self) -> None:
        """From now on the clock stands, except for settling and `pass_time`."""
        if not self.standing:
            self._follow()
        self.standing = True

    def pass_time(self, seconds: float) -> None:
        """Let world time pass at once: waits, gates, fast-forward."""
        if seconds < 0:
            raise UsageError("time to pass", seen=seconds, expected="0 or more seconds")
        self._follow()
        self.world.advance(self.world.now + seconds)
        self._anchor = (self.world.now, self._wall())
        self._note_offset()

    @contextmanager
    def tool_call(self) -> Iterator[None]:
        """Brackets one tool call: it costs one step, and requests made inside cost nothing more."""
        if self._brackets == 0:
            self._pay()
        self._brackets += 1
        try:
            yield
        finally:
            self._brackets -= 1

    def _pay(self) -> None:
        if self.mode == "stepped" and not self.standing:
            self.world.advance(self.world.now + self.step_s)
        else:
            self._follow()
        self._note_offset()

    def _follow(self) -> None:
        """Catch up with the wall, or with changes made at this moment where the clock does not follow the wall."""
        self.world.advance(max(self._target(), self.world.now))

    def _target(self) -> float:
        if self.standing or self.mode == "stepped":
            return self.world.now
        since, wall = self._anchor
        return since + (self._wall() - wall) * self.rate

    # ---- the servers' side

    def enter(self, *, outside: bool, free: bool) -> None:
        """Before a request is served: the world catches up with the clock; a paid request in stepped mode takes a step."""
        if outside and not free and self._brackets == 0:
            self._pay()
            if not self.standing:
                self.on_step()
        else:
            self._follow()
            self._note_offset()

    async def wait(self, until: float = inf) -> None:
        """Let the world go on to its next event, at most to second `until`."""
        if self.standing:
            await asyncio.sleep(NAP_S)
            self._follow()
            return
        if self.mode == "stepped":
            # Other requests get their turn between two events; the one that waits alone sees every event at its own time.
            await asyncio.sleep(YIELD_S)
            self.world.advance(min(max(self.world.next_event(), self.world.now), until))
            self._note_offset()
            return
        target = min(self.world.next_event(), until)
        away = max(target - self._target(), 0.0) / self.rate
        await asyncio.sleep(min(away, NAP_S) if away > 0 else YIELD_S)
        self._follow()

    def settle(self) -> None:
        """After a write: while staging controllers and pod starts come to rest, otherwise controllers react at this moment."""
        if self.standing:
            self.world.settle()
            self._note_offset()
        else:
            self.world.advance(self.world.now)

    # ---- time on the wire

    def now(self) -> float:
        """World seconds."""
        return self.world.now

    def _note_offset(self) -> None:
        """Wire now is wall now. Whole seconds that change only when they are off by one: no time flickers between answers."""
        exact = self._wall() - self.world.now
        if abs(exact - self._offset) >= SLACK_S:
            self._offset = round(exact)
        for cluster in self.world.clusters.values():
            cluster.calendar_ahead_s = self._offset - unix(0.0)

    def to_wire(self, world: float) -> float:
        """World seconds -> Unix seconds that a client should see."""
        return world + self._offset

    def from_wire(self, wire: float) -> float:
        """Unix seconds that a client sent -> world seconds."""
        if self.mode == "stepped" and abs(wire - self._wall()) <= NEAR_S:
            return self.world.now
        return wire - self._offset
