"""The request-flow engine as the world sees it: levers between steps, `advance`, readouts, save and load.

`world/estate.py` maps pods, programs and journeys on a `FlowSpec` and calls this. All numbers are deterministic fluid amounts
(fractions of requests); counters are cumulative since time 0. Equations and limits: docs/physics.md.
"""

from collections.abc import Callable, Mapping
from math import inf, isfinite

import numpy as np

from itbench.core.errors import UsageError
from itbench.world.flow import layout as at
from itbench.world.flow.compiled import load_kernel
from itbench.world.flow.layout import Floats, State
from itbench.world.flow.spec import Edge, FlowSpec, Station

# The default bounds of OpenTelemetry's http.server.request.duration, seconds.
BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)

COUNTERS = {
    "first": at.FIRST, "attempts": at.ATTEMPT, "ok": at.OK, "failed": at.FAILED, "timed_out": at.TIMED_OUT, "late": at.LATE,
    "rejected": at.REJECTED, "retried": at.RETRIED, "reset": at.RESET, "errors": at.ERROR, "limited": at.LIMITED,
    "latency_sum_s": at.LATENCY,
}  # fmt: skip
"""Counters of an edge: first = calls, attempts = calls sent to the callee (refused ones too), ok = answered in time,
failed = given up for good, timed_out = attempts the caller gave up on, late = work finished for nobody, rejected = refused or
queue full, reset = attempts cut off by a dying pod, errors = attempts answered with an error by a fault, limited = turned away
by admission."""

_FAULTS = {"error": at.SPOIL, "refuse": at.REFUSE, "hang": at.HANG}


