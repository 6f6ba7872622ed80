"""Leaves first: latency moments, joins, and answers that climb to the callers. Part of the kernel (see `outcomes`)."""

import math

from itbench.world.flow import layout as at
from itbench.world.flow.jit import compiled
from itbench.world.flow.layout import State
from itbench.world.flow.outcomes import answer, miss, spoil, tail

CRUMB = 1e-9
"""News below this share of a cohort wait for more: the exponential tails of sojourns would cost most of the time for nothing."""


@compiled
def chains(st: State, e: int) -> float:
    """Latency of every chain of children of e that are called one after the other, kept at the first of each.

    Returns a number that changes when any of them does.
    """
    mark = 0.0
    for j in range(st.k[at.KID0, e], st.k[at.KID1, e]):
        c = st.k[at.KIDS, j]
        st.x[at.CHAINMEAN, c] = 0.0
        st.x[at.CHAINVAR, c] = 0.0
        if st.k[at.JOIN, c] == 1:
            root = c
            while st.k[at.AFTER, root] >= 0:
                root = st.k[at.AFTER, root]
            share, mean = min(st.x[at.CALLS, c], 1.0), st.x[at.MEAN, c]
            var = share * st.x[at.VAR, c] + share * (1.0 - share) * mean * mean
            st.x[at.CHAINMEAN, root] += share * mean
            st.x[at.CHAINVAR, root] += var
            mark += (j + 1.0) * (share * mean + 1.4 * var)
    return mark


@compiled
def below(st: State, c: int, x: float) -> float:
    """P(chain of c has answered within x)."""
    return 1.0 - tail(x, st.x[at.CHAINMEAN, c], st.x[at.CHAINVAR, c])


@compiled
def largest(st: State, e: int) -> None:
    """Mean and variance of the slowest of the parallel chains of e: quadrature of 1 - product of the distributions, 41 points."""
    count, first, top = 0, -1, 0.0
    for j in range(st.k[at.KID0, e], st.k[at.KID1, e]):
        c = st.k[at.KIDS, j]
        if st.k[at.JOIN, c] == 1 and st.k[at.AFTER, c] < 0:
            top = max(top, st.x[at.CHAINMEAN, c] + 6.0 * math.sqrt(st.x[at.CHAINVAR, c]))
            count += 1
            first = c
    if count == 1 or top <= 0.0:
        st.x[at.KIDMEAN, e] = st.x[at.CHAINMEAN, first]
        st.x[at.KIDVAR, e] = st.x[at.CHAINVAR, first]
        return
    d, mean, square = top / 40.0, 0.0, 0.0
    for i in range(41):
        product = 1.0
        for j in range(st.k[at.KID0, e], st.k[at.KID1, e]):
            c = st.k[at.KIDS, j]
            if st.k[at.JOIN, c] == 1 and st.k[at.AFTER, c] < 0 and st.x[at.CHAINMEAN, c] > 0.0:
                product *= below(st, c, i * d)
        mean += (1.0 - product) * (0.5 if i == 0 else 1.0)
        square += (1.0 - product) * i * d
    st.x[at.KIDMEAN, e] = mean * d
    st.x[at.KIDVAR, e] = max(2.0 * d * square - mean * d * mean * d, 1e-12)


@compiled
def children(st: State, e: int) -> float:
    """Bring KIDMEAN and KIDVAR of e up to date where its children changed; returns the network time on the longest way."""
    mark = chains(st, e)
    if abs(mark - st.x[at.KIDMARK, e]) > 1e-9 * mark:
        st.x[at.KIDMARK, e] = mark
        largest(st, e)
    network = 0.0
    for j in range(st.k[at.KID0, e], st.k[at.KID1, e]):
        c, way = st.k[at.KIDS, j], 0.0
        while c >= 0:
            if st.k[at.JOIN, c] == 1:
                way += min(st.x[at.CALLS, c], 1.0) * st.x[at.NETWORK, c]
            c = st.k[at.AFTER, c]
        network = max(network, way)
    return network


