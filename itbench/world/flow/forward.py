"""Callers first: admission, load balancing, queue bounds, service law, departures, calls of the children. Part of the kernel."""

import math

from itbench.world.flow import layout as at
from itbench.world.flow.jit import compiled
from itbench.world.flow.layout import State
from itbench.world.flow.outcomes import answer, erlang_c, fail, miss, settle, spoil


@compiled
def take(st: State, e: int) -> None:
    """A queued edge: the broker holds the calls; consumers take what they can work off, at most at.LIMIT per second."""
    st.x[at.HELD, e] += st.x[at.NEW, e]
    s, dt = st.k[at.STATION, e], st.x[at.DT, 0]
    room = 0.0
    for p in range(st.k[at.POD0, s], st.k[at.POD1, s]):
        if st.x[at.WEIGHT, p] > 0.0:
            cap = st.x[at.CAP, p] * st.x[at.FACTOR, p]
            room += max(
                2.0 * cap * dt / st.x[at.WORK, e] + st.k[at.WORKERS, p] - st.x[at.BACKLOG, p] / st.x[at.WBAR, p], 0.0
            )
    got = min(st.x[at.HELD, e], room, st.x[at.LIMIT, e] * dt)
    st.x[at.HELD, e] -= got
    st.x[at.NEW, e] = got
    st.x[at.NEWO, e] = got * st.k[at.STEP, 0]


@compiled
def admit(st: State, e: int) -> None:
    """A limiter in front of edge e turns calls away for good before they cost anything."""
    g0, total = st.k[at.GROUP, e], 0.0
    for g in range(g0, g0 + st.k[at.ATTEMPTS, e]):
        total += st.x[at.GO, g]
    allowed = st.x[at.LIMIT, e] * st.x[at.DT, 0]
    if total <= allowed:
        return
    cut = 1.0 - allowed / total
    for g in range(g0, g0 + st.k[at.ATTEMPTS, e]):
        away = st.x[at.GO, g] * cut
        if away > 0.0:
            st.x[at.LIMITED, e] += away
            st.x[at.FAILED, e] += away
            settle(st, at.LOST, e, away, st.x[at.GOO, g] / st.x[at.GO, g])
            st.x[at.GO, g] -= away
            st.x[at.GOO, g] *= 1.0 - cut


@compiled
def arrive(st: State, e: int) -> None:
    """Share the calls of edge e over the ready pods of its station; refuse them where there is none."""
    s, n = st.k[at.STATION, e], st.k[at.STEP, 0]
    p0, m, ready = st.k[at.POD0, s], st.k[at.NPODS, e], st.x[at.READY, s]
    for a in range(st.k[at.ATTEMPTS, e]):
        g = st.k[at.GROUP, e] + a
        go = st.x[at.GO, g]
        origin = st.x[at.GOO, g] / go if go > 0.0 else float(n)
        st.x[at.GOO, g] = origin  # from here on the mean origin
        st.x[at.ATTEMPT, e] += go
        if go <= 0.0:
            for r in range(st.k[at.ROW, e] + a * m, st.k[at.ROW, e] + a * m + m):
                st.x[at.ARRIVE, r] = 0.0
                st.x[at.HUNG, r] = 0.0
            continue
        for j in range(m):
            r, p = st.k[at.ROW, e] + a * m + j, p0 + j
            if ready <= 0.0:
                refused, arrived, hung = go / m, 0.0, 0.0
            else:
                share = go * st.x[at.WEIGHT, p] / ready
                refused, hung = share * st.x[at.REFUSE, r], share * st.x[at.HANG, r]
                arrived = share - refused - hung
            if refused > 0.0:
                st.x[at.REJECTED, e] += refused
                fail(st, r, refused, origin)
            st.x[at.ARRIVE, r] = arrived
            st.x[at.HUNG, r] = hung
            st.x[at.COUNT, p] += arrived
            st.x[at.LOAD, p] += arrived * st.x[at.WORK, e]


@compiled
def serve(st: State, p: int) -> None:
    """Queue bound and service law of pod p: M/M/c when stationary, plain fluid in overload; implicit in the step length."""
    dt, sl = st.x[at.DT, 0], st.k[at.STEP, 0] & (st.rows.shape[1] - 1)
    cap, wbar, workers = st.x[at.CAP, p] * st.x[at.FACTOR, p], st.x[at.WBAR, p], st.k[at.WORKERS, p]
    count, load, backlog = st.x[at.COUNT, p], st.x[at.LOAD, p], st.x[at.BACKLOG, p]
    waiting = backlog / wbar
    unit = load / count if count > 0.0 else wbar
    room = max(st.x[at.QUEUE, p] - waiting + cap * dt / unit, 0.0)
    accept = min(1.0, room / max(count, 1e-30))
    st.x[at.ACCEPT, p] = accept
    st.rings[at.COHORT, sl, p] = load * accept
    total, number = backlog + load * accept, waiting + count * accept
    if number > 1e-9:
        wbar = total / number
        st.x[at.WBAR, p] = wbar
    kappa = erlang_c(st, workers, st.x[at.RHO, p]) * (1.0 + st.x[at.SCV, st.k[at.PSTATION, p]]) / 2.0
    b, g = total / wbar, cap * dt / wbar + workers
    q = b + g + kappa
    rho = 0.0
    if b > 1e-12:
        rho = min(max((q - math.sqrt(max(q * q - 4.0 * g * b, 0.0))) / (2.0 * g), 0.0), 1.0)
    rem = min(cap * dt * rho, total)
    st.x[at.RHO, p] = rho
    st.x[at.REM, p] = rem
    st.x[at.BACKLOG, p] = total - rem
    st.x[at.CPU, p] += rem


