"""One step of the request flow as plain loops over the arrays of `layout.State`, compiled by numba; only `engine` imports this.

Formulation: fluid first-in-first-out cohorts with origins. Every cohort knows the step it was issued in and the step of its caller;
outcomes are decided when work completes. The order of a step: pods that died, deadlines, back-off, forward level by level (arrivals,
queue bounds, service law, departures, calls of the children), backward level by level (answers climb to the callers). See docs/physics.md.

Functions named `_x` take the state as first argument and change it. `n` is the number of the step, `h` the length of the rings.
"""

import math
from collections.abc import Callable
from typing import TypeVar, cast

from numba import njit

from itbench.world.flow.layout import (
    ACCEPT,
    AFTER,
    AGE,
    AMOUNT,
    ANSWERED,
    ARRIVE,
    AS,
    ATTEMPT,
    ATTEMPTS,
    AV,
    AW,
    AX,
    AXX,
    BACKLOG,
    BACKLOG0,
    BACKOFF,
    BAD0,
    BROKEN,
    BUDGET,
    CALLS,
    CAP,
    CLIENT,
    COUNT,
    CPU,
    DEBT,
    DELAY,
    DONE,
    DT,
    DUE,
    EDGE,
    EDGE0,
    EDGE1,
    ERROR,
    FACTOR,
    FAIL0,
    FAILED,
    FIRST,
    FLUSHED,
    FOLDED,
    GO,
    GOO,
    GRID,
    GROUP,
    HANG,
    HEAD,
    HELD,
    HUNG,
    INFLIGHT,
    ISSUE,
    JOIN,
    JOINS,
    KID0,
    KID1,
    KILL,
    LATE,
    LATENCY,
    LEFT,
    LEFTE,
    LENGTH,
    LIMIT,
    LIMITED,
    LOAD,
    LOST,
    MEAN,
    MIDDLE,
    NETWORK,
    NEW,
    NEWO,
    NOW,
    NPODS,
    OK,
    OK0,
    OPEN,
    ORIGIN,
    PARENT,
    PASSED,
    PASSEDF,
    POD,
    POD0,
    POD1,
    PODVAR,
    PSTATION,
    PTR,
    QUEUE,
    QUEUED,
    QUIET,
    RATE,
    REACH,
    READY,
    REFUSE,
    REJECTED,
    REM,
    RESET,
    RETRIED,
    RETRIES,
    RGROUP,
    RHO,
    ROOTED,
    ROW,
    ROWMEAN,
    ROWVAR,
    SCV,
    SERVED,
    SERVED_PART,
    SERVER,
    SHARE,
    SOFT,
    SPOIL,
    SS,
    STATION,
    STEP,
    SV,
    SW,
    SX,
    SXX,
    TIMED_OUT,
    TIMEOUT,
    TOKENS,
    TOUCHED,
    TRY,
    VAR,
    WAITING,
    WAITINGO,
    WBAR,
    WEIGHT,
    WORK,
    WORKERS,
    State,
)  # fmt: skip

F = TypeVar("F", bound=Callable[..., object])
TOKENS_MAX = 100.0
SETTLED = 20  # steps without news before the flow counts as at rest
MIN_STEP, MAX_FINE, MAX_STEP = 0.02, 0.25, 1.0


def _compiled(function: F) -> F:
    return cast(F, njit(function))


def _entry(function: F) -> F:
    try:
        return cast(F, njit(cache=True)(function))
    except RuntimeError:  # numba finds no directory it may write to: compile in every process
        return _compiled(function)


# ---- curves


