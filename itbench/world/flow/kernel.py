"""One step of the request flow and the choice of its length, compiled by numba; only `compiled` imports this.

Formulation: fluid first-in-first-out cohorts with origins. Every cohort knows the step it was issued in and that of its caller;
outcomes are decided when work completes. Order of a step: pods that died, deadlines, back-off, forward level by level,
backward level by level. Equations: docs/physics.md.
"""

import math

from itbench.world.flow import jit
from itbench.world.flow import layout as at
from itbench.world.flow.backward import backward
from itbench.world.flow.forward import forward
from itbench.world.flow.jit import compiled
from itbench.world.flow.layout import State
from itbench.world.flow.native import Code
from itbench.world.flow.outcomes import tail
from itbench.world.flow.rings import bury, deadlines, open_step, releases

MIN_STEP, MAX_FINE, MAX_STEP = 0.02, 0.25, 1.0


@compiled
def reaches(st: State) -> None:
    """Share of the parents that get as far as a child called after another: the success share of its predecessors."""
    for e in range(st.k[at.EDGES, 0]):
        ok, bad = st.x[at.OK, e] - st.x[at.OK0, e], st.x[at.FAILED, e] - st.x[at.FAIL0, e]
        st.x[at.OK0, e] = st.x[at.OK, e]
        st.x[at.FAIL0, e] = st.x[at.FAILED, e]
        if ok + bad > 1e-12:
            st.x[at.SHARE, e] = ok / (ok + bad)
        b = st.k[at.AFTER, e]
        if b >= 0:
            st.x[at.REACH, e] = st.x[at.REACH, b] * (1.0 if st.k[at.SOFT, b] == 1 else st.x[at.SHARE, b])


@compiled
def step(st: State, dt: float) -> None:
    """One step of dt seconds."""
    for p in range(st.k[at.PODS, 0]):
        if st.k[at.KILL, p] == 1:
            bury(st, p)
    open_step(st, dt)
    reaches(st)
    deadlines(st)
    releases(st)
    n = st.k[at.STEP, 0]
    for e in range(st.k[at.EDGES, 0]):
        st.x[at.NEW, e] = st.x[at.RATE, e] * dt if st.k[at.ROOTED, e] == 1 else 0.0
        st.x[at.NEWO, e] = st.x[at.NEW, e] * n
    depth = st.k[at.DEPTH, 0]
    for level in range(depth):
        forward(st, level)
    for level in range(depth - 1, -1, -1):
        backward(st, level)
    st.k[at.TOUCHED, 0] = 0
    st.x[at.NOW, 0] += dt


@compiled
def fill(st: State, side: int, e: int, w: float, mean: float, square: float, spread: float, shift: float) -> None:
    """Spread w calls over the buckets: a gamma distribution behind a fixed shift."""
    mean, shift = mean / w, shift / w
    var = spread / w + max(square / w - mean * mean, 0.0)
    last = 0.0
    for k in range(st.k[at.BUCKETS, 0]):
        x = st.x[at.BOUND, k] - shift
        below = max(1.0 - tail(x, mean - shift, var), last) if x > 0.0 else last
        st.hist[side, e, k] += w * (below - last)
        last = below
    st.hist[side, e, st.k[at.BUCKETS, 0]] += w * (1.0 - last)


@compiled
def flush(st: State) -> None:
    for e in range(st.k[at.EDGES, 0]):
        for g in range(st.k[at.GROUP, e], st.k[at.GROUP, e] + st.k[at.ATTEMPTS, e]):
            if st.x[at.AW, g] > 0.0:
                fill(st, at.CLIENT, e, st.x[at.AW, g], st.x[at.AX, g], st.x[at.AXX, g], st.x[at.AV, g], st.x[at.AS, g])
                for q in range(at.AW, at.AS + 1):
                    st.x[q, g] = 0.0
        if st.x[at.SW, e] > 0.0:
            fill(st, at.SERVER, e, st.x[at.SW, e], st.x[at.SX, e], st.x[at.SXX, e], st.x[at.SV, e], st.x[at.SS, e])
            for q in range(at.SW, at.SS + 1):
                st.x[q, e] = 0.0
    st.x[at.FLUSHED, 0] = st.x[at.NOW, 0]


@compiled
def pick(st: State) -> float:
    """Step length: fine while answers come late or queues move and for 20 steps after, else up to one second.

    At rest too a step stays well below the shortest timeout: what is in work when a step ends must not look overdue in the next.
    """
    shortest, longest = math.inf, 0.0
    for e in range(st.k[at.EDGES, 0]):
        if st.x[at.TIMEOUT, e] < math.inf:
            longest = max(longest, st.x[at.TIMEOUT, e])
            if st.x[at.ATTEMPT, e] > 0.0:
                shortest = min(shortest, st.x[at.TIMEOUT, e])
        longest = max(longest, st.x[at.BACKOFF, e])
    at_rest = st.k[at.QUIET, 0] >= at.SETTLED
    step_s = min(0.3 * shortest, MAX_STEP) if at_rest else min(0.1 * shortest, MAX_FINE)
    return float(max(step_s, MIN_STEP, longest / (0.75 * st.rows.shape[1])))


@compiled
def judge(st: State) -> None:
    """Count the steps without news."""
    bad = total = move = 0.0
    full = False
    for e in range(st.k[at.EDGES, 0]):
        bad += st.x[at.TIMED_OUT, e] + st.x[at.LATE, e] + st.x[at.RESET, e]
        total += st.x[at.ATTEMPT, e]
    for p in range(st.k[at.PODS, 0]):
        move = max(move, abs(st.x[at.BACKLOG, p] - st.x[at.BACKLOG0, p]) / st.x[at.CAP, p])
        st.x[at.BACKLOG0, p] = st.x[at.BACKLOG, p]
        full = full or st.x[at.ACCEPT, p] < 1.0
    hot = full or bad - st.x[at.BAD0, 0] > 1e-5 * total / max(st.k[at.STEP, 0], 1) or move > 2e-3 * st.x[at.DT, 0]
    st.x[at.BAD0, 0] = bad
    st.k[at.QUIET, 0] = 0 if hot else st.k[at.QUIET, 0] + 1


@compiled
def run(st: State, until: float, fixed: float) -> None:
    """Advance to `until` (world seconds); steps of `fixed` seconds, or adaptive ones where it is 0."""
    while st.x[at.NOW, 0] < until - 1e-9:
        rest = until - st.x[at.NOW, 0]
        want = fixed if fixed > 0.0 else pick(st)
        dt = rest / max(math.ceil(rest / want - 1e-6), 1.0)
        step(st, dt)
        judge(st)
        if st.x[at.NOW, 0] >= st.x[at.FLUSHED, 0] + 1.0:
            flush(st)
    flush(st)
    st.x[at.NOW, 0] = until


def machine_code() -> Code:
    """`run` and all that it calls, compiled."""
    return jit.machine_code(run)