@compiled
def enqueue(st: State, e: int) -> None:
    """Accepted calls become cohorts; what the queue has no room for fails now."""
    n = st.k[at.STEP, 0]
    sl = n & (st.rows.shape[1] - 1)
    for r in range(st.k[at.ROW, e], st.k[at.ROW, e] + st.k[at.NPODS, e] * st.k[at.ATTEMPTS, e]):
        origin, arrived = st.x[at.GOO, st.k[at.RGROUP, r]], st.x[at.ARRIVE, r]
        if arrived <= 0.0 and st.x[at.HUNG, r] <= 0.0:
            continue
        accepted = arrived * st.x[at.ACCEPT, st.k[at.POD, r]]
        rejected = arrived * (1.0 - st.x[at.ACCEPT, st.k[at.POD, r]])
        if rejected > 0.0:
            st.x[at.REJECTED, e] += rejected
            fail(st, r, rejected, origin)
        st.rows[at.AMOUNT, sl, r] = accepted
        st.rows[at.OPEN, sl, r] = accepted + st.x[at.HUNG, r]
        st.rows[at.ORIGIN, sl, r] = origin
        st.x[at.INFLIGHT, r] += accepted


@compiled
def depart(st: State, p: int, head: int, part: float) -> None:
    """The cpu work of a part of cohort `head` of pod p is done: leaves answer, others call their children."""
    h = st.rows.shape[1]
    sl, now = head & (h - 1), st.k[at.STEP, 0] & (h - 1)
    s = st.k[at.PSTATION, p]
    for j in range(st.k[at.EDGE0, s], st.k[at.EDGE1, s]):
        e = st.k[at.BY_STATION, j]
        for k in range(st.k[at.ATTEMPTS, e]):
            r = st.k[at.ROW, e] + k * st.k[at.NPODS, e] + p - st.k[at.POD0, s]
            amount = st.rows[at.AMOUNT, sl, r] * part
            if amount <= 0.0:
                continue
            st.x[at.SERVED, p] += amount
            bad = amount * st.x[at.SPOIL, r]
            if bad > 0.0:
                amount -= bad
                st.x[at.ERROR, e] += bad
                spoil(st, r, head, bad)
            if st.k[at.KID1, e] > st.k[at.KID0, e]:
                st.rows[at.LEFT, now, r] += amount
                st.rows[at.ISSUE, now, r] += amount * head
                st.rings[at.LEFTE, now, e] += amount
            if st.k[at.JOINS, e] == 0:
                answer(st, r, head, amount)


@compiled
def spread(st: State, p: int) -> None:
    """Variance of the time in pod p, from M/M/c; in overload from the number of works ahead."""
    cap, wbar, rho, age = st.x[at.CAP, p] * st.x[at.FACTOR, p], st.x[at.WBAR, p], st.x[at.RHO, p], st.x[at.AGE, p]
    scv = st.x[at.SCV, st.k[at.PSTATION, p]]
    own = st.k[at.WORKERS, p] * wbar / max(cap, 1e-9) if cap > 0.0 else 0.0
    busy = erlang_c(st, st.k[at.WORKERS, p], rho)
    wait = busy * wbar / max(cap * (1.0 - rho), 1e-9) * (1.0 + scv) / 2.0
    w = min(wait, age)
    var = w * w * (2.0 / max(busy, 1e-9) - 1.0) if wait <= age * 1.05 + 1e-9 else w * w
    if rho < 0.98:
        st.x[at.PODVAR, p] = min(own * own * scv + min(var, 4.0 * age * age), 1e9)
    else:
        st.x[at.PODVAR, p] = min(own * own * scv + age * wbar * scv / max(cap, 1e-9), 1e9)