class Flow:
    """A running net.

    Args:
        spec: stations and edges.
        slots: ring length in steps; 0.19 s x slots is the longest timeout or back-off the net can carry.
        bounds_s: upper bounds of the latency buckets, ascending (one more bucket is +Inf).
        step_s: fixed step for tests and calibration; 0 = adaptive (20 to 250 ms in transients, 1 s at rest).

    Raises:
        UsageError: a timeout or back-off is longer than the rings.
    """

    def __init__(
        self, spec: FlowSpec, *, slots: int = 1024, bounds_s: tuple[float, ...] = BOUNDS_S, step_s: float = 0.0
    ) -> None:
        if slots < 16 or slots & (slots - 1):
            raise UsageError("ring length of a flow", seen=slots, expected="a power of two, 16 or more")
        self.spec, self.slots, self.step_s, self.bounds_s = spec, slots, step_s, bounds_s
        self._st: State = at.build(spec, slots, np.array(bounds_s, float))
        for edge in spec.edges:
            self._fits(edge.name, edge.timeout_s)
            self._fits(edge.name, edge.backoff_s)
        self._run: Callable[[float, float], None] | None = None

    # ---- levers (take effect at the next step)

    def set_rate(self, edge: int, rps: float) -> None:
        """Calls per second of a journey root."""
        if self.spec.edges[edge].parent >= 0 or not 0 <= rps < inf:
            raise UsageError(f"rate of edge {self.spec.edges[edge].name}", seen=rps, expected="a root and rps >= 0")
        self._set(self._st.x, at.RATE, edge, rps)

    def set_ready(self, station: int, slot: int, weight: float) -> None:
        """Share of the load balancing of a pod: 0 gets no new calls (works off what it has), 1 is a full member."""
        self._set(self._st.x, at.WEIGHT, self._pod(station, slot), _share("weight", weight))

    def set_capacity(self, station: int, slot: int, factor: float) -> None:
        """Speed of a pod as a factor of its station's capacity_cpu: throttling, cuts, warm-up, 0 = frozen."""
        if not 0 <= factor < inf:
            raise UsageError("capacity factor", seen=factor, expected="0 or more")
        self._set(self._st.x, at.FACTOR, self._pod(station, slot), factor)

    def set_queue(self, station: int, slot: int, requests: float) -> None:
        """Most requests in a pod; what already waits stays."""
        if not requests > 0:
            raise UsageError("queue bound", seen=requests, expected="more than 0 requests")
        self._set(self._st.x, at.QUEUE, self._pod(station, slot), requests)

    def set_edge(
        self,
        edge: int,
        *,
        timeout_s: float | None = None,
        retries: int | None = None,
        budget: float | None = None,
        backoff_s: float | None = None,
        work_s: float | None = None,
        delay_s: float | None = None,
    ) -> None:
        """Change numbers of an edge while it runs (units as in `spec.Edge`); None leaves a number as it is."""
        name = self.spec.edges[edge].name
        if retries is not None:
            if not 0 <= retries < self.spec.edges[edge].attempts:
                most = self.spec.edges[edge].attempts - 1
                raise UsageError(
                    f"retries of edge {name}", seen=retries, expected=f"0 to {most}", hint="set max_retries"
                )
            self._st.k[at.RETRIES, edge] = retries
        for value in (timeout_s, backoff_s):
            self._fits(name, value if value is not None else 0.0)
        new = {at.TIMEOUT: timeout_s, at.BUDGET: budget, at.BACKOFF: backoff_s, at.WORK: work_s, at.DELAY: delay_s}
        for row, value in new.items():
            if value is None:
                continue
            if (value < 0 and row != at.BUDGET) or (value == 0 and row in (at.TIMEOUT, at.WORK)):
                raise UsageError(f"new number of edge {name}", seen=value, expected="timeout, work > 0, others >= 0")
            self._st.x[row, edge] = value
        self._wake()

    def set_admission(self, edge: int, max_rps: float = inf) -> None:
        """Limiter in front of an edge: what exceeds max_rps fails at once without retry (HTTP 429).

        On a queued edge it is the highest rate of consumption instead; the rest stays with the broker.
        """
        if not max_rps >= 0:
            raise UsageError("admission", seen=max_rps, expected="0 or more calls per second")
        self._set(self._st.x, at.LIMIT, edge, max_rps)

    def set_fault(self, edge: int, fraction: float, kind: str = "error", *, slot: int | None = None) -> None:
        """A defect on the way of an edge, at one slot of the callee or (None) at all.

        Args:
            fraction: share of the attempts, 0 heals.
            kind: "error" the callee works, then answers with an error; "refuse" refused at once (no work);
                "hang" never answered, the caller waits for its timeout (needs a finite one).
        """
        if kind not in _FAULTS:
            raise UsageError("kind of fault", seen=kind, expected=", ".join(_FAULTS))
        if kind == "hang" and fraction > 0 and not isfinite(self._st.x[at.TIMEOUT, edge]):
            raise UsageError(f"hang on edge {self.spec.edges[edge].name}", expected="a finite timeout_s on that edge")
        view = self._rows(self._st.x[_FAULTS[kind]], edge)
        view[:, slot if slot is not None else slice(None)] = _share("fraction of a fault", fraction)
        self._wake()

    def reset(self, station: int, slot: int) -> None:
        """The pod is gone: at the next step its open attempts fail (and are retried), its queue is lost. Set its weight apart."""
        self._st.k[at.KILL, self._pod(station, slot)] = 1
        self._wake()

    # ---- time

    @property
    def now(self) -> float:
        """World seconds."""
        return float(self._st.x[at.NOW, 0])

    @property
    def steps(self) -> int:
        """Steps taken so far."""
        return int(self._st.k[at.STEP, 0])

    @property
    def folded(self) -> int:
        """Cohorts that outlived the rings and were merged with younger ones (0 in all but extreme cases)."""
        return int(self._st.k[at.FOLDED, 0])

    def start_at(self, now: float) -> None:
        """Set the clock of a net that has not run yet."""
        if self._st.k[at.STEP, 0]:
            raise UsageError("start_at on a net that has run", seen=self.now)
        self._st.x[[at.NOW, at.FLUSHED], 0] = now

    def advance(self, until: float) -> None:
        """Run to `until` (world seconds), never past it; earlier times do nothing."""
        if not isfinite(until):
            raise UsageError("advance", seen=until, expected="a finite time")
        if until > self.now:
            if self._run is None:  # loaded when something flows for the first time, not while an estate is made
                self._run = load_kernel(self._st)
            self._run(float(until), self.step_s)

    # ---- readouts (cumulative; views are copied)

    def counters(self) -> Mapping[str, Floats]:
        """Arrays by edge; names in `COUNTERS`."""
        return {name: self.counter(name) for name in COUNTERS}

    def counter(self, name: str) -> Floats:
        """One counter by edge."""
        return self._edge(COUNTERS[name])

    def latency_buckets(self, *, server: bool = False) -> Floats:
        """Calls per bucket (edges x bounds+1, not cumulated over buckets).

        Client side: successful calls from first attempt to answer, retries included. Server side: every attempt the callee
        finished, late ones too, from arrival to answer.
        """
        counts: Floats = self._st.hist[at.SERVER if server else at.CLIENT].copy()
        return counts

    def quantile(self, edge: int, q: float, since: Floats | None = None) -> float:
        """Latency quantile (s) of an edge from its client buckets since an earlier `latency_buckets()[edge]`, or NaN."""
        counts: Floats = self._st.hist[at.CLIENT, edge] - (0.0 if since is None else since)
        total = counts.sum()
        if total <= 0:
            return float("nan")
        edges = np.concatenate([[0.0], self.bounds_s])
        return float(np.interp(q, np.concatenate([[0.0], np.cumsum(counts)[:-1] / total]), edges))

    def waiting(self) -> Floats:
        """Calls under way by edge: attempts somebody still waits for, plus those in back-off, plus those held by a broker."""
        st, edges = self._st, len(self.spec.edges)
        rows, groups = st.rows.shape[2], int(st.k[at.GROUPS, 0])
        live = np.bincount(st.k[at.EDGE, :rows], st.rows[at.OPEN].sum(0) + st.x[at.DEBT, :rows], edges)
        off = np.add.reduceat(st.rings[at.WAITING, :, :groups].sum(0), st.k[at.GROUP, st.k[at.BY_LEVEL, :edges]])
        out = np.asarray(live + self._edge(at.HELD))
        out[st.k[at.BY_LEVEL, :edges]] += off
        return out

    def lag(self, edge: int) -> float:
        """Calls a broker holds for a queued edge."""
        return float(self._st.x[at.HELD, edge])

    def mean_latency_s(self) -> Floats:
        """Mean response time of one attempt now, by edge (network included)."""
        return self._edge(at.MEAN) + self._edge(at.NETWORK)

    def pods(self, station: int) -> Mapping[str, Floats]:
        """Arrays by slot: cpu_s and served (cumulative), backlog_requests, backlog_s (cpu seconds), rho, age_s (time in queue
        and work of what is finished now), in_flight (requests it holds: queued, in work, waiting, abandoned)."""
        st, part = self._st, slice(self._st.k[at.POD0, station], self._st.k[at.POD1, station])
        rows = st.rows.shape[2]
        flight = np.bincount(st.k[at.POD, :rows], st.x[at.INFLIGHT, :rows], int(st.k[at.PODS, 0]))[part]
        return {
            "cpu_s": st.x[at.CPU, part].copy(),
            "served": st.x[at.SERVED, part].copy(),
            "backlog_requests": st.x[at.BACKLOG, part] / st.x[at.WBAR, part],
            "backlog_s": st.x[at.BACKLOG, part].copy(),
            "rho": st.x[at.RHO, part].copy(),
            "age_s": st.x[at.AGE, part].copy(),
            "in_flight": np.maximum(flight, 0.0),
        }

    def busy_s(self, station: int) -> Floats:
        """CPU seconds used by slot, cumulative: `cpu_s` of `pods` alone."""
        return self._by_pod(at.CPU, station)

    def backlog_s(self, station: int) -> Floats:
        """CPU seconds that wait by slot: `backlog_s` of `pods` alone."""
        return self._by_pod(at.BACKLOG, station)

    def _by_pod(self, row: int, station: int) -> Floats:
        values: Floats = self._st.x[row, self._st.k[at.POD0, station] : self._st.k[at.POD1, station]].copy()
        return values

    def answered(self, edge: int) -> Floats:
        """Calls answered by slot of the callee, late ones too, cumulative: `answered` of `by_slot` alone."""
        total: Floats = self._rows(self._st.x[at.DONE], edge).sum(0)
        return total

    def by_slot(self, edge: int) -> Mapping[str, Floats]:
        """Arrays by slot of the callee: answered (late ones too) and errors (5xx given by that pod), cumulative; in_flight."""
        st = self._st
        rows = {"answered": at.DONE, "errors": at.BROKEN, "in_flight": at.INFLIGHT}
        return {name: self._rows(st.x[row], edge).sum(0) for name, row in rows.items()}

    # ---- checkpoints

    def save(self) -> dict[str, object]:
        """Everything that changes, as arrays."""
        return {name: getattr(self._st, name).copy() for name in at.DYNAMIC}

    def load(self, data: Mapping[str, object]) -> None:
        """Restore what `save` gave, into a net of the same spec; continues bit for bit.

        Raises:
            UsageError: the data belong to another net.
        """
        for name in at.DYNAMIC:
            mine, other = getattr(self._st, name), np.asarray(data[name])
            if mine.shape != other.shape:
                raise UsageError(f"saved flow, array {name}", seen=other.shape, expected=str(mine.shape))
            mine[...] = other

    # ---- inside

    def _edge(self, row: int) -> Floats:
        values: Floats = self._st.x[row, : len(self.spec.edges)].copy()
        return values

    def _pod(self, station: int, slot: int) -> int:
        if not 0 <= slot < self.spec.stations[station].slots:
            most = self.spec.stations[station].slots - 1
            raise UsageError(f"slot of station {self.spec.stations[station].name}", seen=slot, expected=f"0 to {most}")
        return int(self._st.k[at.POD0, station]) + slot

    def _rows(self, values: Floats, edge: int) -> Floats:
        """View of a row array as attempts x slots of one edge."""
        first, attempts, pods = (int(self._st.k[k, edge]) for k in (at.ROW, at.ATTEMPTS, at.NPODS))
        return values[first : first + attempts * pods].reshape(attempts, pods)

    def _set(self, array: Floats, row: int, index: int, value: float) -> None:
        if array[row, index] != value:
            array[row, index] = value
            self._wake()

    def _wake(self) -> None:
        self._st.k[at.QUIET, 0] = 0

    def _fits(self, name: str, seconds: float) -> None:
        most = 0.1875 * self.slots
        if isfinite(seconds) and seconds > most:
            raise UsageError(
                f"timeout or back-off of edge {name}", seen=seconds, expected=f"at most {most:g} s", hint="raise slots"
            )


def _share(what: str, value: float) -> float:
    if not 0 <= value <= 1:
        raise UsageError(what, seen=value, expected="0 to 1")
    return float(value)


def warm() -> None:
    """Compile the kernel and leave it in the cache; called when an environment is made so that the first trial starts at once."""
    flow = Flow(FlowSpec((Station("a", 1),), (Edge("a", -1, 0, work_s=0.01),)), slots=16)
    flow.advance(1.0)
