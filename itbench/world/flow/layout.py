"""The arrays behind a net: which row of which array means what, and how they are made from a `FlowSpec`.

The kernel (plain loops, compiled) and the engine (levers, readouts) share these names. First index = quantity, then ring slot
where there is one, last index = edge, pod, row or group, so that one step writes contiguous columns.

A row is (edge, attempt, slot of the called station); a group is (edge, attempt). Rows of an edge are contiguous.
A cohort is what was issued in one step; ring slots count steps modulo the ring length.
"""

from functools import cache
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from itbench.world.flow.spec import MAX_CONCURRENCY, FlowSpec

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# `k`: integers
_K = iter(range(99))
# of an edge: topology, then retries allowed now and the step whose deadline comes next; at last the level of its station
(
    PARENT,
    STATION,
    AFTER,
    ROW,
    GROUP,
    NPODS,
    ATTEMPTS,
    JOIN,
    SOFT,
    QUEUED,
    KID0,
    KID1,
    JOINS,
    RETRIES,
    DUE,
    ROOTED,
    AGAIN,
    HEIGHT,
) = islice(_K, 18)
# of a pod
PSTATION, WORKERS, HEAD, KILL = islice(_K, 4)
# of a station: its pods, its edges in BY_STATION
POD0, POD1, EDGE0, EDGE1 = islice(_K, 4)
# of a row
EDGE, TRY, POD, RGROUP = islice(_K, 4)
# of a group: step whose back-off comes next
(PTR,) = islice(_K, 1)
# single numbers in column 0: number of the step, steps without news, entries of `news`, cohorts that were folded; sizes
STEP, QUIET, TOUCHED, FOLDED, EDGES, PODS, GROUPS, DEPTH, BUCKETS = islice(_K, 9)
# lists: first edge and first station of every level; edges and stations by level; children by parent; edges by station
LEVEL_EDGE, LEVEL_STATION, BY_LEVEL, STATIONS, KIDS, BY_STATION = islice(_K, 6)
NK = next(_K)

# `x`: floats
_X = iter(range(99))
# of an edge: levers, state, scratch of a step
RATE, WORK, TIMEOUT, BACKOFF, CALLS, BUDGET, DELAY, LIMIT = islice(_X, 8)
TOKENS, HELD, REACH, SHARE, OK0, FAIL0, MEAN, VAR, NETWORK, NEW, NEWO = islice(_X, 11)
# latency of the children of an edge (mean, variance, the inputs it was computed from), of a chain that starts with an edge
KIDMEAN, KIDVAR, KIDMARK, CHAINMEAN, CHAINVAR = islice(_X, 5)
# counters of an edge
FIRST, ATTEMPT, OK, FAILED, TIMED_OUT, LATE, REJECTED, RETRIED, RESET, ERROR, LIMITED, LATENCY = islice(_X, 12)
# server-side latency of an edge since the last flush: weight, sums of x, x^2, variance, fixed shift
SW, SX, SXX, SV, SS = islice(_X, 5)
# of a pod: levers, state, counters, scratch
WEIGHT, CAP, FACTOR, QUEUE = islice(_X, 4)
SERVED_PART, BACKLOG, WBAR, RHO, AGE, PODVAR, CPU, SERVED, COUNT, LOAD, ACCEPT, REM, BACKLOG0 = islice(_X, 13)
# of a station
SCV, READY = islice(_X, 2)
# of a row: moments, P(later than the timeout), rounding, counters, faults, scratch
ROWMEAN, ROWVAR, ROWMISS, DEBT, INFLIGHT, DONE, BROKEN, REFUSE, HANG, SPOIL, ARRIVE, HUNG = islice(_X, 12)
# of a group: calls leaving now and their origins; client-side latency since the last flush as above
GO, GOO, AW, AX, AXX, AV, AS = islice(_X, 7)
# single numbers in column 0: now, length of the step, time of the last flush, bad outcomes at the last look
NOW, DT, FLUSHED, BAD0 = islice(_X, 4)
(BOUND,) = islice(_X, 1)
NX = next(_X)

# `rows`: rings of rows: accepted, still waited for, mean origin; work done per step for rows with children, amount x issue step
AMOUNT, OPEN, ORIGIN, LEFT, ISSUE = range(5)
# `rings`, of an edge by origin: answered, lost, both as passed on to the parent, LEFT summed over rows, has news;
# of a group: waiting for back-off, amount x origin; of a pod: work of a cohort; of time (column 0): middle and length of a step
ANSWERED, LOST, PASSED, PASSEDF, LEFTE, FRESH, WAITING, WAITINGO, COHORT, MIDDLE, LENGTH = range(11)
# `hist`
CLIENT, SERVER = range(2)

GRID = 512
SETTLED = 20
"""Steps without news before the flow counts as at rest."""
TOKENS_MAX = 100.0
"""Most tokens a retry budget holds."""
NOBODY = 1e-9
"""Requests: a queue shorter than that is empty."""


class State(NamedTuple):
    """All arrays of a net; few, because every one lengthens compilation.

    `k` integers and `x` floats (quantity, index); `rows` and `rings` (quantity, ring slot, index); `news` parents with news
    (edge, origin step); `hist` calls per latency bucket (side, edge, bucket); `erl` waiting probability of M/M/c
    (workers - 1, utilisation).
    """

    k: Ints
    x: Floats
    rows: Floats
    rings: Floats
    news: Ints
    hist: Floats
    erl: Floats


DYNAMIC = ("k", "x", "rows", "rings", "news", "hist")


