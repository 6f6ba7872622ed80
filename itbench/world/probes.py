"""Outside probes: what users of each journey experience, recorded every five seconds from the flow's counters.

The series that SLO checks, alerts and reports read. A journey that verifies an effect counts a success only in the share in which
the effect happened too; a journey that follows another has no traffic of its own.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from itbench.core.documents.app import App
from itbench.world.flow.engine import BOUNDS_S
from itbench.world.meter import Meter
from itbench.world.wiring import Net

PERIOD_S = 5.0
Floats = NDArray[np.float64]
TINY = 1e-9
_EDGES_S = np.concatenate([[0.0], BOUNDS_S])


@dataclass(frozen=True, slots=True)
class Sample:
    """One journey over the period that ended at `t`.

    Attributes:
        t: world second at the end of the period.
        rate: requests per second that users made (shed ones included).
        ok: share that succeeded, effects included; NaN without requests.
        p50: median latency of successes in seconds, NaN without any.
        p99: likewise.
    """

    t: float
    rate: float
    ok: float
    p50: float
    p99: float


@dataclass
class Series:
    """Columns of one journey's samples, growing."""

    t: list[float] = field(default_factory=list)
    rate: list[float] = field(default_factory=list)
    ok: list[float] = field(default_factory=list)
    p50: list[float] = field(default_factory=list)
    p99: list[float] = field(default_factory=list)

    def append(self, sample: Sample) -> None:
        """Add one sample."""
        self.t.append(sample.t)
        self.rate.append(sample.rate)
        self.ok.append(sample.ok)
        self.p50.append(sample.p50)
        self.p99.append(sample.p99)

    def between(self, start: float, end: float) -> "list[Sample]":
        """Samples whose period ended in (start, end]."""
        low, high = np.searchsorted(self.t, [start, end], side="right")
        return [
            Sample(self.t[i], self.rate[i], self.ok[i], self.p50[i], self.p99[i]) for i in range(int(low), int(high))
        ]


@dataclass
class Totals:
    """Cumulative counts of one journey: what the telemetry exports as counters."""

    ok: float = 0.0
    failed: float = 0.0
    buckets: Floats = field(default_factory=lambda: np.zeros(len(BOUNDS_S) + 1))
    latency_s: float = 0.0


