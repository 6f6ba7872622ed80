"""The arrays behind a net: which row of which array means what, and how they are made from a `FlowSpec`.

The kernel (plain loops, compiled) and the engine (levers, readouts) share these names. First index = quantity, then ring slot
where there is one, last index = edge, pod, row or group, so that one step writes contiguous columns.

A row is (edge, attempt, slot of the called station); a group is (edge, attempt). Rows of an edge are contiguous.
A cohort is what was issued in one step; ring slots count steps modulo the ring length.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from itbench.world.flow.spec import MAX_CONCURRENCY, FlowSpec

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# integers of an edge
(PARENT, STATION, AFTER, ROW, GROUP, NPODS, ATTEMPTS, JOIN, SOFT, QUEUED, KID0, KID1, JOINS, RETRIES, DUE, ROOTED) = (
    range(16)
)
NEI = 16
# floats of an edge: levers first, then state and scratch
(
    RATE,
    WORK,
    TIMEOUT,
    BACKOFF,
    CALLS,
    BUDGET,
    DELAY,
    LIMIT,
    TOKENS,
    HELD,
    REACH,
    OK0,
    FAIL0,
    MEAN,
    VAR,
    NETWORK,
    NEW,
    NEWO,
    SHARE,
) = range(19)
NEF = 19
# counters of an edge
(FIRST, ATTEMPT, OK, FAILED, TIMED_OUT, LATE, REJECTED, RETRIED, RESET, ERROR, LIMITED, LATENCY) = range(12)
NEC = 12
# integers of a pod
PSTATION, WORKERS, HEAD, KILL = range(4)
# floats of a pod
(
    WEIGHT,
    CAP,
    FACTOR,
    QUEUE,
    SERVED_PART,
    BACKLOG,
    WBAR,
    RHO,
    AGE,
    PODVAR,
    CPU,
    SERVED,
    COUNT,
    LOAD,
    ACCEPT,
    REM,
    BACKLOG0,
) = range(17)
NPF = 17
# integers of a station (range of pods, range of its edges in the list of edges by station)
POD0, POD1, EDGE0, EDGE1 = range(4)
# floats of a station
SCV, READY = range(2)
# integers of a row
EDGE, TRY, POD, RGROUP = range(4)
# floats of a row
(ROWMEAN, ROWVAR, DEBT, INFLIGHT, DONE, BROKEN, REFUSE, HANG, SPOIL, ARRIVE, HUNG) = range(11)
NRF = 11
# rings over rows, edges, groups, time
AMOUNT, OPEN, ORIGIN, LEFT, ISSUE = range(5)
ANSWERED, LOST, PASSED, PASSEDF, LEFTE = range(5)
WAITING, WAITINGO = range(2)
MIDDLE, LENGTH = range(2)
# groups
PTR = 0
GO, GOO, AW, AX, AXX, AV, AS = range(7)
# server-side accumulators of an edge
SW, SX, SXX, SV, SS = range(5)
# clock: integers and floats
STEP, QUIET, TOUCHED, FOLDED = range(4)
NOW, DT, FLUSHED, BAD0, STARTED = range(5)
# histograms
CLIENT, SERVER = range(2)

GRID = 512


class State(NamedTuple):
    """All arrays of a net. `ci, cf` clock; `ei, ef, ec` edges; `pi, pf` pods; `si, sf` stations; `ri, rf` rows; `gi, gf` groups;
    `sa` server accumulators; `rr, er, pr, gr, tr` rings of rows, edges, pods (work), groups, time; `tl, tf` list and flags of parents
    with news; `hist` histograms; `le, lp` first edge and first station of every level; `eo, so` edges and stations by level;
    `kids, se` children by parent, edges by station; `erl` waiting probability of M/M/c; `bounds` of the buckets."""

    ci: Ints
    cf: Floats
    ei: Ints
    ef: Floats
    ec: Floats
    pi: Ints
    pf: Floats
    si: Ints
    sf: Floats
    ri: Ints
    rf: Floats
    gi: Ints
    gf: Floats
    sa: Floats
    rr: Floats
    er: Floats
    pr: Floats
    gr: Floats
    tr: Floats
    tl: Ints
    tf: Ints
    hist: Floats
    le: Ints
    lp: Ints
    eo: Ints
    so: Ints
    kids: Ints
    se: Ints
    erl: Floats
    bounds: Floats


DYNAMIC = (
    "ci",
    "cf",
    "ei",
    "ef",
    "ec",
    "pi",
    "pf",
    "sf",
    "rf",
    "gi",
    "gf",
    "sa",
    "rr",
    "er",
    "pr",
    "gr",
    "tr",
    "tl",
    "tf",
    "hist",
)


def erlang_table() -> Floats:
    """P(wait) of M/M/c; row c-1, column utilisation in steps of 1/512 (Erlang B recursion, then C)."""
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
    level = spec.levels()
    so = np.array(sorted(range(len(spec.stations)), key=lambda i: (level[i], i)), np.int64)
    eo = np.array(sorted(range(len(spec.edges)), key=lambda e: (level[spec.edges[e].station], e)), np.int64)
    si, pi, pf = _pods(spec, so)
    ei, ri, groups = _rows(spec, eo, si)
    kids, se = _lists(spec, ei, si)
    n, m, p, rows = len(spec.stations), len(spec.edges), pi.shape[1], ri.shape[1]
    depth = max(level) + 1
    z = np.zeros
    tr = z((2, slots))
    tr[LENGTH] = 1.0
    sf = z((2, n))
    sf[SCV] = [s.scv for s in spec.stations]
    return State(
        ci=z(4, np.int64), cf=z(5), ei=ei, ef=_edge_floats(spec), ec=z((NEC, m)), pi=pi, pf=pf, si=si, sf=sf,
        ri=ri, rf=z((NRF, rows)), gi=z((1, groups), np.int64), gf=z((7, groups)), sa=z((5, m)),
        rr=z((5, slots, rows)), er=z((5, slots, m)), pr=z((slots, p)), gr=z((2, slots, groups)), tr=tr,
        tl=z((2, m * slots), np.int64), tf=z((slots, m), np.int64), hist=z((2, m, len(bounds) + 1)),
        le=np.searchsorted([level[spec.edges[e].station] for e in eo], np.arange(depth + 1)).astype(np.int64),
        lp=np.searchsorted([level[s] for s in so], np.arange(depth + 1)).astype(np.int64),
        eo=eo, so=so, kids=kids, se=se, erl=erlang_table(), bounds=bounds,
    )  # fmt: skip


def _pods(spec: FlowSpec, so: Ints) -> tuple[Ints, Ints, Floats]:
    si = np.zeros((4, len(spec.stations)), np.int64)
    owner = [i for i in so for _ in range(spec.stations[i].slots)]
    for i in so:
        si[POD0, i] = owner.index(i)
        si[POD1, i] = si[POD0, i] + spec.stations[i].slots
    pi, pf = np.zeros((4, len(owner)), np.int64), np.zeros((NPF, len(owner)))
    pi[PSTATION] = owner
    pi[WORKERS] = [spec.stations[i].concurrency for i in owner]
    pf[CAP] = [spec.stations[i].capacity_cpu for i in owner]
    pf[QUEUE] = [spec.stations[i].queue for i in owner]
    pf[FACTOR] = 1.0
    pf[WBAR] = 1e-9
    return si, pi, pf


def _rows(spec: FlowSpec, eo: Ints, si: Ints) -> tuple[Ints, Ints, int]:
    ei = np.zeros((NEI, len(spec.edges)), np.int64)
    rows: list[tuple[int, int, int, int]] = []
    groups = 0
    for e in eo:
        edge, first = spec.edges[e], int(si[POD0, spec.edges[e].station])
        ei[[PARENT, STATION, AFTER, ROW, GROUP], e] = edge.parent, edge.station, edge.after, len(rows), groups
        ei[[NPODS, ATTEMPTS, RETRIES], e] = spec.stations[edge.station].slots, edge.attempts, edge.retries
        ei[[JOIN, SOFT, QUEUED], e] = edge.join and edge.parent >= 0, edge.soft, edge.queued
        for a in range(edge.attempts):
            rows += [(int(e), a, first + j, groups + a) for j in range(spec.stations[edge.station].slots)]
        groups += edge.attempts
    return ei, np.array(rows, np.int64).T.copy(), groups


def _lists(spec: FlowSpec, ei: Ints, si: Ints) -> tuple[Ints, Ints]:
    kids: list[int] = []
    for e in range(len(spec.edges)):
        ei[KID0, e] = len(kids)
        kids += [c for c, x in enumerate(spec.edges) if x.parent == e]
        ei[KID1, e] = len(kids)
        ei[JOINS, e] = any(spec.edges[c].join for c in kids[ei[KID0, e] :])
        ei[ROOTED, e] = spec.edges[e].parent < 0
    by_station: list[int] = []
    for s in range(len(spec.stations)):
        si[EDGE0, s] = len(by_station)
        by_station += [e for e, x in enumerate(spec.edges) if x.station == s]
        si[EDGE1, s] = len(by_station)
    return np.array([*kids, -1], np.int64), np.array(by_station, np.int64)


def _edge_floats(spec: FlowSpec) -> Floats:
    ef = np.zeros((NEF, len(spec.edges)))
    for e, x in enumerate(spec.edges):
        ef[[WORK, TIMEOUT, BACKOFF, CALLS, BUDGET, DELAY], e] = (
            x.work_s,
            x.timeout_s,
            x.backoff_s,
            x.calls,
            x.budget,
            x.delay_s,
        )
    ef[LIMIT] = np.inf
    ef[[REACH, SHARE]] = 1.0
    return ef