@_compiled
def _tail(x: float, mean: float, var: float) -> float:
    """P(X > x) of a gamma distribution; exact at shape 1, Wilson-Hilferty above."""
    k = min(max(mean * mean / max(var, 1e-18), 1.0), 1e9)
    r = max(x, 0.0) / max(mean, 1e-12)
    if k < 1.02:
        return math.exp(-min(r, 700.0))
    z = (r ** (1.0 / 3.0) - (1.0 - 1.0 / (9.0 * k))) * 3.0 * math.sqrt(k)
    a = abs(z)
    t = 1.0 / (1.0 + 0.2316419 * a)
    poly = t * (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    p = math.exp(-a * a / 2.0) * 0.3989422804 * poly
    return p if z > 0 else 1.0 - p


@_compiled
def _wait(st: State, workers: int, rho: float) -> float:
    """P(wait) of M/M/c at utilisation rho, from the table."""
    u = rho * GRID
    i = min(int(u), GRID - 1)
    return st.erl[workers - 1, i] * (1.0 - u + i) + st.erl[workers - 1, i + 1] * (u - i)


# ---- outcomes


@_compiled
def _touch(st: State, parent: int, o: int) -> None:
    sl = o % st.tr.shape[1]
    if parent >= 0 and st.tf[sl, parent] == 0:
        st.tf[sl, parent] = 1
        k = st.ci[TOUCHED]
        st.tl[0, k] = parent
        st.tl[1, k] = o
        st.ci[TOUCHED] = k + 1


@_compiled
def _settle(st: State, what: int, e: int, amount: float, origin: float) -> None:
    """Tell the parent of edge e: answered or lost calls of a (fractional) origin, in units of its requests."""
    if st.ei[JOIN, e] == 0:
        return
    h = st.tr.shape[1]
    oldest = float(st.ci[STEP] - h + 1)
    origin = max(origin, oldest)
    lo = int(math.floor(origin + 1e-9))
    f = min(max(origin - lo, 0.0), 1.0)
    if f < 1e-6:
        f = 0.0
    a = amount / max(st.ef[CALLS, e], 1.0)
    st.er[what, lo % h, e] += a * (1.0 - f)
    _touch(st, st.ei[PARENT, e], lo)
    if f > 0.0:
        st.er[what, (lo + 1) % h, e] += a * f
        _touch(st, st.ei[PARENT, e], lo + 1)


@_compiled
def _fail(st: State, r: int, amount: float, origin: float) -> None:
    """Failed attempts of row r: retried inside the allowance, else the call has failed for good."""
    e = st.ri[EDGE, r]
    go = 0.0
    if st.ri[TRY, r] < st.ei[RETRIES, e]:
        go = amount
        if st.ef[BUDGET, e] >= 0.0:
            go = min(amount, st.ef[TOKENS, e])
            st.ef[TOKENS, e] -= go
        sl = st.ci[STEP] % st.tr.shape[1]
        g = st.ri[RGROUP, r] + 1
        st.gr[WAITING, sl, g] += go
        st.gr[WAITINGO, sl, g] += go * origin
        st.ec[RETRIED, e] += go
    if amount - go > 0.0:
        st.ec[FAILED, e] += amount - go
        _settle(st, LOST, e, amount - go, origin)


@_compiled
def _answer(st: State, r: int, issued: int, amount: float) -> None:
    """Row r has answered attempts issued in step `issued`: in time they count, else the work was for nothing."""
    e = st.ri[EDGE, r]
    h = st.tr.shape[1]
    sl = issued % h
    dt = st.cf[DT]
    age = st.cf[NOW] + dt - st.tr[MIDDLE, sl] - dt / 2.0
    mean, var = st.rf[ROWMEAN, r], st.rf[ROWVAR, r]
    if st.ci[QUIET] < SETTLED and abs(age - mean) > 1.5 * dt:
        mean = age if age > 0.0 else max(age, mean)
    net = st.ef[NETWORK, e]
    ok = 0.0
    if issued >= st.ei[DUE, e]:
        ok = amount
        if st.ef[TIMEOUT, e] < math.inf:
            ok = amount * (1.0 - _tail(st.ef[TIMEOUT, e] - net, mean, var))
    st.rr[OPEN, sl, r] -= ok
    st.rf[INFLIGHT, r] -= amount
    st.rf[DONE, r] += amount
    st.ec[LATE, e] += amount - ok
    st.ec[OK, e] += ok
    if st.ef[BUDGET, e] > 0.0:
        st.ef[TOKENS, e] = min(st.ef[TOKENS, e] + st.ef[BUDGET, e] * ok, TOKENS_MAX)
    inner = net - st.ef[DELAY, e]
    x = mean + inner
    st.sa[SW, e] += amount
    st.sa[SX, e] += amount * x
    st.sa[SXX, e] += amount * x * x
    st.sa[SV, e] += amount * var
    st.sa[SS, e] += amount * inner
    if ok > 0.0:
        origin = st.rr[ORIGIN, sl, r]
        _settle(st, ANSWERED, e, ok, origin)
        _clock(st, r, sl, ok, mean, var, origin)


@_compiled
def _clock(st: State, r: int, sl: int, ok: float, mean: float, var: float, origin: float) -> None:
    """Collect the latency of answered calls as their caller sees it, retries included."""
    h = st.tr.shape[1]
    e, g = st.ri[EDGE, r], st.ri[RGROUP, r]
    shift = st.ef[NETWORK, e]
    if st.ri[TRY, r] > 0:
        o = int(max(round(origin), st.ci[STEP] - h + 1))
        shift += st.tr[MIDDLE, sl] - st.tr[MIDDLE, o % h]
    x = mean + shift
    st.gf[AW, g] += ok
    st.gf[AX, g] += ok * x
    st.gf[AXX, g] += ok * x * x
    st.gf[AV, g] += ok * var
    st.gf[AS, g] += ok * shift
    st.ec[LATENCY, e] += ok * x


# ---- housekeeping before a step


@_compiled
def _bury(st: State, p: int) -> None:
    """Pod p is gone: what callers still wait for fails now, its queue and its pending joins are lost."""
    h = st.tr.shape[1]
    n = st.ci[STEP]
    s = st.pi[PSTATION, p]
    for j in range(st.si[EDGE0, s], st.si[EDGE1, s]):
        e = st.se[j]
        for a in range(st.ei[ATTEMPTS, e]):
            r = st.ei[ROW, e] + a * st.ei[NPODS, e] + p - st.si[POD0, s]
            for i in range(max(n - h + 1, 0), n + 1):
                sl = i % h
                amount = st.rr[OPEN, sl, r]
                if amount > 1e-15 and i >= st.ei[DUE, e]:
                    st.ec[RESET, e] += amount
                    if st.ei[QUEUED, e] == 1:
                        st.ef[HELD, e] += amount
                    else:
                        _fail(st, r, amount, st.rr[ORIGIN, sl, r])
                st.rr[OPEN, sl, r] = 0.0
                st.rr[AMOUNT, sl, r] = 0.0
                st.rr[LEFT, sl, r] = 0.0
                st.rr[ISSUE, sl, r] = 0.0
            st.rf[INFLIGHT, r] = 0.0
    for sl in range(h):
        st.pr[sl, p] = 0.0
    st.pf[BACKLOG, p] = 0.0
    st.pf[SERVED_PART, p] = 0.0
    st.pf[RHO, p] = 0.0
    st.pf[AGE, p] = 0.0
    st.pi[HEAD, p] = n
    st.pi[KILL, p] = 0


@_compiled
def _fold_rows(st: State, old: int) -> None:
    """Cohorts of a pod or an edge that are about to be overwritten join the next younger one."""
    h = st.tr.shape[1]
    a, b = old % h, (old + 1) % h
    for p in range(st.pf.shape[1]):
        if st.pi[HEAD, p] <= old:
            rest = 1.0 - st.pf[SERVED_PART, p]
            if st.pr[a, p] * rest > 1e-12:
                st.ci[FOLDED] += 1
            st.pr[b, p] += st.pr[a, p] * rest
            s = st.pi[PSTATION, p]
            for j in range(st.si[EDGE0, s], st.si[EDGE1, s]):
                e = st.se[j]
                for k in range(st.ei[ATTEMPTS, e]):
                    r = st.ei[ROW, e] + k * st.ei[NPODS, e] + p - st.si[POD0, s]
                    st.rr[AMOUNT, b, r] += st.rr[AMOUNT, a, r] * rest
            st.pi[HEAD, p] = old + 1
            st.pf[SERVED_PART, p] = 0.0
    for e in range(st.ei.shape[1]):
        if st.ei[DUE, e] <= old:
            for r in range(st.ei[ROW, e], st.ei[ROW, e] + st.ei[NPODS, e] * st.ei[ATTEMPTS, e]):
                x, y = st.rr[OPEN, a, r], st.rr[OPEN, b, r]
                if x > 1e-12:
                    st.ci[FOLDED] += 1
                    st.rr[ORIGIN, b, r] = (x * st.rr[ORIGIN, a, r] + max(y, 0.0) * st.rr[ORIGIN, b, r]) / (
                        x + max(y, 0.0)
                    )
                st.rr[OPEN, b, r] = x + y
            st.ei[DUE, e] = old + 1


@_compiled
def _fold(st: State, old: int) -> None:
    """Nothing is lost when the rings lap: what step `old` still holds moves to the next step (its age then reads too young)."""
    h = st.tr.shape[1]
    a, b = old % h, (old + 1) % h
    _fold_rows(st, old)
    for g in range(st.gf.shape[1]):
        if st.gi[PTR, g] <= old:
            st.gr[WAITING, b, g] += st.gr[WAITING, a, g]
            st.gr[WAITINGO, b, g] += st.gr[WAITINGO, a, g]
            st.gi[PTR, g] = old + 1
    for e in range(st.ei.shape[1]):
        total = st.er[LEFTE, a, e]
        if st.ei[JOINS, e] == 1 and total - st.er[PASSED, a, e] - st.er[PASSEDF, a, e] > 1e-9 * total:
            st.ci[FOLDED] += 1
            for k in range(PASSED, LEFTE + 1):
                st.er[k, b, e] += st.er[k, a, e]
            for j in range(st.ei[KID0, e], st.ei[KID1, e]):
                st.er[ANSWERED, b, st.kids[j]] += st.er[ANSWERED, a, st.kids[j]]
                st.er[LOST, b, st.kids[j]] += st.er[LOST, a, st.kids[j]]
            for r in range(st.ei[ROW, e], st.ei[ROW, e] + st.ei[NPODS, e] * st.ei[ATTEMPTS, e]):
                st.rr[LEFT, b, r] += st.rr[LEFT, a, r]
                st.rr[ISSUE, b, r] += st.rr[ISSUE, a, r]
            if st.tf[a, e] == 1:
                _touch(st, e, old + 1)


@_compiled
def _open_step(st: State, dt: float) -> None:
    """Number the step and clear its columns."""
    h = st.tr.shape[1]
    n = st.ci[STEP] + 1
    sl = n % h
    if n > h:
        _fold(st, n - h)
    st.ci[STEP] = n
    st.cf[DT] = dt
    st.tr[MIDDLE, sl] = st.cf[NOW] + dt / 2.0
    st.tr[LENGTH, sl] = dt
    st.rr[:, sl, :] = 0.0
    st.er[:, sl, :] = 0.0
    st.pr[sl, :] = 0.0
    st.gr[:, sl, :] = 0.0
    st.tf[sl, :] = 0


@_compiled
def _deadlines(st: State) -> None:
    """What is still open when its timeout has passed has failed for its caller; the callee works on."""
    h = st.tr.shape[1]
    n, limit = st.ci[STEP], st.cf[NOW] + st.cf[DT] / 2.0 + 1e-9
    for e in range(st.ei.shape[1]):
        while st.ei[DUE, e] < n and st.tr[MIDDLE, st.ei[DUE, e] % h] + st.ef[TIMEOUT, e] <= limit:
            sl = st.ei[DUE, e] % h
            for r in range(st.ei[ROW, e], st.ei[ROW, e] + st.ei[NPODS, e] * st.ei[ATTEMPTS, e]):
                amount = st.rr[OPEN, sl, r] + st.rf[DEBT, r]
                st.rf[DEBT, r] = min(amount, 0.0)
                st.rr[OPEN, sl, r] = 0.0
                if amount > 1e-12:
                    st.ec[TIMED_OUT, e] += amount
                    _fail(st, r, amount, st.rr[ORIGIN, sl, r])
            st.ei[DUE, e] += 1


@_compiled
def _releases(st: State) -> None:
    """Retries whose back-off is over."""
    h = st.tr.shape[1]
    n, now = st.ci[STEP], st.cf[NOW] + 1e-9
    for e in range(st.ei.shape[1]):
        for g in range(st.ei[GROUP, e], st.ei[GROUP, e] + st.ei[ATTEMPTS, e]):
            st.gf[GO, g] = 0.0
            st.gf[GOO, g] = 0.0
            while st.gi[PTR, g] <= n:
                sl = st.gi[PTR, g] % h
                if st.tr[MIDDLE, sl] - st.tr[LENGTH, sl] / 2.0 + st.ef[BACKOFF, e] > now:
                    break
                st.gf[GO, g] += st.gr[WAITING, sl, g]
                st.gf[GOO, g] += st.gr[WAITINGO, sl, g]
                st.gr[WAITING, sl, g] = 0.0
                st.gr[WAITINGO, sl, g] = 0.0
                if st.gi[PTR, g] == n:
                    break
                st.gi[PTR, g] += 1


# ---- forward


@_compiled
def _take(st: State, e: int) -> None:
    """A queued edge: the broker holds the calls; consumers take what they can work off, at most LIMIT per second."""
    st.ef[HELD, e] += st.ef[NEW, e]
    s, dt = st.ei[STATION, e], st.cf[DT]
    room = 0.0
    for p in range(st.si[POD0, s], st.si[POD1, s]):
        if st.pf[WEIGHT, p] > 0.0:
            cap = st.pf[CAP, p] * st.pf[FACTOR, p]
            room += max(2.0 * cap * dt / st.ef[WORK, e] + st.pi[WORKERS, p] - st.pf[BACKLOG, p] / st.pf[WBAR, p], 0.0)
    got = min(st.ef[HELD, e], room, st.ef[LIMIT, e] * dt)
    st.ef[HELD, e] -= got
    st.ef[NEW, e] = got
    st.ef[NEWO, e] = got * st.ci[STEP]


@_compiled
def _admit(st: State, e: int) -> None:
    """A limiter in front of edge e turns calls away for good before they cost anything."""
    g0, total = st.ei[GROUP, e], 0.0
    for g in range(g0, g0 + st.ei[ATTEMPTS, e]):
        total += st.gf[GO, g]
    allowed = st.ef[LIMIT, e] * st.cf[DT]
    if total <= allowed:
        return
    cut = 1.0 - allowed / total
    for g in range(g0, g0 + st.ei[ATTEMPTS, e]):
        away = st.gf[GO, g] * cut
        if away > 0.0:
            st.ec[LIMITED, e] += away
            st.ec[FAILED, e] += away
            _settle(st, LOST, e, away, st.gf[GOO, g] / st.gf[GO, g])
            st.gf[GO, g] -= away
            st.gf[GOO, g] *= 1.0 - cut


@_compiled
def _arrive(st: State, e: int) -> None:
    """Share the calls of edge e over the ready pods of its station; refuse them where there is none."""
    s, n = st.ei[STATION, e], st.ci[STEP]
    p0, m, ready = st.si[POD0, s], st.ei[NPODS, e], st.sf[READY, s]
    for a in range(st.ei[ATTEMPTS, e]):
        g = st.ei[GROUP, e] + a
        go = st.gf[GO, g]
        origin = st.gf[GOO, g] / go if go > 0.0 else float(n)
        st.gf[GOO, g] = origin  # from here on the mean origin
        st.ec[ATTEMPT, e] += go
        for j in range(m):
            r, p = st.ei[ROW, e] + a * m + j, p0 + j
            if ready <= 0.0:
                refused, arrived, hung = go / m, 0.0, 0.0
            else:
                share = go * st.pf[WEIGHT, p] / ready
                refused, hung = share * st.rf[REFUSE, r], share * st.rf[HANG, r]
                arrived = share - refused - hung
            if refused > 0.0:
                st.ec[REJECTED, e] += refused
                _fail(st, r, refused, origin)
            st.rf[ARRIVE, r] = arrived
            st.rf[HUNG, r] = hung
            st.pf[COUNT, p] += arrived
            st.pf[LOAD, p] += arrived * st.ef[WORK, e]


@_compiled
def _serve(st: State, p: int) -> None:
    """Queue bound and service law of pod p: M/M/c when stationary, plain fluid in overload; implicit in the step length."""
    dt, sl = st.cf[DT], st.ci[STEP] % st.tr.shape[1]
    cap, wbar, workers = st.pf[CAP, p] * st.pf[FACTOR, p], st.pf[WBAR, p], st.pi[WORKERS, p]
    count, load, backlog = st.pf[COUNT, p], st.pf[LOAD, p], st.pf[BACKLOG, p]
    waiting = backlog / wbar
    unit = load / count if count > 0.0 else wbar
    room = max(st.pf[QUEUE, p] - waiting + cap * dt / unit, 0.0)
    accept = min(1.0, room / max(count, 1e-30))
    st.pf[ACCEPT, p] = accept
    st.pr[sl, p] = load * accept
    total, number = backlog + load * accept, waiting + count * accept
    if number > 1e-9:
        wbar = total / number
        st.pf[WBAR, p] = wbar
    kappa = _wait(st, workers, st.pf[RHO, p]) * (1.0 + st.sf[SCV, st.pi[PSTATION, p]]) / 2.0
    b, g = total / wbar, cap * dt / wbar + workers
    q = b + g + kappa
    rho = 0.0
    if b > 1e-12:
        rho = min(max((q - math.sqrt(max(q * q - 4.0 * g * b, 0.0))) / (2.0 * g), 0.0), 1.0)
    rem = min(cap * dt * rho, total)
    st.pf[RHO, p] = rho
    st.pf[REM, p] = rem
    st.pf[BACKLOG, p] = total - rem
    st.pf[CPU, p] += rem


@_compiled
def _enqueue(st: State, e: int) -> None:
    """Accepted calls become cohorts; what the queue has no room for fails now."""
    n = st.ci[STEP]
    sl = n % st.tr.shape[1]
    for r in range(st.ei[ROW, e], st.ei[ROW, e] + st.ei[NPODS, e] * st.ei[ATTEMPTS, e]):
        origin, arrived = st.gf[GOO, st.ri[RGROUP, r]], st.rf[ARRIVE, r]
        accepted = arrived * st.pf[ACCEPT, st.ri[POD, r]]
        rejected = arrived * (1.0 - st.pf[ACCEPT, st.ri[POD, r]])
        if rejected > 0.0:
            st.ec[REJECTED, e] += rejected
            _fail(st, r, rejected, origin)
        st.rr[AMOUNT, sl, r] = accepted
        st.rr[OPEN, sl, r] = accepted + st.rf[HUNG, r]
        st.rr[ORIGIN, sl, r] = origin
        st.rf[INFLIGHT, r] += accepted


@_compiled
def _depart(st: State, p: int, head: int, part: float) -> None:
    """The cpu work of a part of cohort `head` of pod p is done: leaves answer, others call their children."""
    h = st.tr.shape[1]
    sl, now = head % h, st.ci[STEP] % h
    s = st.pi[PSTATION, p]
    for j in range(st.si[EDGE0, s], st.si[EDGE1, s]):
        e = st.se[j]
        for k in range(st.ei[ATTEMPTS, e]):
            r = st.ei[ROW, e] + k * st.ei[NPODS, e] + p - st.si[POD0, s]
            amount = st.rr[AMOUNT, sl, r] * part
            if amount <= 0.0:
                continue
            st.pf[SERVED, p] += amount
            bad = amount * st.rf[SPOIL, r]
            if bad > 0.0:
                amount -= bad
                st.ec[ERROR, e] += bad
                _break(st, r, head, bad)
            if st.ei[KID1, e] > st.ei[KID0, e]:
                st.rr[LEFT, now, r] += amount
                st.rr[ISSUE, now, r] += amount * head
                st.er[LEFTE, now, e] += amount
            if st.ei[JOINS, e] == 0:
                st.rf[ROWMEAN, r] = st.pf[AGE, p]
                st.rf[ROWVAR, r] = st.pf[PODVAR, p]
                _answer(st, r, head, amount)


@_compiled
def _break(st: State, r: int, issued: int, amount: float) -> None:
    """Row r answers with an error: counts where the caller still waits."""
    e, sl = st.ri[EDGE, r], issued % st.tr.shape[1]
    st.rf[INFLIGHT, r] -= amount
    st.rf[BROKEN, r] += amount
    if issued >= st.ei[DUE, e]:
        st.rr[OPEN, sl, r] -= amount
        _fail(st, r, amount, st.rr[ORIGIN, sl, r])
    else:
        st.ec[LATE, e] += amount


@_compiled
def _spread(st: State, p: int) -> None:
    """Variance of the time in pod p, from M/M/c; in overload from the number of works ahead."""
    cap, wbar, rho, age = st.pf[CAP, p] * st.pf[FACTOR, p], st.pf[WBAR, p], st.pf[RHO, p], st.pf[AGE, p]
    scv = st.sf[SCV, st.pi[PSTATION, p]]
    own = st.pi[WORKERS, p] * wbar / max(cap, 1e-9) if cap > 0.0 else 0.0
    busy = _wait(st, st.pi[WORKERS, p], rho)
    wait = busy * wbar / max(cap * (1.0 - rho), 1e-9) * (1.0 + scv) / 2.0
    w = min(wait, age)
    var = w * w * (2.0 / max(busy, 1e-9) - 1.0) if wait <= age * 1.05 + 1e-9 else w * w
    if rho < 0.98:
        st.pf[PODVAR, p] = min(own * own * scv + min(var, 4.0 * age * age), 1e9)
    else:
        st.pf[PODVAR, p] = min(own * own * scv + age * wbar / max(cap, 1e-9), 1e9)


@_compiled
def _work_off(st: State, p: int) -> None:
    """First in, first out: move the head of pod p through its cohorts by the work done, then let the passed parts depart."""
    h, n = st.tr.shape[1], st.ci[STEP]
    head, part, rem = st.pi[HEAD, p], st.pf[SERVED_PART, p], st.pf[REM, p]
    head0, part0 = head, part
    while True:
        work = st.pr[head % h, p]
        left = work * (1.0 - part)
        take = min(rem, left)
        if work > 0.0:
            part += take / work
        rem -= take
        if head < n and (take >= left or work <= 0.0):
            head += 1
            part = 0.0
        else:
            break
    st.pi[HEAD, p] = head
    st.pf[SERVED_PART, p] = part
    sl = head % h
    waited = st.cf[NOW] + st.cf[DT] - (st.tr[MIDDLE, sl] + (part - 0.5) * st.tr[LENGTH, sl])
    st.pf[AGE, p] = waited if st.pf[BACKLOG, p] + st.pf[REM, p] > 0.0 else 0.0
    _spread(st, p)
    for i in range(head0, head + 1):
        start = part0 if i == head0 else 0.0
        end = part if i == head else 1.0
        if end > start and st.pr[i % h, p] > 0.0:
            _depart(st, p, i, end - start)


@_compiled
def _call_children(st: State, e: int) -> None:
    """Children are called in the step in which the work of their parent is done."""
    n = st.ci[STEP]
    left = st.er[LEFTE, n % st.tr.shape[1], e]
    if left <= 0.0:
        return
    for j in range(st.ei[KID0, e], st.ei[KID1, e]):
        c = st.kids[j]
        calls = left * st.ef[CALLS, c] * st.ef[REACH, c]
        st.ef[NEW, c] += calls
        st.ef[NEWO, c] += calls * n
        skipped = left * (1.0 - min(st.ef[CALLS, c], 1.0) * st.ef[REACH, c])
        if skipped > 0.0:
            _settle(st, ANSWERED, c, skipped * max(st.ef[CALLS, c], 1.0), float(n))


@_compiled
def _forward(st: State, level: int) -> None:
    for k in range(st.lp[level], st.lp[level + 1]):
        s = st.so[k]
        ready = 0.0
        for p in range(st.si[POD0, s], st.si[POD1, s]):
            ready += st.pf[WEIGHT, p]
            st.pf[COUNT, p] = 0.0
            st.pf[LOAD, p] = 0.0
        st.sf[READY, s] = ready
    for k in range(st.le[level], st.le[level + 1]):
        e = st.eo[k]
        st.ec[FIRST, e] += st.ef[NEW, e]
        if st.ei[QUEUED, e] == 1:
            _take(st, e)
        st.gf[GO, st.ei[GROUP, e]] += st.ef[NEW, e]
        st.gf[GOO, st.ei[GROUP, e]] += st.ef[NEWO, e]
        if st.ei[QUEUED, e] == 0:
            _admit(st, e)
        _arrive(st, e)
    for k in range(st.lp[level], st.lp[level + 1]):
        for p in range(st.si[POD0, st.so[k]], st.si[POD1, st.so[k]]):
            _serve(st, p)
    for k in range(st.le[level], st.le[level + 1]):
        _enqueue(st, st.eo[k])
    for k in range(st.lp[level], st.lp[level + 1]):
        for p in range(st.si[POD0, st.so[k]], st.si[POD1, st.so[k]]):
            _work_off(st, p)
    for k in range(st.le[level], st.le[level + 1]):
        _call_children(st, st.eo[k])


# ---- backward


@_compiled
def _chain(st: State, c: int) -> tuple[float, float]:
    """Mean and variance of child c and all that are called one after the other behind it."""
    mean = var = 0.0
    for j in range(st.ei[KID0, st.ei[PARENT, c]], st.ei[KID1, st.ei[PARENT, c]]):
        k = st.kids[j]
        root = k
        while st.ei[AFTER, root] >= 0:
            root = st.ei[AFTER, root]
        if root == c and st.ei[JOIN, k] == 1:
            w = min(st.ef[CALLS, k], 1.0)
            mean += w * st.ef[MEAN, k]
            var += w * st.ef[VAR, k] + w * (1.0 - w) * st.ef[MEAN, k] ** 2
    return mean, var


@_compiled
def _largest(st: State, e: int) -> tuple[float, float]:
    """Mean and variance of the slowest of the parallel chains of children of e: quadrature of 1 - product of the CDFs."""
    chains, top, mean, var = 0, 0.0, 0.0, 0.0
    for j in range(st.ei[KID0, e], st.ei[KID1, e]):
        if st.ei[JOIN, st.kids[j]] == 1 and st.ei[AFTER, st.kids[j]] < 0:
            mean, var = _chain(st, st.kids[j])
            top = max(top, mean + 6.0 * math.sqrt(var))
            chains += 1
    if chains == 1 or top <= 0.0:
        return mean, var
    d = top / 40.0
    first = second = 0.0
    for i in range(41):
        below = 1.0
        for j in range(st.ei[KID0, e], st.ei[KID1, e]):
            if st.ei[JOIN, st.kids[j]] == 1 and st.ei[AFTER, st.kids[j]] < 0:
                mean, var = _chain(st, st.kids[j])
                below *= 1.0 - _tail(i * d, mean, var)
        first += (1.0 - below) * (0.5 if i == 0 else 1.0)
        second += (1.0 - below) * i * d
    first *= d
    return first, max(2.0 * d * second - first * first, 1e-12)


@_compiled
def _moments(st: State, e: int) -> None:
    """Mean and variance of the response time of edge e: own pods plus children."""
    sl = st.ci[STEP] % st.tr.shape[1]
    mean = var = network = 0.0
    if st.ei[JOINS, e] == 1:
        mean, var = _largest(st, e)
        for j in range(st.ei[KID0, e], st.ei[KID1, e]):
            c, way = st.kids[j], 0.0
            while c >= 0:
                if st.ei[JOIN, c] == 1:
                    way += min(st.ef[CALLS, c], 1.0) * st.ef[NETWORK, c]
                c = st.ei[AFTER, c]
            network = max(network, way)
    total = sum_m = sum_v = 0.0
    for r in range(st.ei[ROW, e], st.ei[ROW, e] + st.ei[NPODS, e] * st.ei[ATTEMPTS, e]):
        p = st.ri[POD, r]
        st.rf[ROWMEAN, r] = st.pf[AGE, p] + mean
        st.rf[ROWVAR, r] = st.pf[PODVAR, p] + var
        weight = st.rr[AMOUNT, sl, r] + 1e-12
        total += weight
        sum_m += weight * st.rf[ROWMEAN, r]
        sum_v += weight * st.rf[ROWVAR, r]
    st.ef[MEAN, e] = sum_m / total
    st.ef[VAR, e] = sum_v / total
    st.ef[NETWORK, e] = network + st.ef[DELAY, e]


@_compiled
def _pass_on(st: State, e: int, o: int, amount: float, good: bool) -> None:
    """Answers (or failures) of the children, for calls made in step o, reach the rows of their parent e."""
    h = st.tr.shape[1]
    sl, oldest = o % h, float(st.ci[STEP] - h + 1)
    for r in range(st.ei[ROW, e], st.ei[ROW, e] + st.ei[NPODS, e] * st.ei[ATTEMPTS, e]):
        left = st.rr[LEFT, sl, r]
        if left <= 0.0:
            continue
        issue = max(st.rr[ISSUE, sl, r] / left, oldest)
        lo = int(math.floor(issue + 1e-9))
        f = min(max(issue - lo, 0.0), 1.0)
        if f < 1e-6:
            f = 0.0
        share = amount * left / st.er[LEFTE, sl, e]
        for k in range(2):
            part = share * (1.0 - f) if k == 0 else share * f
            if part > 1e-15:
                if good:
                    _answer(st, r, lo + k, part)
                else:
                    _break(st, r, lo + k, part)


@_compiled
def _join(st: State, e: int, o: int) -> None:
    """What all joined children of e have answered, and what one of them has lost for good, since the last look at step o."""
    sl = o % st.tr.shape[1]
    least, most = math.inf, 0.0
    for j in range(st.ei[KID0, e], st.ei[KID1, e]):
        c = st.kids[j]
        if st.ei[JOIN, c] == 1:
            if st.ei[SOFT, c] == 1:
                least = min(least, st.er[ANSWERED, sl, c] + st.er[LOST, sl, c])
            else:
                least = min(least, st.er[ANSWERED, sl, c])
                most = max(most, st.er[LOST, sl, c])
    good, bad = least - st.er[PASSED, sl, e], most - st.er[PASSEDF, sl, e]
    st.er[PASSED, sl, e] = least
    st.er[PASSEDF, sl, e] = most
    if good > 0.0:
        _pass_on(st, e, o, good, True)
    if bad > 0.0:
        _pass_on(st, e, o, bad, False)


@_compiled
def _backward(st: State, level: int) -> None:
    h, n = st.tr.shape[1], st.ci[STEP]
    for k in range(st.le[level], st.le[level + 1]):
        _moments(st, st.eo[k])
    for i in range(st.ci[TOUCHED]):
        e, o = st.tl[0, i], st.tl[1, i]
        at = st.ei[STATION, e]
        here = False
        for k in range(st.lp[level], st.lp[level + 1]):
            here = here or st.so[k] == at
        if here and st.tf[o % h, e] == 1 and o > n - h:
            st.tf[o % h, e] = 0
            _join(st, e, o)


@_compiled
def _reaches(st: State) -> None:
    """Share of the parents that get as far as a child called after another: the success share of its predecessors."""
    for e in range(st.ei.shape[1]):
        ok, bad = st.ec[OK, e] - st.ef[OK0, e], st.ec[FAILED, e] - st.ef[FAIL0, e]
        st.ef[OK0, e] = st.ec[OK, e]
        st.ef[FAIL0, e] = st.ec[FAILED, e]
        if ok + bad > 1e-12:
            st.ef[SHARE, e] = ok / (ok + bad)
        b = st.ei[AFTER, e]
        if b >= 0:
            st.ef[REACH, e] = st.ef[REACH, b] * (1.0 if st.ei[SOFT, b] == 1 else st.ef[SHARE, b])


@_compiled
def step(st: State, dt: float) -> None:
    """One step of dt seconds."""
    for p in range(st.pi.shape[1]):
        if st.pi[KILL, p] == 1:
            _bury(st, p)
    _open_step(st, dt)
    _reaches(st)
    _deadlines(st)
    _releases(st)
    n = st.ci[STEP]
    for e in range(st.ei.shape[1]):
        st.ef[NEW, e] = st.ef[RATE, e] * dt if st.ei[ROOTED, e] == 1 else 0.0
        st.ef[NEWO, e] = st.ef[NEW, e] * n
    depth = st.le.shape[0] - 1
    for level in range(depth):
        _forward(st, level)
    for level in range(depth - 1, -1, -1):
        _backward(st, level)
    st.ci[TOUCHED] = 0
    st.cf[NOW] += dt


# ---- step control and histograms


@_compiled
def _fill(st: State, side: int, e: int, w: float, mean: float, square: float, spread: float, shift: float) -> None:
    """Spread w calls over the buckets: a gamma distribution behind a fixed shift."""
    mean, shift = mean / w, shift / w
    var = spread / w + max(square / w - mean * mean, 0.0)
    last = 0.0
    for k in range(st.bounds.shape[0]):
        x = st.bounds[k] - shift
        below = max(1.0 - _tail(x, mean - shift, var), last) if x > 0.0 else last
        st.hist[side, e, k] += w * (below - last)
        last = below
    st.hist[side, e, st.bounds.shape[0]] += w * (1.0 - last)


@_compiled
def _flush(st: State) -> None:
    for e in range(st.ei.shape[1]):
        for g in range(st.ei[GROUP, e], st.ei[GROUP, e] + st.ei[ATTEMPTS, e]):
            if st.gf[AW, g] > 0.0:
                _fill(st, CLIENT, e, st.gf[AW, g], st.gf[AX, g], st.gf[AXX, g], st.gf[AV, g], st.gf[AS, g])
                st.gf[AW:, g] = 0.0
        if st.sa[SW, e] > 0.0:
            _fill(st, SERVER, e, st.sa[SW, e], st.sa[SX, e], st.sa[SXX, e], st.sa[SV, e], st.sa[SS, e])
            st.sa[:, e] = 0.0
    st.cf[FLUSHED] = st.cf[NOW]


@_compiled
def _pick(st: State) -> float:
    """Step length: fine while answers come late or queues move and for 20 steps after, else one second."""
    if st.ci[QUIET] >= SETTLED:
        return MAX_STEP
    shortest, longest = math.inf, 0.0
    for e in range(st.ei.shape[1]):
        if st.ef[TIMEOUT, e] < math.inf:
            longest = max(longest, st.ef[TIMEOUT, e])
            if st.ec[ATTEMPT, e] > 0.0:
                shortest = min(shortest, st.ef[TIMEOUT, e])
        longest = max(longest, st.ef[BACKOFF, e])
    fine = min(max(0.1 * shortest, MIN_STEP), MAX_FINE)
    return max(fine, longest / (0.75 * st.tr.shape[1]))


@_compiled
def _judge(st: State) -> None:
    """Count the steps without news."""
    bad = total = move = 0.0
    full = False
    for e in range(st.ei.shape[1]):
        bad += st.ec[TIMED_OUT, e] + st.ec[LATE, e] + st.ec[RESET, e]
        total += st.ec[ATTEMPT, e]
    for p in range(st.pf.shape[1]):
        move = max(move, abs(st.pf[BACKLOG, p] - st.pf[BACKLOG0, p]) / st.pf[CAP, p])
        st.pf[BACKLOG0, p] = st.pf[BACKLOG, p]
        full = full or st.pf[ACCEPT, p] < 1.0
    hot = full or bad - st.cf[BAD0] > 1e-5 * total / max(st.ci[STEP], 1) or move > 2e-3 * st.cf[DT]
    st.cf[BAD0] = bad
    st.ci[QUIET] = 0 if hot else st.ci[QUIET] + 1


@_entry
def run(st: State, until: float, fixed: float) -> None:
    """Advance to `until` (world seconds); steps of `fixed` seconds, or adaptive ones where it is 0."""
    while st.cf[NOW] < until - 1e-9:
        rest = until - st.cf[NOW]
        want = fixed if fixed > 0.0 else _pick(st)
        dt = rest / max(math.ceil(rest / want - 1e-6), 1.0)
        step(st, dt)
        _judge(st)
        if st.cf[NOW] >= st.cf[FLUSHED] + 1.0:
            _flush(st)
    _flush(st)
    st.cf[NOW] = until
