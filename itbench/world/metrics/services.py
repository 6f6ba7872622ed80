"""The app's own metrics, as its OpenTelemetry instrumentation names them: per operation and per call, from the flow's counters.

- `http_server_request_duration_seconds_*` for HTTP services, `rpc_server_duration_milliseconds_*` for gRPC ones (server side);
- `traces_span_metrics_calls_total` and `traces_span_metrics_duration_milliseconds_*` (spans of every service);
- `rpc_client_retries_total`, `server_queue_requests`, `kafka_consumer_records_lag`, `edge_requests_shed_total` (for the levers).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from itbench.core.documents.app import App
from itbench.telemetry.labels import Labels, freeze
from itbench.telemetry.metrics import MetricStore
from itbench.world.cluster import Cluster
from itbench.world.flow.engine import BOUNDS_S
from itbench.world.levers import Levers
from itbench.world.meter import Meter
from itbench.world.metrics.sheet import Layout, Row, Sheet
from itbench.world.noise import Noise
from itbench.world.wiring import Link, Net

Floats = NDArray[np.float64]
COUNTS = ("ok", "late", "failed", "retried", "timed_out", "rejected", "reset", "limited")
LE_S = [f"{bound:g}" for bound in BOUNDS_S] + ["+Inf"]
LE_MS = [f"{bound * 1000:g}" for bound in BOUNDS_S] + ["+Inf"]
GRPC_CODES = {"ok": "0", "error": "13"}


@dataclass(frozen=True, slots=True)
class Group:
    """Edges that share their series: one operation of a service, or one kind of call of a caller."""

    link: Link
    edges: tuple[int, ...]


class _Fold:
    """Adds up the edges of every group: arrays of (any, edges, any) become (any, groups, any)."""

    def __init__(self, groups: list[Group]) -> None:
        self._order = [edge for group in groups for edge in group.edges]
        self._starts = np.cumsum([0, *(len(group.edges) for group in groups)])[:-1]

    def __call__(self, values: Floats) -> Floats:
        if not self._order:
            return values[:, :0]
        folded: Floats = np.add.reduceat(values[:, self._order], self._starts, axis=1)
        return folded


class ServiceMetrics:
    """The exporter of one app.

    Args:
        store: where samples go.
        app: names and protocols.
        net: the legend of the flow.
        flow: what is measured.
        levers: which pod has which slot.
        cluster: pods by uid.
        noise: its seed.
    """

    def __init__(
        self, store: MetricStore, app: App, net: Net, flow: Meter, levers: Levers, cluster: Cluster, noise: Noise
    ) -> None:
        self.app, self.net, self.flow, self.levers, self.cluster, self.noise = app, net, flow, levers, cluster, noise
        self._sheet = Sheet(store, f"app/{app.id}")
        edges, buckets = len(net.links), len(BOUNDS_S) + 1
        self._last = np.zeros((len(COUNTS), edges))
        self._last_hist = np.zeros((edges, buckets))
        self.counts = np.zeros((len(COUNTS) + 1, edges))
        self.hist = np.zeros((2, edges, buckets))
        """What servers answered, by latency: rightly, and with an error. Each only grows, as counters must."""
        self.sums = np.zeros((2, edges))
        self._servers = _groups(net, by_caller=False)
        self._clients = _groups(net, by_caller=True)
        durations = [_duration(app.services[group.link.workload].protocol, "", "ok") for group in self._servers]
        self._is_named = np.array([bool(name) for name, _, _ in durations], bool)
        self._factors = np.array([factor for name, _, factor in durations if name])
        self._named = [group for group, (name, _, _) in zip(self._servers, durations, strict=True) if name]
        self._roots = [group.link for group in self._servers if group.link.parent < 0]
        self._by_server, self._by_client = _Fold(self._servers), _Fold(self._clients)
        self._labels: dict[str, Any] = {}

    # ---- one scrape

    @cached_property
    def _server_layout(self) -> Layout:
        return Layout(self._server_series())

    @cached_property
    def _client_layout(self) -> Layout:
        return Layout(self._client_series())

    def scrape(self, now: float) -> None:
        """One scrape."""
        self._count(now)
        fixed = [(self._server_layout, self._server_values()), (self._client_layout, self._client_values())]
        self._sheet.write(now, self._queues(), fixed=fixed)

    def _count(self, now: float) -> None:
        """Add what happened since the last scrape, drawn around the exact amounts."""
        rng = np.random.default_rng([self.noise.seed, int(now * 1000), 2])
        counters = self.flow.counters()
        exact = np.array([counters[name] for name in COUNTS])
        hist = self.flow.latency_buckets(server=True)
        delta, moved = np.maximum(exact - self._last, 0.0), np.maximum(hist - self._last_hist, 0.0)
        self._last, self._last_hist = exact, hist
        # What a server answered with an error: attempts that failed for no other reason.
        _, _, failed, retried, timed_out, rejected, reset, limited = delta
        wrong = np.maximum(failed + retried - timed_out - rejected - reset - limited, 0.0)
        total = moved.sum(axis=1)
        share = np.divide(wrong, total, out=np.zeros_like(total), where=total > 1e-9).clip(0.0, 1.0)
        amounts = np.vstack([delta, wrong])
        self.counts += np.where(amounts > 1e-9, rng.poisson(amounts), 0)
        parts = np.stack([moved * (1 - share)[:, None], moved * share[:, None]])
        drawn = np.where(parts > 1e-9, rng.poisson(parts), 0)
        self.hist += drawn
        self.sums += (drawn * _MIDDLES).sum(axis=2)

    # ---- servers: per operation two duration histograms (answers, errors), spans, the spans' histogram, what was shed

    def _server_series(self) -> Iterator[Labels]:
        """Label sets in the order of `_server_values`."""
        for code in ("ok", "error"):
            for group in self._named:
                link, protocol = group.link, self.app.services[group.link.workload].protocol
                name, labels, factor = _duration(protocol, link.operation, code)
                les = LE_MS if factor > 1 else LE_S
                yield from _histogram_series(name, {**self._base(link.workload), **labels}, les)
        spans = [self._span(group.link.workload, group.link, "SERVER") for group in self._servers]
        yield from _span_series(spans)
        for span in spans:
            yield from _histogram_series("traces_span_metrics_duration_milliseconds", span, LE_MS)
        for link in self._roots:
            labels = {**self._base(link.workload), "journey": link.journey}
            yield freeze({"__name__": "edge_requests_shed_total", **labels})

    def _server_values(self) -> Floats:
        hist, sums = self._by_server(self.hist), self._by_server(self.sums[:, :, None])[:, :, 0]
        named = [_histograms(hist[i][self._is_named], sums[i][self._is_named] * self._factors) for i in (0, 1)]
        named[1][named[1][:, -1] == 0.0] = np.nan  # errors have series from the first one on
        answered = hist.sum(axis=2)
        spans = np.concatenate([answered[0], np.where(answered[1] > 0, answered[1], np.nan)])
        whole = _histograms(hist.sum(axis=0), sums.sum(axis=0) * 1000)
        limited = self._by_server(self.counts[COUNTS.index("limited"), :, None][None])[0, :, 0]
        shed = limited[[group.link.parent < 0 for group in self._servers]]
        return np.concatenate([named[0].ravel(), named[1].ravel(), spans, whole.ravel(), shed])

    # ---- clients: per kind of call spans and retries

    def _client_series(self) -> Iterator[Labels]:
        """Label sets in the order of `_client_values`."""
        links = [group.link for group in self._clients]
        yield from _span_series(
            [{**self._span(x.caller, x, "CLIENT"), "peer_service": _short(x.workload)} for x in links]
        )
        for link in links:
            labels = {"peer_service": _short(link.workload), "rpc_method": link.operation.rsplit("/", 1)[-1]}
            yield freeze({"__name__": "rpc_client_retries_total", **self._base(link.caller), **labels})

    def _client_values(self) -> Floats:
        counts = self._by_client(self.counts[:, :, None])[:, :, 0]
        by_name = dict(zip((*COUNTS, "wrong"), counts, strict=True))
        bad = by_name["wrong"] + by_name["timed_out"] + by_name["rejected"] + by_name["reset"]
        return np.concatenate([by_name["ok"], np.where(bad > 0, bad, np.nan), by_name["retried"]])

    def _span(self, workload: str, link: Link, kind: str) -> dict[str, str]:
        return {**self._base(workload), "span_name": link.operation, "span_kind": f"SPAN_KIND_{kind}"}

    def _queues(self) -> list[Row]:
        rows: list[Row] = []
        for station, workload in enumerate(self.net.stations):
            queued = self.flow.queued(station)
            for slot, uid in enumerate(self.levers.slots.get(workload, ())):
                pod = self.cluster.kubelets.pods.get(uid) if uid else None
                if pod is not None:
                    labels = {**self._base(workload), "pod": pod.name}
                    key = f"queue/{workload}/{pod.name}"
                    rows.append((self._frozen(key, "server_queue_requests", labels), float(queued[slot])))
        for link in self.net.links:
            if link.topic and link.call is None:
                labels = {**self._base(link.workload), "topic": link.topic, "group": _short(link.workload)}
                key = f"lag/{link.index}"
                rows.append((self._frozen(key, "kafka_consumer_records_lag", labels), self.flow.lag(link.index)))
        return rows

    def _base(self, workload: str) -> dict[str, str]:
        name = _short(workload)
        return {"namespace": self.app.namespace, "service_name": name, "job": f"{self.app.namespace}/{name}"}

    def _frozen(self, key: str, name: str, labels: dict[str, str]) -> Any:
        if key not in self._labels:
            self._labels[key] = freeze({"__name__": name, **labels})
        return self._labels[key]

    # ---- checkpoints

    def save(self) -> dict[str, Any]:
        """State as plain data."""
        names = ("_last", "_last_hist", "counts", "hist", "sums")
        return {name.lstrip("_"): getattr(self, name).copy() for name in names}

    def restore(self, data: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        for name in ("_last", "_last_hist", "counts", "hist", "sums"):
            setattr(self, name, np.array(data[name.lstrip("_")]))


_EDGES = np.concatenate([[0.0], BOUNDS_S, [BOUNDS_S[-1] * 1.5]])
_MIDDLES = (_EDGES[:-1] + _EDGES[1:]) / 2


def _histograms(counts: Floats, summed: Floats) -> Floats:
    """Values of classic histograms, one row each: buckets cumulated, sum, count."""
    total = np.cumsum(counts, axis=1)
    return np.hstack([total, summed[:, None], total[:, -1:]])


def _histogram_series(name: str, labels: dict[str, str], les: list[str]) -> Iterator[Labels]:
    first = freeze({"__name__": f"{name}_bucket", **labels, "le": les[0]})
    place = first.index(("le", les[0]))
    for le in les:
        yield (*first[:place], ("le", le), *first[place + 1 :])
    for part in ("sum", "count"):
        yield freeze({"__name__": f"{name}_{part}", **labels})


def _span_series(spans: list[dict[str, str]]) -> Iterator[Labels]:
    """First all that went well, then all that failed."""
    for status in ("UNSET", "ERROR"):
        for span in spans:
            labels = {**span, "status_code": f"STATUS_CODE_{status}"}
            yield freeze({"__name__": "traces_span_metrics_calls_total", **labels})


def _short(workload: str) -> str:
    return workload.rsplit("/", 1)[-1]


def _groups(net: Net, *, by_caller: bool) -> list[Group]:
    found: dict[tuple[str, ...], list[Link]] = {}
    for link in net.links:
        if by_caller and not link.caller:
            continue
        key = (link.caller, link.workload, link.operation) if by_caller else (link.workload, link.operation)
        found.setdefault(key, []).append(link)
    return [Group(links[0], tuple(link.index for link in links)) for links in found.values()]


def _duration(protocol: str, operation: str, code: str) -> tuple[str, dict[str, str], float]:
    """(metric, labels, factor from seconds) of a server's duration histogram; no name where its protocol has none."""
    if protocol == "http":
        method, _, route = operation.partition(" ")
        labels = {
            "http_request_method": method,
            "http_route": route,
            "http_response_status_code": "200" if code == "ok" else "500",
        }
        return "http_server_request_duration_seconds", labels, 1.0
    if protocol == "grpc":
        service, _, method = operation.rpartition("/")
        labels = {
            "rpc_system": "grpc",
            "rpc_service": service,
            "rpc_method": method,
            "rpc_grpc_status_code": GRPC_CODES[code],
        }
        return "rpc_server_duration_milliseconds", labels, 1000.0
    return "", {}, 1.0
