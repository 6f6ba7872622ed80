"""Leaves first: latency moments, joins, and answers that climb to the callers. Part of the kernel (see `outcomes`)."""

import math

from itbench.world.flow import layout as at
from itbench.world.flow.jit import compiled
from itbench.world.flow.layout import State
from itbench.world.flow.outcomes import answer, spoil, tail


@compiled
def chain(st: State, c: int) -> tuple[float, float]:
    """Mean and variance of child c and all that are called one after the other behind it."""
    mean = var = 0.0
    for j in range(st.k[at.KID0, st.k[at.PARENT, c]], st.k[at.KID1, st.k[at.PARENT, c]]):
        k = st.k[at.KIDS, j]
        root = k
        while st.k[at.AFTER, root] >= 0:
            root = st.k[at.AFTER, root]
        if root == c and st.k[at.JOIN, k] == 1:
            w = min(st.x[at.CALLS, k], 1.0)
            mean += w * st.x[at.MEAN, k]
            var += w * st.x[at.VAR, k] + w * (1.0 - w) * st.x[at.MEAN, k] ** 2
    return mean, var


@compiled
def largest(st: State, e: int) -> tuple[float, float]:
    """Mean and variance of the slowest of the parallel chains of children of e: quadrature of 1 - product of the CDFs."""
    chains, top, mean, var = 0, 0.0, 0.0, 0.0
    for j in range(st.k[at.KID0, e], st.k[at.KID1, e]):
        if st.k[at.JOIN, st.k[at.KIDS, j]] == 1 and st.k[at.AFTER, st.k[at.KIDS, j]] < 0:
            mean, var = chain(st, st.k[at.KIDS, j])
            top = max(top, mean + 6.0 * math.sqrt(var))
            chains += 1
    if chains == 1 or top <= 0.0:
        return mean, var
    d = top / 40.0
    first = second = 0.0
    for i in range(41):
        below = 1.0
        for j in range(st.k[at.KID0, e], st.k[at.KID1, e]):
            if st.k[at.JOIN, st.k[at.KIDS, j]] == 1 and st.k[at.AFTER, st.k[at.KIDS, j]] < 0:
                mean, var = chain(st, st.k[at.KIDS, j])
                below *= 1.0 - tail(i * d, mean, var)
        first += (1.0 - below) * (0.5 if i == 0 else 1.0)
        second += (1.0 - below) * i * d
    first *= d
    return first, max(2.0 * d * second - first * first, 1e-12)


@compiled
def moments(st: State, e: int) -> None:
    """Mean and variance of the response time of edge e: own pods plus children."""
    sl = st.k[at.STEP, 0] % st.rows.shape[1]
    mean = var = network = 0.0
    if st.k[at.JOINS, e] == 1:
        mean, var = largest(st, e)
        for j in range(st.k[at.KID0, e], st.k[at.KID1, e]):
            c, way = st.k[at.KIDS, j], 0.0
            while c >= 0:
                if st.k[at.JOIN, c] == 1:
                    way += min(st.x[at.CALLS, c], 1.0) * st.x[at.NETWORK, c]
                c = st.k[at.AFTER, c]
            network = max(network, way)
    total = sum_m = sum_v = 0.0
    for r in range(st.k[at.ROW, e], st.k[at.ROW, e] + st.k[at.NPODS, e] * st.k[at.ATTEMPTS, e]):
        p = st.k[at.POD, r]
        st.x[at.ROWMEAN, r] = st.x[at.AGE, p] + mean
        st.x[at.ROWVAR, r] = st.x[at.PODVAR, p] + var
        weight = st.rows[at.AMOUNT, sl, r] + 1e-12
        total += weight
        sum_m += weight * st.x[at.ROWMEAN, r]
        sum_v += weight * st.x[at.ROWVAR, r]
    st.x[at.MEAN, e] = sum_m / total
    st.x[at.VAR, e] = sum_v / total
    st.x[at.NETWORK, e] = network + st.x[at.DELAY, e]


@compiled
def pass_on(st: State, e: int, o: int, amount: float, good: bool) -> None:
    """Answers (or failures) of the children, for calls made in step o, reach the rows of their parent e."""
    h = st.rows.shape[1]
    sl, oldest = o % h, float(st.k[at.STEP, 0] - h + 1)
    for r in range(st.k[at.ROW, e], st.k[at.ROW, e] + st.k[at.NPODS, e] * st.k[at.ATTEMPTS, e]):
        left = st.rows[at.LEFT, sl, r]
        if left <= 0.0:
            continue
        issue = max(st.rows[at.ISSUE, sl, r] / left, oldest)
        lo = int(math.floor(issue + 1e-9))
        f = min(max(issue - lo, 0.0), 1.0)
        if f < 1e-6:
            f = 0.0
        share = amount * left / st.rings[at.LEFTE, sl, e]
        for k in range(2):
            part = share * (1.0 - f) if k == 0 else share * f
            if part > 1e-15:
                if good:
                    answer(st, r, lo + k, part)
                else:
                    spoil(st, r, lo + k, part)


@compiled
def join(st: State, e: int, o: int) -> None:
    """What all joined children of e have answered, and what one of them has lost for good, since the last look at step o."""
    sl = o % st.rows.shape[1]
    least, most = math.inf, 0.0
    for j in range(st.k[at.KID0, e], st.k[at.KID1, e]):
        c = st.k[at.KIDS, j]
        if st.k[at.JOIN, c] == 1:
            if st.k[at.SOFT, c] == 1:
                least = min(least, st.rings[at.ANSWERED, sl, c] + st.rings[at.LOST, sl, c])
            else:
                least = min(least, st.rings[at.ANSWERED, sl, c])
                most = max(most, st.rings[at.LOST, sl, c])
    good, bad = least - st.rings[at.PASSED, sl, e], most - st.rings[at.PASSEDF, sl, e]
    st.rings[at.PASSED, sl, e] = least
    st.rings[at.PASSEDF, sl, e] = most
    if good > 0.0:
        pass_on(st, e, o, good, True)
    if bad > 0.0:
        pass_on(st, e, o, bad, False)


@compiled
def backward(st: State, level: int) -> None:
    h, n = st.rows.shape[1], st.k[at.STEP, 0]
    for k in range(st.k[at.LEVEL_EDGE, level], st.k[at.LEVEL_EDGE, level + 1]):
        moments(st, st.k[at.BY_LEVEL, k])
    for i in range(st.k[at.TOUCHED, 0]):
        e, o = st.news[0, i], st.news[1, i]
        station = st.k[at.STATION, e]
        here = False
        for k in range(st.k[at.LEVEL_STATION, level], st.k[at.LEVEL_STATION, level + 1]):
            here = here or st.k[at.STATIONS, k] == station
        if here and st.rings[at.FRESH, o % h, e] == 1.0 and o > n - h:
            st.rings[at.FRESH, o % h, e] = 0.0
            join(st, e, o)