@cache
def erlang_table() -> Floats:
    """P(wait) of M/M/c, for all nets of a process; row c-1, column utilisation in steps of 1/512 (Erlang B recursion, then C)."""
    rho = np.linspace(0, 1, GRID + 1)
    out = np.zeros((MAX_CONCURRENCY, GRID + 1))
    for c in range(1, MAX_CONCURRENCY + 1):
        blocked = np.ones(GRID + 1)
        for k in range(1, c + 1):
            blocked = c * rho * blocked / (k + c * rho * blocked)
        out[c - 1] = blocked / (1 - rho * (1 - blocked))
    return out


def build(spec: FlowSpec, slots: int, bounds: Floats) -> State:
    """Arrays of a net at time 0 with all weights 0 and all rates 0; rings of `slots` steps."""
    edges = len(spec.edges)
    rows = sum(e.attempts * spec.stations[e.station].slots for e in spec.edges)
    groups, pods = sum(e.attempts for e in spec.edges), sum(s.slots for s in spec.stations)
    width = max(rows, groups, pods, len(bounds), len(spec.stations) + 1)
    k, x = np.zeros((NK, width), np.int64), np.zeros((NX, width))
    k[[EDGES, PODS, GROUPS, BUCKETS], 0] = edges, pods, groups, len(bounds)
    x[BOUND, : len(bounds)] = bounds
    _order(spec, k)
    _pods(spec, k, x)
    _rows(spec, k)
    _lists(spec, k)
    _edges(spec, x)
    rings = np.zeros((LENGTH + 1, slots, max(edges, groups, pods)))
    rings[LENGTH, :, 0] = 1.0
    return State(
        k=k, x=x, rows=np.zeros((ISSUE + 1, slots, rows)), rings=rings, news=np.zeros((2, edges * slots), np.int64),
        hist=np.zeros((2, edges, len(bounds) + 1)), erl=erlang_table(),
    )  # fmt: skip


def _order(spec: FlowSpec, k: Ints) -> None:
    level = spec.levels()
    stations = sorted(range(len(spec.stations)), key=lambda i: (level[i], i))
    edges = sorted(range(len(spec.edges)), key=lambda e: (level[spec.edges[e].station], e))
    depth = max(level) + 1
    k[DEPTH, 0] = depth
    k[STATIONS, : len(stations)], k[BY_LEVEL, : len(edges)] = stations, edges
    k[HEIGHT, : len(edges)] = [level[edge.station] for edge in spec.edges]
    heights = np.arange(depth + 1)
    k[LEVEL_STATION, : depth + 1] = np.searchsorted([level[s] for s in stations], heights)
    k[LEVEL_EDGE, : depth + 1] = np.searchsorted([level[spec.edges[e].station] for e in edges], heights)


def _pods(spec: FlowSpec, k: Ints, x: Floats) -> None:
    first = 0
    for i in k[STATIONS, : len(spec.stations)]:
        s = spec.stations[i]
        part = slice(first, first + s.slots)
        k[POD0, i], k[POD1, i] = part.start, part.stop
        k[PSTATION, part], k[WORKERS, part] = i, s.concurrency
        x[CAP, part], x[QUEUE, part], x[FACTOR, part], x[WBAR, part] = s.capacity_cpu, s.queue, 1.0, 1e-9
        x[SCV, i] = s.scv
        first = part.stop


def _rows(spec: FlowSpec, k: Ints) -> None:
    row = group = 0
    for e in k[BY_LEVEL, : len(spec.edges)]:
        edge, pods = spec.edges[e], spec.stations[spec.edges[e].station].slots
        k[[PARENT, STATION, AFTER, ROW, GROUP], e] = edge.parent, edge.station, edge.after, row, group
        k[[NPODS, ATTEMPTS, RETRIES], e] = pods, edge.attempts, edge.retries
        k[AGAIN, e] = edge.retry_errors
        k[[JOIN, SOFT, QUEUED, ROOTED], e] = edge.join and edge.parent >= 0, edge.soft, edge.queued, edge.parent < 0
        for attempt in range(edge.attempts):
            part = slice(row, row + pods)
            k[EDGE, part], k[TRY, part], k[RGROUP, part] = e, attempt, group
            k[POD, part] = k[POD0, edge.station] + np.arange(pods)
            row, group = row + pods, group + 1


def _lists(spec: FlowSpec, k: Ints) -> None:
    kids: list[int] = []
    for e in range(len(spec.edges)):
        mine = [c for c, x in enumerate(spec.edges) if x.parent == e]
        k[[KID0, KID1, JOINS], e] = len(kids), len(kids) + len(mine), any(spec.edges[c].join for c in mine)
        kids += mine
    by_station: list[int] = []
    for s in range(len(spec.stations)):
        mine = [e for e, x in enumerate(spec.edges) if x.station == s]
        k[[EDGE0, EDGE1], s] = len(by_station), len(by_station) + len(mine)
        by_station += mine
    k[KIDS, : len(kids)], k[BY_STATION, : len(by_station)] = kids, by_station


def _edges(spec: FlowSpec, x: Floats) -> None:
    levers = [WORK, TIMEOUT, BACKOFF, CALLS, BUDGET, DELAY]
    for i, e in enumerate(spec.edges):
        x[levers, i] = e.work_s, e.timeout_s, e.backoff_s, e.calls, e.budget, e.delay_s
    x[LIMIT] = np.inf
    x[[REACH, SHARE]] = 1.0
