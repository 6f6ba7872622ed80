"""The same formulation as the compiled kernel, written independently with whole numpy arrays; slow, only for comparison in tests.

Covers stations, timeouts, retries, back-off, queue bounds, calls per request, soft and sequential children, cuts, readiness and
resets. Not: budgets, faults, admission, brokers, network delay, histograms.
"""

from dataclasses import dataclass

import numpy as np

from itbench.world.flow.layout import erlang_table
from itbench.world.flow.spec import FlowSpec

ERLANG = erlang_table()
COUNTERS = ("first", "attempts", "ok", "failed", "timed_out", "late", "rejected", "retried", "reset")
CRUMB = 1e-9


def normal_tail(z):
    a = np.abs(z)
    k = 1 / (1 + 0.2316419 * a)
    poly = k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    p = np.exp(-a * a / 2) * 0.3989422804 * poly
    return np.where(z > 0, p, 1 - p)


def gamma_tail(x, mean, var):
    k = np.clip(mean * mean / np.maximum(var, 1e-18), 1.0, 1e9)
    r = np.maximum(x, 0) / np.maximum(mean, 1e-12)
    z = (np.cbrt(r) - (1 - 1 / (9 * k))) * 3 * np.sqrt(k)
    return np.where(k < 1.02, np.exp(-np.minimum(r, 700)), normal_tail(z))


def slowest(mean, var):
    """Mean and variance of the largest of independent gammas."""
    x = np.linspace(0, 1, 41) * (mean + 6 * np.sqrt(var)).max()
    above = 1 - np.prod(1 - gamma_tail(x, mean[:, None], var[:, None]), axis=0)
    first = x[1] * (above.sum() - above[0] / 2)
    return first, max(2 * x[1] * (x * above).sum() - first * first, 1e-12)


def split(x):
    """A fractional slot as its lower neighbour and the share of the upper one."""
    low = np.floor(x + 1e-9).astype(int)
    part = np.clip(x - low, 0, 1)
    return low, np.where(part < 1e-6, 0.0, part)


@dataclass
class Topology:
    """Index arrays of a net: rows (edge, attempt, pod), sorted by the level of the callee."""

    spec: FlowSpec

    def __post_init__(self):
        spec, level = self.spec, self.spec.levels()
        self.pods = {}
        self.owner = []
        for s in sorted(range(len(spec.stations)), key=lambda i: (level[i], i)):
            self.pods[s] = np.arange(len(self.owner), len(self.owner) + spec.stations[s].slots)
            self.owner += [s] * spec.stations[s].slots
        self.owner = np.array(self.owner)
        rows, groups = [], []
        for e in sorted(range(len(spec.edges)), key=lambda e: (level[spec.edges[e].station], e)):
            for a in range(spec.edges[e].attempts):
                rows += [(e, a, p, len(groups)) for p in self.pods[spec.edges[e].station]]
                groups.append((e, a))
        self.edge, self.attempt, self.pod, self.group = (np.array(x) for x in zip(*rows, strict=True))
        self.group_edge = np.array([g[0] for g in groups])
        self.first = np.array([groups.index((e, 0)) for e in range(len(spec.edges))])
        self.kids = {e: [c for c, x in enumerate(spec.edges) if x.parent == e] for e in range(len(spec.edges))}
        self.joined = {e: [c for c in kids if spec.edges[c].join] for e, kids in self.kids.items()}
        self.level = np.array(level)
        self.edge_level = self.level[[x.station for x in spec.edges]]


