"""The app's own metrics, as its OpenTelemetry instrumentation names them: per operation and per call, from the flow's counters.

- `http_server_request_duration_seconds_*` for HTTP services, `rpc_server_duration_milliseconds_*` for gRPC ones (server side);
- `traces_span_metrics_calls_total` and `traces_span_metrics_duration_milliseconds_*` (spans of every service);
- `rpc_client_retries_total`, `server_queue_requests`, `kafka_consumer_records_lag`, `edge_requests_shed_total` (for the levers).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from itbench.core.documents.app import App
from itbench.telemetry.labels import freeze
from itbench.telemetry.metrics import MetricStore
from itbench.world.cluster import Cluster
from itbench.world.flow.engine import BOUNDS_S
from itbench.world.levers import Levers
from itbench.world.meter import Meter
from itbench.world.metrics.sheet import Row, Sheet
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


class ServiceMetrics:
    """The exporter of one app.

    Args:
        store: where samples go.
        app: names and protocols.
        net: the legend of the flow.
        flow: what is measured.
        levers: which pod has which slot.
        cluster: pods by uid.
        seed: of the noise.
    """

    def __init__(
        self, store: MetricStore, app: App, net: Net, flow: Meter, levers: Levers, cluster: Cluster, seed: int
    ) -> None:
        self.app, self.net, self.flow, self.levers, self.cluster, self.seed = app, net, flow, levers, cluster, seed
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
        self._labels: dict[str, Any] = {}

    # ---- one scrape

    def scrape(self, now: float) -> None:
        """One scrape."""
        self._count(now)
        rows: list[Row] = []
        for group in self._servers:
            rows += self._server(group)
        for group in self._clients:
            rows += self._client(group)
        rows += self._queues()
        self._sheet.write(now, rows)

    def _count(self, now: float) -> None:
        """Add what happened since the last scrape, drawn around the exact amounts."""
        rng = np.random.default_rng([self.seed, int(now * 1000), 2])
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

    def _of(self, group: Group, name: str) -> float:
        row = len(COUNTS) if name == "wrong" else COUNTS.index(name)
        return float(self.counts[row, list(group.edges)].sum())

    def _server(self, group: Group) -> list[Row]:
        link, service = group.link, self.app.services[group.link.workload]
        edges = list(group.edges)
        base = self._base(link.workload)
        rows: list[Row] = []
        for index, code in enumerate(("ok", "error")):
            hist, summed = self.hist[index, edges].sum(axis=0), float(self.sums[index, edges].sum())
            name, labels, factor = _duration(service.protocol, link.operation, code)
            if name and (code == "ok" or hist.any()):
                les, key = (LE_MS if factor > 1 else LE_S), f"{name}/{code}/{link.name}"
                rows += self._histogram(key, name, {**base, **labels}, les, hist, summed * factor)
        span = {**base, "span_name": link.operation, "span_kind": "SPAN_KIND_SERVER"}
        good, wrong = (float(self.hist[index, edges].sum()) for index in (0, 1))
        rows += self._spans(f"server/{link.name}", span, good, wrong)
        name, hist = "traces_span_metrics_duration_milliseconds", self.hist[:, edges].sum(axis=(0, 1))
        summed = float(self.sums[:, edges].sum()) * 1000
        rows += self._histogram(f"span/{link.name}", name, span, LE_MS, hist, summed)
        if link.parent < 0:
            shed = float(self.counts[COUNTS.index("limited"), edges].sum())
            rows.append(
                (self._frozen(f"shed/{link.name}", "edge_requests_shed_total", {**base, "journey": link.journey}), shed)
            )
        return rows

    def _client(self, group: Group) -> list[Row]:
        link = group.link
        base = self._base(link.caller)
        good = self._of(group, "ok")
        bad = sum(self._of(group, name) for name in ("wrong", "timed_out", "rejected", "reset"))
        span = {
            **base,
            "span_name": link.operation,
            "span_kind": "SPAN_KIND_CLIENT",
            "peer_service": _short(link.workload),
        }
        key = f"client/{link.caller}/{link.name}"
        rows = self._spans(key, span, good, bad)
        retries = {**base, "peer_service": _short(link.workload), "rpc_method": link.operation.rsplit("/", 1)[-1]}
        rows.append((self._frozen(f"{key}/retry", "rpc_client_retries_total", retries), self._of(group, "retried")))
        return rows

    def _spans(self, key: str, labels: dict[str, str], good: float, bad: float) -> list[Row]:
        name = "traces_span_metrics_calls_total"
        rows = [(self._frozen(f"{key}/ok", name, {**labels, "status_code": "STATUS_CODE_UNSET"}), good)]
        if bad > 0:
            rows.append((self._frozen(f"{key}/bad", name, {**labels, "status_code": "STATUS_CODE_ERROR"}), bad))
        return rows

    def _histogram(
        self, key: str, name: str, labels: dict[str, str], les: list[str], counts: Floats, summed: float
    ) -> list[Row]:
        total = np.cumsum(counts)
        rows = [
            (self._frozen(f"{key}/{le}", f"{name}_bucket", {**labels, "le": le}), float(total[index]))
            for index, le in enumerate(les)
        ]
        rows.append((self._frozen(f"{key}/sum", f"{name}_sum", labels), summed))
        rows.append((self._frozen(f"{key}/count", f"{name}_count", labels), float(total[-1])))
        return rows

    def _queues(self) -> list[Row]:
        rows: list[Row] = []
        for station, workload in enumerate(self.net.stations):
            backlog = self.flow.pods(station)["queued"]
            for slot, uid in enumerate(self.levers.slots.get(workload, ())):
                pod = self.cluster.kubelets.pods.get(uid) if uid else None
                if pod is not None:
                    labels = {**self._base(workload), "pod": pod.name}
                    rows.append((freeze({"__name__": "server_queue_requests", **labels}), float(backlog[slot])))
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