@compiled
def size_up(st: State, p: int) -> None:
    """Latency of the rows of pod p that wait for no children: they answer in the forward pass."""
    s = st.k[at.PSTATION, p]
    for j in range(st.k[at.EDGE0, s], st.k[at.EDGE1, s]):
        e = st.k[at.BY_STATION, j]
        if st.k[at.JOINS, e] == 0:
            late = miss(st, e, st.x[at.AGE, p], st.x[at.PODVAR, p])
            for a in range(st.k[at.ATTEMPTS, e]):
                r = st.k[at.ROW, e] + a * st.k[at.NPODS, e] + p - st.k[at.POD0, s]
                st.x[at.ROWMEAN, r] = st.x[at.AGE, p]
                st.x[at.ROWVAR, r] = st.x[at.PODVAR, p]
                st.x[at.ROWMISS, r] = late


@compiled
def work_off(st: State, p: int) -> None:
    """First in, first out: move the head of pod p through its cohorts by the work done, then let the passed parts depart."""
    h, n = st.rows.shape[1], st.k[at.STEP, 0]
    head, part, rem = st.k[at.HEAD, p], st.x[at.SERVED_PART, p], st.x[at.REM, p]
    head0, part0 = head, part
    while True:
        work = st.rings[at.COHORT, head & (h - 1), p]
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
    st.k[at.HEAD, p] = head
    st.x[at.SERVED_PART, p] = part
    sl = head & (h - 1)
    waited = st.x[at.NOW, 0] + st.x[at.DT, 0] - (st.rings[at.MIDDLE, sl, 0] + (part - 0.5) * st.rings[at.LENGTH, sl, 0])
    # What rounding leaves of a queue nobody adds to is no request that waits.
    st.x[at.AGE, p] = waited if st.x[at.BACKLOG, p] + st.x[at.REM, p] > at.NOBODY * st.x[at.WBAR, p] else 0.0
    spread(st, p)
    size_up(st, p)
    for i in range(head0, head + 1):
        start = part0 if i == head0 else 0.0
        end = part if i == head else 1.0
        if end > start and st.rings[at.COHORT, i & (h - 1), p] > 0.0:
            depart(st, p, i, end - start)


@compiled
def call_children(st: State, e: int) -> None:
    """Children are called in the step in which the work of their parent is done."""
    n = st.k[at.STEP, 0]
    left = st.rings[at.LEFTE, n & (st.rows.shape[1] - 1), e]
    if left <= 0.0:
        return
    for j in range(st.k[at.KID0, e], st.k[at.KID1, e]):
        c = st.k[at.KIDS, j]
        calls = left * st.x[at.CALLS, c] * st.x[at.REACH, c]
        st.x[at.NEW, c] += calls
        st.x[at.NEWO, c] += calls * n
        skipped = left * (1.0 - min(st.x[at.CALLS, c], 1.0) * st.x[at.REACH, c])
        if skipped > 0.0:
            settle(st, at.ANSWERED, c, skipped * max(st.x[at.CALLS, c], 1.0), float(n))


@compiled
def forward(st: State, level: int) -> None:
    for k in range(st.k[at.LEVEL_STATION, level], st.k[at.LEVEL_STATION, level + 1]):
        s = st.k[at.STATIONS, k]
        ready = 0.0
        for p in range(st.k[at.POD0, s], st.k[at.POD1, s]):
            ready += st.x[at.WEIGHT, p]
            st.x[at.COUNT, p] = 0.0
            st.x[at.LOAD, p] = 0.0
        st.x[at.READY, s] = ready
    for k in range(st.k[at.LEVEL_EDGE, level], st.k[at.LEVEL_EDGE, level + 1]):
        e = st.k[at.BY_LEVEL, k]
        st.x[at.FIRST, e] += st.x[at.NEW, e]
        if st.k[at.QUEUED, e] == 1:
            take(st, e)
        st.x[at.GO, st.k[at.GROUP, e]] += st.x[at.NEW, e]
        st.x[at.GOO, st.k[at.GROUP, e]] += st.x[at.NEWO, e]
        if st.k[at.QUEUED, e] == 0:
            admit(st, e)
        arrive(st, e)
    for k in range(st.k[at.LEVEL_STATION, level], st.k[at.LEVEL_STATION, level + 1]):
        for p in range(st.k[at.POD0, st.k[at.STATIONS, k]], st.k[at.POD1, st.k[at.STATIONS, k]]):
            serve(st, p)
    for k in range(st.k[at.LEVEL_EDGE, level], st.k[at.LEVEL_EDGE, level + 1]):
        enqueue(st, st.k[at.BY_LEVEL, k])
    for k in range(st.k[at.LEVEL_STATION, level], st.k[at.LEVEL_STATION, level + 1]):
        for p in range(st.k[at.POD0, st.k[at.STATIONS, k]], st.k[at.POD1, st.k[at.STATIONS, k]]):
            work_off(st, p)
    for k in range(st.k[at.LEVEL_EDGE, level], st.k[at.LEVEL_EDGE, level + 1]):
        call_children(st, st.k[at.BY_LEVEL, k])