class Reference:
    """Runs a net with fixed steps."""

    def __init__(self, spec, step_s, slots=1024):
        self.spec, self.top, self.h, self.dt = spec, Topology(spec), slots, step_s
        top, edges = self.top, spec.edges
        e, p, n, g = len(edges), len(top.owner), len(top.edge), len(top.group_edge)
        of = {k: np.array([getattr(x, k) for x in edges], float) for k in ("work_s", "timeout_s", "backoff_s", "calls")}
        self.work, self.timeout, self.backoff, self.calls = of.values()
        self.retries = np.array([x.retries for x in edges])
        self.parent = np.array([x.parent for x in edges])
        self.soft = np.array([x.soft for x in edges])
        self.rate, self.ready, self.factor = np.zeros(e), np.zeros(p), np.ones(p)
        station = [spec.stations[s] for s in top.owner]
        self.cap = np.array([s.capacity_cpu for s in station])
        self.workers = np.array([s.concurrency for s in station])
        self.queue = np.array([s.queue for s in station])
        self.scv = np.array([s.scv for s in station])
        self.n, self.now, self.quiet, self.bad = 0, 0.0, 0, 0.0
        self.t, self.length = np.zeros(slots), np.full(slots, step_s)
        self.amount, self.open, self.origin, self.left, self.issue = (np.zeros((n, slots)) for _ in range(5))
        self.answered, self.lost, self.passed, self.passed_failed, self.left_e = (
            np.zeros((e, slots)) for _ in range(5)
        )
        self.waiting, self.waiting_origin = np.zeros((g, slots)), np.zeros((g, slots))
        self.cohort = np.zeros((p, slots))
        self.head, self.part, self.backlog = np.zeros(p, int), np.zeros(p), np.zeros(p)
        self.wbar, self.rho, self.age, self.var = np.full(p, 1e-9), np.zeros(p), np.zeros(p), np.zeros(p)
        self.backlog0, self.full = np.zeros(p), False
        self.due, self.ptr = np.zeros(e, int), np.zeros(g, int)
        self.row_mean, self.row_var, self.debt = np.zeros(n), np.zeros(n), np.zeros(n)
        self.mean, self.variance = np.zeros(e), np.zeros(e)
        self.reach, self.share, self.ok0, self.failed0 = np.ones(e), np.ones(e), np.zeros(e), np.zeros(e)
        self.news, self.dead = set(), []
        self.count = {k: np.zeros(e) for k in COUNTERS}

    def pod(self, station, slot):
        return self.top.pods[station][slot]

    # ---- outcomes

    def settle(self, what, edges, amount, origin):
        low, part = split(origin)
        for e, a, lo, f in zip(edges, amount / np.maximum(self.calls[edges], 1), low, part, strict=True):
            if self.spec.edges[e].join and self.parent[e] >= 0:
                what[e, lo % self.h] += a * (1 - f)
                self.news.add((self.parent[e], lo))
                if f > 0:
                    what[e, (lo + 1) % self.h] += a * f
                    self.news.add((self.parent[e], lo + 1))

    def fail(self, rows, amount, origin):
        e = self.top.edge[rows]
        again = self.top.attempt[rows] < self.retries[e]
        g, sl = self.top.group[rows[again]] + 1, self.n % self.h
        np.add.at(self.waiting, (g, sl), amount[again])
        np.add.at(self.waiting_origin, (g, sl), (amount * origin)[again])
        np.add.at(self.count["retried"], e[again], amount[again])
        over = ~again & (amount > 0)
        np.add.at(self.count["failed"], e[over], amount[over])
        self.settle(self.lost, e[over], amount[over], origin[over])

    def answer(self, rows, issued, amount):
        e, sl = self.top.edge[rows], issued % self.h
        age = self.now + self.dt - self.t[sl] - self.dt / 2
        mean = self.row_mean[rows]
        if self.quiet < 20:
            mean = np.where(np.abs(age - mean) > 1.5 * self.dt, np.maximum(age, mean * (age <= 0)), mean)
        bounded = np.isfinite(self.timeout[e])
        late = np.where(bounded, gamma_tail(np.where(bounded, self.timeout[e], 1), mean, self.row_var[rows]), 0.0)
        ok = np.where(issued >= self.due[e], amount * (1 - late), 0.0)
        np.subtract.at(self.open, (rows, sl), ok)
        np.add.at(self.count["late"], e, amount - ok)
        np.add.at(self.count["ok"], e, ok)
        some = ok > 0
        self.settle(self.answered, e[some], ok[some], self.origin[rows, sl][some])

    # ---- a step

    def step(self):
        for p in self.dead:
            self.bury(p)
        self.dead = []
        self.n += 1
        sl = self.n % self.h
        self.t[sl], self.length[sl] = self.now + self.dt / 2, self.dt
        for ring in (self.amount, self.open, self.origin, self.left, self.issue, self.answered, self.lost, self.passed,
                     self.passed_failed, self.left_e, self.waiting, self.waiting_origin, self.cohort):  # fmt: skip
            ring[:, sl] = 0
        self.reaches()
        self.deadlines()
        go, origins = self.releases()
        root = self.parent < 0
        self.new = np.where(root, self.rate * self.dt, 0.0)
        self.full = False
        leaves = []
        for level in range(self.top.level.max() + 1):
            self.forward(level, go, origins, leaves)
        for level in range(self.top.level.max(), -1, -1):
            self.backward(level, leaves)
        self.news.clear()
        self.now += self.dt
        self.judge()

    def bury(self, p):
        rows = np.flatnonzero(self.top.pod == p)
        for i in range(max(self.n - self.h + 1, 0), self.n + 1):
            amount = self.open[rows, i % self.h] + self.debt[rows]
            self.debt[rows] = np.minimum(amount, 0)
            hit = amount > 0
            np.add.at(self.count["reset"], self.top.edge[rows[hit]], amount[hit])
            self.fail(rows[hit], amount[hit], self.origin[rows[hit], i % self.h])
        for ring in (self.open, self.amount, self.left, self.issue):
            ring[rows] = 0
        self.cohort[p] = 0
        self.backlog[p] = self.part[p] = self.rho[p] = self.age[p] = 0
        self.head[p] = self.n

    def reaches(self):
        ok, failed = self.count["ok"] - self.ok0, self.count["failed"] - self.failed0
        self.ok0, self.failed0 = self.count["ok"].copy(), self.count["failed"].copy()
        some = ok + failed > 1e-12
        self.share[some] = ok[some] / (ok + failed)[some]
        for e, x in enumerate(self.spec.edges):
            if x.after >= 0:
                self.reach[e] = self.reach[x.after] * (1 if self.soft[x.after] else self.share[x.after])

    def deadlines(self):
        while True:
            over = (self.due < self.n) & (self.t[self.due % self.h] + self.timeout <= self.now + self.dt / 2 + 1e-9)
            if not over.any():
                return
            rows = np.flatnonzero(over[self.top.edge])
            sl = self.due[self.top.edge[rows]] % self.h
            amount = self.open[rows, sl] + self.debt[rows]
            self.debt[rows] = np.minimum(amount, 0)
            self.open[rows, sl] = 0
            some = amount > 1e-12
            np.add.at(self.count["timed_out"], self.top.edge[rows[some]], amount[some])
            self.fail(rows[some], amount[some], self.origin[rows[some], sl[some]])
            self.due += over

    def releases(self):
        go, origins = np.zeros(len(self.ptr)), np.zeros(len(self.ptr))
        groups = np.arange(len(self.ptr))
        while True:
            i = self.ptr % self.h
            start = self.t[i] - self.length[i] / 2
            over = (self.ptr <= self.n) & (start + self.backoff[self.top.group_edge] <= self.now + 1e-9)
            go += np.where(over, self.waiting[groups, i], 0)
            origins += np.where(over, self.waiting_origin[groups, i], 0)
            self.waiting[groups[over], i[over]] = self.waiting_origin[groups[over], i[over]] = 0
            more = over & (self.ptr < self.n)
            self.ptr += more
            if not more.any():
                return go, origins

    def forward(self, level, go, origins, leaves):
        top, sl, self.go = self.top, self.n % self.h, go
        edges = np.flatnonzero(top.edge_level == level)
        rows = np.flatnonzero(top.edge_level[top.edge] == level)
        pods = np.flatnonzero(top.level[top.owner] == level)
        self.count["first"][edges] += self.new[edges]
        go[top.first[edges]] += self.new[edges]
        origins[top.first[edges]] += self.new[edges] * self.n
        total = np.bincount(top.owner, self.ready)
        share = self.ready / np.maximum(total[top.owner], 1e-9)
        e, p, g = top.edge[rows], top.pod[rows], top.group[rows]
        slots = np.array([self.spec.stations[x.station].slots for x in self.spec.edges])
        origin = np.where(go[g] > 0, origins[g] / np.maximum(go[g], 1e-300), self.n)
        refused = np.where(total[top.owner[p]] == 0, go[g] / slots[e], 0.0)
        arrived = go[g] * share[p]
        np.add.at(self.count["attempts"], e, arrived + refused)
        number = np.bincount(p, arrived, len(top.owner))
        load = np.bincount(p, arrived * self.work[e], len(top.owner))
        accept = self.serve(pods, number, load)
        rejected = arrived * (1 - accept[p]) + refused
        np.add.at(self.count["rejected"], e, rejected)
        self.fail(rows, rejected, origin)
        self.amount[rows, sl] = self.open[rows, sl] = arrived * accept[p]
        self.origin[rows, sl] = origin
        for one in pods:
            self.work_off(one, rows[p == one], leaves)
        for c in (c for x in edges for c in top.kids[x]):
            left = self.left_e[self.parent[c], sl]
            self.new[c] += left * self.calls[c] * self.reach[c]
            rest = left * (1 - min(self.calls[c], 1) * self.reach[c])
            if rest > 0:
                self.settle(
                    self.answered, np.array([c]), np.array([rest * max(self.calls[c], 1)]), np.array([float(self.n)])
                )

    def busy(self, workers, rho):
        u = rho * 512
        i = np.minimum(u.astype(int), 511)
        return ERLANG[workers - 1, i] * (1 - u + i) + ERLANG[workers - 1, i + 1] * (u - i)

    def serve(self, pods, number, load):
        cap, accept = self.cap * self.factor * self.dt, np.ones(len(self.cap))
        waiting = self.backlog / self.wbar
        unit = np.where(number > 0, load / np.maximum(number, 1e-300), self.wbar)
        room = np.maximum(self.queue - waiting + cap / unit, 0)
        accept[pods] = np.minimum(1.0, room / np.maximum(number, 1e-30))[pods]
        self.full |= bool((accept[pods] < 1).any())
        self.cohort[pods, self.n % self.h] = (load * accept)[pods]
        total, count = self.backlog + load * accept, waiting + number * accept
        wbar = np.where(count > 1e-9, total / np.maximum(count, 1e-300), self.wbar)
        kappa = self.busy(self.workers, self.rho) * (1 + self.scv) / 2
        b, g = total / wbar, cap / wbar + self.workers
        q = b + g + kappa
        rho = np.where(b > 1e-12, (q - np.sqrt(np.maximum(q * q - 4 * g * b, 0))) / (2 * g), 0.0).clip(0, 1)
        self.done = np.minimum(cap * rho, total)
        for array, value in ((self.wbar, wbar), (self.rho, rho), (self.backlog, total - self.done)):
            array[pods] = value[pods]
        return accept

    def work_off(self, p, rows, leaves):
        rem, sl, passed = self.done[p], self.n % self.h, []
        total = self.backlog[p] + rem
        while True:
            h = self.head[p]
            work = self.cohort[p, h % self.h]
            left = work * (1 - self.part[p])
            take = min(rem, left)
            if take > 0:
                passed.append((h, take / work))
                self.part[p] += take / work
            rem -= take
            if not (h < self.n and (take >= left or work <= 0)):
                break
            self.head[p], self.part[p] = h + 1, 0.0
        i = self.head[p] % self.h
        self.age[p] = self.now + self.dt - (self.t[i] + (self.part[p] - 0.5) * self.length[i])
        self.age[p] *= total > 1e-9 * self.wbar[p]
        self.spread(p)
        for h, part in passed:
            for r in rows:
                amount = self.amount[r, h % self.h] * part
                if amount <= 0:
                    continue
                e = self.top.edge[r]
                if self.top.kids[e]:
                    self.left[r, sl] += amount
                    self.issue[r, sl] += amount * h
                    self.left_e[e, sl] += amount
                if not self.top.joined[e]:
                    leaves.append((r, h, amount))

    def spread(self, p):
        cap, rho, age, wbar = self.cap[p] * self.factor[p], self.rho[p], self.age[p], self.wbar[p]
        own = self.workers[p] * wbar / max(cap, 1e-9) if cap > 0 else 0.0
        busy = float(self.busy(self.workers[p : p + 1], self.rho[p : p + 1])[0])
        wait = busy * wbar / max(cap * (1 - rho), 1e-9) * (1 + self.scv[p]) / 2
        w = min(wait, age)
        var = w * w * (2 / max(busy, 1e-9) - 1) if wait <= age * 1.05 + 1e-9 else w * w
        extra = min(var, 4 * age * age) if rho < 0.98 else age * wbar / max(cap, 1e-9)
        self.var[p] = min(own * own * self.scv[p] + extra, 1e9)

    def moments(self, e):
        rows, sl = np.flatnonzero(self.top.edge == e), self.n % self.h
        mean = var = 0.0
        chains = {}
        for c in self.top.joined[e]:
            first = c
            while self.spec.edges[first].after >= 0:
                first = self.spec.edges[first].after
            w = min(self.calls[c], 1)
            m, v = chains.get(first, (0.0, 0.0))
            chains[first] = (m + w * self.mean[c], v + w * self.variance[c] + w * (1 - w) * self.mean[c] ** 2)
        if len(chains) == 1:
            mean, var = next(iter(chains.values()))
        elif chains:
            both = np.array([x for x in chains.values() if x[0] > 0])
            mean, var = slowest(both[:, 0], both[:, 1]) if len(both) else (0.0, 0.0)
        self.row_mean[rows] = self.age[self.top.pod[rows]] + mean
        self.row_var[rows] = self.var[self.top.pod[rows]] + var
        weight = self.amount[rows, sl] + 1e-12
        self.mean[e] = (weight * self.row_mean[rows]).sum() / weight.sum()
        self.variance[e] = (weight * self.row_var[rows]).sum() / weight.sum()
        if self.amount[rows, sl].sum() <= 0 and (self.go[self.top.group_edge == e] > 0).any():
            self.mean[e] = self.variance[e] = 0.0

    def backward(self, level, leaves):
        top, h = self.top, self.h
        for e in np.flatnonzero(top.edge_level == level):
            self.moments(e)
        mine = [x for x in leaves if top.edge_level[top.edge[x[0]]] == level]
        if mine:
            self.answer(*(np.array(x) for x in zip(*mine, strict=True)))
        for e, o in sorted(x for x in self.news if top.edge_level[x[0]] == level and x[1] > self.n - h):
            self.news.discard((e, o))
            sl, kids = o % h, np.array(top.joined[e])
            good = (self.answered[kids, sl] + np.where(self.soft[kids], self.lost[kids, sl], 0)).min()
            bad = np.where(self.soft[kids], 0, self.lost[kids, sl]).max()
            if good - self.passed[e, sl] > CRUMB * self.left_e[e, sl]:
                self.pass_on(e, o, good - self.passed[e, sl], True)
                self.passed[e, sl] = good
            if bad - self.passed_failed[e, sl] > CRUMB * self.left_e[e, sl]:
                self.pass_on(e, o, bad - self.passed_failed[e, sl], False)
                self.passed_failed[e, sl] = bad

    def pass_on(self, e, o, amount, good):
        rows = np.flatnonzero((self.top.edge == e) & (self.left[:, o % self.h] > 0))
        left = self.left[rows, o % self.h]
        low, part = split(self.issue[rows, o % self.h] / left)
        share = amount * left / self.left_e[e, o % self.h]
        for value, slot in ((share * (1 - part), low), (share * part, low + 1)):
            some = value > 1e-15
            r, i, a = rows[some], slot[some], value[some]
            if good:
                self.answer(r, i, a)
                continue
            live = i >= self.due[e]
            self.count["late"][e] += a[~live].sum()
            r, i, a = r[live], i[live], a[live]
            np.subtract.at(self.open, (r, i % self.h), a)
            if self.spec.edges[e].retry_errors:
                self.fail(r, a, self.origin[r, i % self.h])
            else:
                self.count["failed"][e] += a.sum()
                self.settle(self.lost, np.full(len(a), e), a, self.origin[r, i % self.h])

    def judge(self):
        bad = sum(self.count[k].sum() for k in ("timed_out", "late", "reset"))
        move = (np.abs(self.backlog - self.backlog0) / self.cap).max()
        hot = (
            self.full or bad - self.bad > 1e-5 * self.count["attempts"].sum() / max(self.n, 1) or move > 2e-3 * self.dt
        )
        self.bad, self.backlog0 = bad, self.backlog.copy()
        self.quiet = 0 if hot else self.quiet + 1