@compiled
def called(st: State, e: int) -> bool:
    """Whether edge e makes attempts in this step."""
    total = 0.0
    for g in range(st.k[at.GROUP, e], st.k[at.GROUP, e] + st.k[at.ATTEMPTS, e]):
        total += st.x[at.GO, g]
    return total > 0.0


@compiled
def moments(st: State, e: int) -> None:
    """Mean and variance of the response time of edge e: own pods plus children; refused at once takes no time."""
    sl = st.k[at.STEP, 0] & (st.rows.shape[1] - 1)
    network = children(st, e) if st.k[at.JOINS, e] == 1 else 0.0
    st.x[at.NETWORK, e] = network + st.x[at.DELAY, e]
    total = sum_m = sum_v = taken = 0.0
    first, m = st.k[at.ROW, e], st.k[at.NPODS, e]
    for r in range(first, first + m * st.k[at.ATTEMPTS, e]):
        p = st.k[at.POD, r]
        st.x[at.ROWMEAN, r] = st.x[at.AGE, p] + st.x[at.KIDMEAN, e]
        st.x[at.ROWVAR, r] = st.x[at.PODVAR, p] + st.x[at.KIDVAR, e]
        if st.k[at.JOINS, e] == 1:  # later attempts have the pods of the first
            late = miss(st, e, st.x[at.ROWMEAN, r], st.x[at.ROWVAR, r]) if r < first + m else st.x[at.ROWMISS, r - m]
            st.x[at.ROWMISS, r] = late
        taken += st.rows[at.AMOUNT, sl, r]
        weight = st.rows[at.AMOUNT, sl, r] + 1e-12
        total += weight
        sum_m += weight * st.x[at.ROWMEAN, r]
        sum_v += weight * st.x[at.ROWVAR, r]
    turned_away = taken <= 0.0 and called(st, e)
    st.x[at.MEAN, e] = 0.0 if turned_away else sum_m / total
    st.x[at.VAR, e] = 0.0 if turned_away else sum_v / total


@compiled
def pass_on(st: State, e: int, o: int, amount: float, good: bool) -> None:
    """Answers (or failures) of the children, for calls made in step o, reach the rows of their parent e."""
    h = st.rows.shape[1]
    sl, oldest = o & (h - 1), float(st.k[at.STEP, 0] - h + 1)
    for r in range(st.k[at.ROW, e], st.k[at.ROW, e] + st.k[at.NPODS, e] * st.k[at.ATTEMPTS, e]):
        left = st.rows[at.LEFT, sl, r]
        if left <= 0.0:
            continue
        issue = max(st.rows[at.ISSUE, sl, r] / left, oldest)
        lo = math.floor(issue + 1e-9)
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
    sl = o & (st.rows.shape[1] - 1)
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
    if good > CRUMB * st.rings[at.LEFTE, sl, e]:
        st.rings[at.PASSED, sl, e] = least
        pass_on(st, e, o, good, True)
    if bad > CRUMB * st.rings[at.LEFTE, sl, e]:
        st.rings[at.PASSEDF, sl, e] = most
        pass_on(st, e, o, bad, False)


@compiled
def backward(st: State, level: int) -> None:
    h, n = st.rows.shape[1], st.k[at.STEP, 0]
    for k in range(st.k[at.LEVEL_EDGE, level], st.k[at.LEVEL_EDGE, level + 1]):
        moments(st, st.k[at.BY_LEVEL, k])
    for i in range(st.k[at.TOUCHED, 0]):
        e, o = st.news[0, i], st.news[1, i]
        if st.k[at.HEIGHT, e] == level and st.rings[at.FRESH, o & (h - 1), e] == 1.0 and o > n - h:
            st.rings[at.FRESH, o & (h - 1), e] = 0.0
            join(st, e, o)
