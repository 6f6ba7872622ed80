"""Before a step: pods that died, rings that lap, the new column, deadlines and back-off. Part of the kernel (see `outcomes`)."""

from itbench.world.flow import layout as at
from itbench.world.flow.jit import compiled
from itbench.world.flow.layout import State
from itbench.world.flow.outcomes import fail, touch

CRUMBS = 1e-6
"""Rounding and what `backward.CRUMB` holds back: shares of a cohort that are not worth keeping a column for."""


@compiled
def bury(st: State, p: int) -> None:
    """Pod p is gone: what callers still wait for fails now, its queue and its pending joins are lost."""
    h = st.rows.shape[1]
    n = st.k[at.STEP, 0]
    s = st.k[at.PSTATION, p]
    for j in range(st.k[at.EDGE0, s], st.k[at.EDGE1, s]):
        e = st.k[at.BY_STATION, j]
        for a in range(st.k[at.ATTEMPTS, e]):
            r = st.k[at.ROW, e] + a * st.k[at.NPODS, e] + p - st.k[at.POD0, s]
            for i in range(max(n - h + 1, 0), n + 1):
                sl = i & (h - 1)
                amount = st.rows[at.OPEN, sl, r] + st.x[at.DEBT, r]
                st.x[at.DEBT, r] = min(amount, 0.0)  # rounding between neighbour slots evens out within a row
                if amount > 0.0:
                    st.x[at.RESET, e] += amount
                    if st.k[at.QUEUED, e] == 1:
                        st.x[at.HELD, e] += amount
                    else:
                        fail(st, r, amount, st.rows[at.ORIGIN, sl, r])
                st.rows[at.OPEN, sl, r] = 0.0
                st.rows[at.AMOUNT, sl, r] = 0.0
                st.rows[at.LEFT, sl, r] = 0.0
                st.rows[at.ISSUE, sl, r] = 0.0
            st.x[at.INFLIGHT, r] = 0.0
    for sl in range(h):
        st.rings[at.COHORT, sl, p] = 0.0
    st.x[at.BACKLOG, p] = 0.0
    st.x[at.SERVED_PART, p] = 0.0
    st.x[at.RHO, p] = 0.0
    st.x[at.AGE, p] = 0.0
    st.k[at.HEAD, p] = n
    st.k[at.KILL, p] = 0


@compiled
def fold_rows(st: State, old: int) -> None:
    """Cohorts of a pod or an edge that are about to be overwritten join the next younger one."""
    h = st.rows.shape[1]
    a, b = old & (h - 1), (old + 1) & (h - 1)
    for p in range(st.k[at.PODS, 0]):
        if st.k[at.HEAD, p] <= old:
            rest = 1.0 - st.x[at.SERVED_PART, p]
            if st.rings[at.COHORT, a, p] * rest > 1e-12:
                st.k[at.FOLDED, 0] += 1
            st.rings[at.COHORT, b, p] += st.rings[at.COHORT, a, p] * rest
            s = st.k[at.PSTATION, p]
            for j in range(st.k[at.EDGE0, s], st.k[at.EDGE1, s]):
                e = st.k[at.BY_STATION, j]
                for k in range(st.k[at.ATTEMPTS, e]):
                    r = st.k[at.ROW, e] + k * st.k[at.NPODS, e] + p - st.k[at.POD0, s]
                    st.rows[at.AMOUNT, b, r] += st.rows[at.AMOUNT, a, r] * rest
            st.k[at.HEAD, p] = old + 1
            st.x[at.SERVED_PART, p] = 0.0
    for e in range(st.k[at.EDGES, 0]):
        if st.k[at.DUE, e] <= old:
            for r in range(st.k[at.ROW, e], st.k[at.ROW, e] + st.k[at.NPODS, e] * st.k[at.ATTEMPTS, e]):
                x, y = st.rows[at.OPEN, a, r], st.rows[at.OPEN, b, r]
                if x > 1e-12:
                    st.k[at.FOLDED, 0] += x > CRUMBS * st.rows[at.AMOUNT, a, r]
                    st.rows[at.ORIGIN, b, r] = (
                        x * st.rows[at.ORIGIN, a, r] + max(y, 0.0) * st.rows[at.ORIGIN, b, r]
                    ) / (x + max(y, 0.0))
                st.rows[at.OPEN, b, r] = x + y
            st.k[at.DUE, e] = old + 1