class Probes:
    """The probes of one app."""

    def __init__(self, app: App, net: Net) -> None:
        self.app, self.net = app, net
        self.series: dict[str, Series] = {name: Series() for name in app.journeys}
        self.totals: dict[str, Totals] = {name: Totals() for name in app.journeys}
        self.health: dict[str, float] = {}
        """`workload operation` -> share of its calls that succeeded in the last period."""
        self._operations = [(f"{link.workload} {link.operation}", link.index) for link in net.links]
        self._last: dict[str, Floats] = {}
        self._buckets: Floats | None = None
        self._at = 0.0

    def due(self) -> float:
        """World second of the next record."""
        return self._at + PERIOD_S

    def start(self, now: float) -> None:
        """Count from here on: `now` becomes the beginning of the first period."""
        self._at = now

    def record(self, flow: Meter, now: float) -> dict[str, Floats]:
        """Close the period that ends now; returns what each counter grew by, per edge."""
        counters = flow.counters()
        buckets = flow.latency_buckets()
        delta = {name: values - self._last.get(name, 0.0) for name, values in counters.items()}
        moved = buckets - (self._buckets if self._buckets is not None else 0.0)
        span = max(now - self._at, TINY)
        for name, journey in self.app.journeys.items():
            if journey.entry is not None:
                self._direct(name, delta, moved, now, span)
        for name, journey in self.app.journeys.items():
            if journey.follows is not None:
                self._following(name, journey.follows, delta, now, span)
        self._note_health(delta)
        self._last, self._buckets, self._at = dict(counters), buckets, now
        return delta

    def _direct(self, name: str, delta: dict[str, Floats], moved: Floats, now: float, span: float) -> None:
        root, totals = self.net.roots[name], self.totals[name]
        ended = float(delta["ok"][root] + delta["failed"][root])
        asked = float(delta["first"][root])
        good = float(delta["ok"][root]) * self._verified(name, name, delta)
        share = min(good / ended, 1.0) if ended > TINY else (0.0 if asked > TINY else float("nan"))
        p50, p99 = quantiles(moved[root], (0.5, 0.99))
        self.series[name].append(Sample(now, asked / span, share, p50, p99))
        totals.ok += good
        totals.failed += max(ended - good, 0.0)
        totals.buckets = totals.buckets + moved[root]
        totals.latency_s += float(delta["latency_sum_s"][root])

    def _verified(self, name: str, tree: str, delta: dict[str, Floats]) -> float:
        """Share of a journey's requests whose effects happened; 1 where nothing is verified or nothing was tried."""
        share = 1.0
        for effect in self.app.journeys[name].verify:
            edges = self.net.effects(tree, effect.service, effect.operation)
            tried = sum(float(delta["ok"][e] + delta["failed"][e]) for e in edges)
            done = sum(float(delta["ok"][e]) for e in edges)
            if tried > TINY:
                share *= min(max(done / tried, 0.0), 1.0)
        return share

    def _following(self, name: str, leader: str, delta: dict[str, Floats], now: float, span: float) -> None:
        """Each success of the leader must show its effect; what a broker still holds has not happened yet."""
        root, totals = self.net.roots[leader], self.totals[name]
        wanted = float(delta["ok"][root])
        shares = []
        for effect in self.app.journeys[name].verify:
            edges = self.net.effects(leader, effect.service, effect.operation)
            shares.append(sum(float(delta["ok"][e]) for e in edges) / wanted if wanted > TINY else float("nan"))
        share = min([1.0, *shares]) if wanted > TINY else float("nan")
        self.series[name].append(Sample(now, wanted / span, share, float("nan"), float("nan")))
        if wanted > TINY:
            totals.ok += wanted * share
            totals.failed += wanted * (1 - share)

    def _note_health(self, delta: dict[str, Floats]) -> None:
        tried: dict[str, float] = {}
        good: dict[str, float] = {}
        ok, ended = delta["ok"].tolist(), (delta["ok"] + delta["failed"]).tolist()
        for key, index in self._operations:
            tried[key] = tried.get(key, 0.0) + ended[index]
            good[key] = good.get(key, 0.0) + ok[index]
        self.health = {key: good[key] / tried[key] if tried[key] > TINY else 1.0 for key in tried}

    def journeys(self, start: float, end: float) -> dict[str, list[Sample]]:
        """Samples of every journey whose period ended in (start, end]."""
        return {name: series.between(start, end) for name, series in self.series.items()}

    def save(self) -> dict[str, Any]:
        """State as plain data."""
        columns = ("t", "rate", "ok", "p50", "p99")
        return {
            "series": {n: {c: np.array(getattr(s, c), float) for c in columns} for n, s in self.series.items()},
            "totals": {
                n: {"ok": t.ok, "failed": t.failed, "buckets": t.buckets, "latency_s": t.latency_s}
                for n, t in self.totals.items()
            },
            "health": dict(self.health),
            "last": dict(self._last),
            "buckets": self._buckets,
            "at": self._at,
        }

    def restore(self, data: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        for name, columns in data["series"].items():
            self.series[name] = Series(**{c: [float(x) for x in values] for c, values in columns.items()})
        for name, saved in data["totals"].items():
            self.totals[name] = Totals(saved["ok"], saved["failed"], np.array(saved["buckets"]), saved["latency_s"])
        self.health, self._at = dict(data["health"]), data["at"]
        self._last = {name: np.array(values) for name, values in data["last"].items()}
        self._buckets = None if data["buckets"] is None else np.array(data["buckets"])


def quantile(counts: Floats, q: float) -> float:
    """A latency quantile in seconds from bucket counts (one more bucket than bounds); NaN when they are empty."""
    return quantiles(counts, (q,))[0]


def quantiles(counts: Floats, shares: tuple[float, ...]) -> list[float]:
    """Several quantiles of the same counts, as `quantile`."""
    total = float(counts.sum())
    if total <= TINY:
        return [float("nan")] * len(shares)
    reached = np.concatenate([[0.0], np.cumsum(counts[:-1]) / total])
    found: list[float] = np.interp(shares, reached, _EDGES_S).tolist()
    return found
