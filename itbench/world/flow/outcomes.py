"""What becomes of attempts: answered in time, late, failed, retried, lost; and the news for their callers. Part of the kernel.

Functions of the kernel take the state as first argument and change it; `e` is an edge, `r` a row, `p` a pod, `s` a station,
`sl` a ring slot, `n` the number of the step, `h` the ring length.
"""

import math

import numpy as np

from itbench.world.flow import layout as at
from itbench.world.flow.jit import compiled
from itbench.world.flow.layout import State


@compiled
def tail(x: float, mean: float, var: float) -> float:
    """P(X > x) of a gamma distribution; exact at shape 1, Wilson-Hilferty above."""
    k = min(max(mean * mean / max(var, 1e-18), 1.0), 1e9)
    r = max(x, 0.0) / max(mean, 1e-12)
    if k < 1.02:
        return math.exp(-min(r, 700.0))
    z = (float(np.cbrt(r)) - (1.0 - 1.0 / (9.0 * k))) * 3.0 * math.sqrt(k)
    a = abs(z)
    t = 1.0 / (1.0 + 0.2316419 * a)
    poly = t * (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    p = math.exp(-a * a / 2.0) * 0.3989422804 * poly
    return p if z > 0 else 1.0 - p


@compiled
def erlang_c(st: State, workers: int, rho: float) -> float:
    """P(wait) of M/M/c at utilisation rho, from the table."""
    u = rho * at.GRID
    i = min(int(u), at.GRID - 1)
    low, high = float(st.erl[workers - 1, i]), float(st.erl[workers - 1, i + 1])
    return low * (1.0 - u + i) + high * (u - i)


@compiled
def touch(st: State, parent: int, o: int) -> None:
    sl = o & (st.rows.shape[1] - 1)
    if parent >= 0 and st.rings[at.FRESH, sl, parent] == 0.0:
        st.rings[at.FRESH, sl, parent] = 1.0
        k = st.k[at.TOUCHED, 0]
        st.news[0, k] = parent
        st.news[1, k] = o
        st.k[at.TOUCHED, 0] = k + 1


@compiled
def settle(st: State, what: int, e: int, amount: float, origin: float) -> None:
    """Tell the parent of edge e: answered or lost calls of a (fractional) origin, in units of its requests."""
    if st.k[at.JOIN, e] == 0:
        return
    h = st.rows.shape[1]
    oldest = float(st.k[at.STEP, 0] - h + 1)
    origin = max(origin, oldest)
    lo = math.floor(origin + 1e-9)
    f = min(max(origin - lo, 0.0), 1.0)
    if f < 1e-6:
        f = 0.0
    a = amount / max(st.x[at.CALLS, e], 1.0)
    st.rings[what, lo & (h - 1), e] += a * (1.0 - f)
    touch(st, st.k[at.PARENT, e], lo)
    if f > 0.0:
        st.rings[what, (lo + 1) & (h - 1), e] += a * f
        touch(st, st.k[at.PARENT, e], lo + 1)


@compiled
def fail(st: State, r: int, amount: float, origin: float) -> None:
    """Failed attempts of row r: retried inside the allowance, else the call has failed for good."""
    e = st.k[at.EDGE, r]
    go = 0.0
    if st.k[at.TRY, r] < st.k[at.RETRIES, e]:
        go = amount
        if st.x[at.BUDGET, e] >= 0.0:
            go = min(amount, st.x[at.TOKENS, e])
            st.x[at.TOKENS, e] -= go
        sl = st.k[at.STEP, 0] & (st.rows.shape[1] - 1)
        g = st.k[at.RGROUP, r] + 1
        st.rings[at.WAITING, sl, g] += go
        st.rings[at.WAITINGO, sl, g] += go * origin
        st.x[at.RETRIED, e] += go
    if amount - go > 0.0:
        lose(st, e, amount - go, origin)


@compiled
def lose(st: State, e: int, amount: float, origin: float) -> None:
    """Calls of edge e that have failed for good."""
    st.x[at.FAILED, e] += amount
    settle(st, at.LOST, e, amount, origin)


@compiled
def miss(st: State, e: int, mean: float, var: float) -> float:
    """P(an attempt of edge e takes longer than its timeout)."""
    if st.x[at.TIMEOUT, e] == math.inf:
        return 0.0
    return tail(st.x[at.TIMEOUT, e] - st.x[at.NETWORK, e], mean, var)


@compiled
def clock(st: State, r: int, sl: int, ok: float, mean: float, var: float, origin: float) -> None:
    """Collect the latency of answered calls as their caller sees it, retries included."""
    h = st.rows.shape[1]
    e, g = st.k[at.EDGE, r], st.k[at.RGROUP, r]
    shift = st.x[at.NETWORK, e]
    if st.k[at.TRY, r] > 0:
        o = int(max(round(origin), st.k[at.STEP, 0] - h + 1))
        shift += st.rings[at.MIDDLE, sl, 0] - st.rings[at.MIDDLE, o & (h - 1), 0]
    x = mean + shift
    st.x[at.AW, g] += ok
    st.x[at.AX, g] += ok * x
    st.x[at.AXX, g] += ok * x * x
    st.x[at.AV, g] += ok * var
    st.x[at.AS, g] += ok * shift
    st.x[at.LATENCY, e] += ok * x


@compiled
def answer(st: State, r: int, issued: int, amount: float) -> None:
    """Row r has answered attempts issued in step `issued`: in time they count, else the work was for nothing."""
    e = st.k[at.EDGE, r]
    h = st.rows.shape[1]
    sl = issued & (h - 1)
    dt = st.x[at.DT, 0]
    age = st.x[at.NOW, 0] + dt - st.rings[at.MIDDLE, sl, 0] - dt / 2.0
    mean, var, late = st.x[at.ROWMEAN, r], st.x[at.ROWVAR, r], st.x[at.ROWMISS, r]
    if st.k[at.QUIET, 0] < at.SETTLED and abs(age - mean) > 1.5 * dt:
        mean = age if age > 0.0 else max(age, mean)
        late = miss(st, e, mean, var)
    net = st.x[at.NETWORK, e]
    ok = 0.0
    if issued >= st.k[at.DUE, e]:
        ok = amount * (1.0 - late)
    st.rows[at.OPEN, sl, r] -= ok
    st.x[at.INFLIGHT, r] -= amount
    st.x[at.DONE, r] += amount
    st.x[at.LATE, e] += amount - ok
    st.x[at.OK, e] += ok
    if st.x[at.BUDGET, e] > 0.0:
        st.x[at.TOKENS, e] = min(st.x[at.TOKENS, e] + st.x[at.BUDGET, e] * ok, at.TOKENS_MAX)
    inner = net - st.x[at.DELAY, e]
    x = mean + inner
    st.x[at.SW, e] += amount
    st.x[at.SX, e] += amount * x
    st.x[at.SXX, e] += amount * x * x
    st.x[at.SV, e] += amount * var
    st.x[at.SS, e] += amount * inner
    if ok > 0.0:
        origin = st.rows[at.ORIGIN, sl, r]
        settle(st, at.ANSWERED, e, ok, origin)
        clock(st, r, sl, ok, mean, var, origin)


@compiled
def spoil(st: State, r: int, issued: int, amount: float) -> None:
    """Row r answers with an error: counts where the caller still waits; whether it is tried again is up to the caller."""
    e, sl = st.k[at.EDGE, r], issued & (st.rows.shape[1] - 1)
    st.x[at.INFLIGHT, r] -= amount
    st.x[at.BROKEN, r] += amount
    if issued >= st.k[at.DUE, e]:
        st.rows[at.OPEN, sl, r] -= amount
        if st.k[at.AGAIN, e] == 1:
            fail(st, r, amount, st.rows[at.ORIGIN, sl, r])
        else:
            lose(st, e, amount, st.rows[at.ORIGIN, sl, r])
    else:
        st.x[at.LATE, e] += amount