@compiled
def fold(st: State, old: int) -> None:
    """Nothing is lost when the rings lap: what step `old` still holds moves to the next step (its age then reads too young)."""
    h = st.rows.shape[1]
    a, b = old & (h - 1), (old + 1) & (h - 1)
    fold_rows(st, old)
    for g in range(st.k[at.GROUPS, 0]):
        if st.k[at.PTR, g] <= old:
            st.rings[at.WAITING, b, g] += st.rings[at.WAITING, a, g]
            st.rings[at.WAITINGO, b, g] += st.rings[at.WAITINGO, a, g]
            st.k[at.PTR, g] = old + 1
    for e in range(st.k[at.EDGES, 0]):
        total = st.rings[at.LEFTE, a, e]
        if st.k[at.JOINS, e] == 1 and total - st.rings[at.PASSED, a, e] - st.rings[at.PASSEDF, a, e] > CRUMBS * total:
            st.k[at.FOLDED, 0] += 1
            for k in range(at.PASSED, at.LEFTE + 1):
                st.rings[k, b, e] += st.rings[k, a, e]
            for j in range(st.k[at.KID0, e], st.k[at.KID1, e]):
                st.rings[at.ANSWERED, b, st.k[at.KIDS, j]] += st.rings[at.ANSWERED, a, st.k[at.KIDS, j]]
                st.rings[at.LOST, b, st.k[at.KIDS, j]] += st.rings[at.LOST, a, st.k[at.KIDS, j]]
            for r in range(st.k[at.ROW, e], st.k[at.ROW, e] + st.k[at.NPODS, e] * st.k[at.ATTEMPTS, e]):
                st.rows[at.LEFT, b, r] += st.rows[at.LEFT, a, r]
                st.rows[at.ISSUE, b, r] += st.rows[at.ISSUE, a, r]
            if st.rings[at.FRESH, a, e] == 1.0:
                touch(st, e, old + 1)


@compiled
def open_step(st: State, dt: float) -> None:
    """Number the step and clear its columns."""
    h = st.rows.shape[1]
    n = st.k[at.STEP, 0] + 1
    sl = n & (h - 1)
    if n > h:
        fold(st, n - h)
    st.k[at.STEP, 0] = n
    st.x[at.DT, 0] = dt
    for q in range(st.rows.shape[0]):
        for r in range(st.rows.shape[2]):
            st.rows[q, sl, r] = 0.0
    for q in range(st.rings.shape[0]):
        for i in range(st.rings.shape[2]):
            st.rings[q, sl, i] = 0.0
    st.rings[at.MIDDLE, sl, 0] = st.x[at.NOW, 0] + dt / 2.0
    st.rings[at.LENGTH, sl, 0] = dt


@compiled
def deadlines(st: State) -> None:
    """What is still open when its timeout has passed has failed for its caller; the callee works on."""
    h = st.rows.shape[1]
    n, limit = st.k[at.STEP, 0], st.x[at.NOW, 0] + st.x[at.DT, 0] / 2.0 + 1e-9
    for e in range(st.k[at.EDGES, 0]):
        while st.k[at.DUE, e] < n and st.rings[at.MIDDLE, st.k[at.DUE, e] & (h - 1), 0] + st.x[at.TIMEOUT, e] <= limit:
            sl = st.k[at.DUE, e] & (h - 1)
            for r in range(st.k[at.ROW, e], st.k[at.ROW, e] + st.k[at.NPODS, e] * st.k[at.ATTEMPTS, e]):
                amount = st.rows[at.OPEN, sl, r] + st.x[at.DEBT, r]
                st.x[at.DEBT, r] = min(amount, 0.0)
                st.rows[at.OPEN, sl, r] = 0.0
                if amount > 1e-12:
                    st.x[at.TIMED_OUT, e] += amount
                    fail(st, r, amount, st.rows[at.ORIGIN, sl, r])
            st.k[at.DUE, e] += 1


@compiled
def releases(st: State) -> None:
    """Retries whose back-off is over."""
    h = st.rows.shape[1]
    n, now = st.k[at.STEP, 0], st.x[at.NOW, 0] + 1e-9
    for e in range(st.k[at.EDGES, 0]):
        for g in range(st.k[at.GROUP, e], st.k[at.GROUP, e] + st.k[at.ATTEMPTS, e]):
            st.x[at.GO, g] = 0.0
            st.x[at.GOO, g] = 0.0
            while st.k[at.PTR, g] <= n:
                sl = st.k[at.PTR, g] & (h - 1)
                if st.rings[at.MIDDLE, sl, 0] - st.rings[at.LENGTH, sl, 0] / 2.0 + st.x[at.BACKOFF, e] > now:
                    break
                st.x[at.GO, g] += st.rings[at.WAITING, sl, g]
                st.x[at.GOO, g] += st.rings[at.WAITINGO, sl, g]
                st.rings[at.WAITING, sl, g] = 0.0
                st.rings[at.WAITINGO, sl, g] = 0.0
                if st.k[at.PTR, g] == n:
                    break
                st.k[at.PTR, g] += 1
