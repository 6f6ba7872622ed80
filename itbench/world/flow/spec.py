"""What a request-flow net is: stations (groups of pods) and call edges between them. Checked once, then never changed.

The world builds a `FlowSpec` from an app's documents; `engine.Flow` runs it. What changes while it runs are levers of the engine.
"""

from dataclasses import dataclass
from math import inf, isfinite

from itbench.core.errors import ScenarioDefect

MAX_CONCURRENCY = 64


@dataclass(frozen=True)
class Station:
    """One group of like pods; every pod has its own first-in-first-out queue.

    Args:
        name: for messages.
        slots: most pods it can ever have; a slot takes part once the engine's `set_ready` gives it weight.
        concurrency: requests one pod works on at the same time (1 to 64).
        capacity_cpu: cpu seconds one pod works off per second when all its workers are busy.
        queue: most requests waiting or in work in one pod; further ones are rejected. inf = unbounded.
        scv: squared coefficient of variation of the work (1 exponential, 0 constant).
    """

    name: str
    slots: int
    concurrency: int = 1
    capacity_cpu: float = 1.0
    queue: float = inf
    scv: float = 1.0


@dataclass(frozen=True)
class Edge:
    """One kind of call. The same operation reached by two paths is two edges.

    Args:
        name: for messages.
        parent: index of the edge whose handling makes this call, -1 for the root of a journey.
        station: index of the station that answers.
        work_s: mean cpu seconds of one call at the callee (without what its own calls cost).
        timeout_s: the caller gives up this long after each attempt; the callee works on.
        retries: attempts after the first one.
        max_retries: highest value `retries` may take later (None: as `retries`).
        backoff_s: wait before a retry.
        calls: calls per request of the parent; below 1 only that share of the requests calls at all.
        retry_errors: an answer that is an error is tried again too, not only silence, resets and refusals.
        budget: tokens a success deposits for retries (0.1 = retry budget of 10 %), negative = no budget.
        after: index of the sibling that must have answered first (latencies add), -1 = with the others at once.
        join: the parent waits for the answer; False = fire and forget.
        soft: a final failure of this call does not fail the parent.
        queued: a broker holds the calls until a consumer takes them (parent does not wait; needs join=False or a root).
        delay_s: network round trip added to every attempt.
    """

    name: str
    parent: int
    station: int
    work_s: float
    timeout_s: float = inf
    retries: int = 0
    max_retries: int | None = None
    backoff_s: float = 0.0
    calls: float = 1.0
    retry_errors: bool = True
    budget: float = -1.0
    after: int = -1
    join: bool = True
    soft: bool = False
    queued: bool = False
    delay_s: float = 0.0

    @property
    def attempts(self) -> int:
        """Attempts the net must have room for."""
        return 1 + max(self.retries, self.max_retries or 0)


@dataclass(frozen=True)
class FlowSpec:
    """A net of stations and edges.

    Raises:
        ScenarioDefect: an index is out of range, stations call each other in a circle, or a number makes no sense.
    """

    stations: tuple[Station, ...]
    edges: tuple[Edge, ...]

    def __post_init__(self) -> None:
        for station in self.stations:
            _check_station(station)
        for index, edge in enumerate(self.edges):
            _check_edge(self, index, edge)
        self.levels()

    def levels(self) -> list[int]:
        """Longest path from a journey root for every station; raises ScenarioDefect on a circle of calls."""
        level = [0] * len(self.stations)
        for _ in range(len(self.stations) + 1):
            moved = ""
            for edge in self.edges:
                low = level[self.edges[edge.parent].station] + 1 if edge.parent >= 0 else 0
                if level[edge.station] < low:
                    level[edge.station], moved = low, edge.name
            if not moved:
                return level
        raise ScenarioDefect(
            "stations call each other in a circle", seen=moved, hint="give the called back operation its own station"
        )


def _check_station(s: Station) -> None:
    if not 1 <= s.concurrency <= MAX_CONCURRENCY:
        raise ScenarioDefect(f"concurrency of station {s.name}", seen=s.concurrency, expected=f"1 to {MAX_CONCURRENCY}")
    if s.slots < 1 or not s.capacity_cpu > 0 or not s.queue > 0 or not 0 <= s.scv < inf:
        raise ScenarioDefect(f"station {s.name}", seen=s, expected="slots >= 1, capacity_cpu > 0, queue > 0, scv >= 0")


def _check_edge(spec: FlowSpec, index: int, e: Edge) -> None:
    if not -1 <= e.parent < index:
        raise ScenarioDefect(f"parent of edge {e.name}", seen=e.parent, expected=f"-1 to {index - 1}, parents first")
    if not 0 <= e.station < len(spec.stations):
        raise ScenarioDefect(f"station of edge {e.name}", seen=e.station, expected=f"0 to {len(spec.stations) - 1}")
    if e.after != -1 and not (0 <= e.after < index and spec.edges[e.after].parent == e.parent >= 0):
        raise ScenarioDefect(f"after of edge {e.name}", seen=e.after, expected="an earlier edge of the same parent")
    if e.after != -1 and not spec.edges[e.after].join:
        raise ScenarioDefect(f"after of edge {e.name}", seen=spec.edges[e.after].name, expected="a joined edge")
    numbers = (e.work_s, e.backoff_s, e.calls, e.delay_s)
    if not all(isfinite(x) and x >= 0 for x in numbers) or not e.timeout_s > 0 or e.retries < 0 or e.work_s == 0:
        raise ScenarioDefect(f"numbers of edge {e.name}", seen=e, expected="work_s, timeout_s > 0 and the rest >= 0")
    if e.queued and e.join and e.parent >= 0:
        raise ScenarioDefect(f"queued edge {e.name}", seen="join=True", expected="join=False: a broker holds the call")
