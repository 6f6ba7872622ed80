"""Telemetry of a world: probes, history, usage, exporters and alert rules, each at its own beat. The estate steps it."""

from typing import Any

from itbench.core.documents.app import App
from itbench.telemetry.metrics import MetricStore
from itbench.telemetry.rule_files import groups_from_objects
from itbench.telemetry.rules import RuleEngine
from itbench.world.chaos import Chaos
from itbench.world.cluster import Cluster
from itbench.world.flow.engine import Flow
from itbench.world.history import History
from itbench.world.levers import Levers
from itbench.world.logs import Logbook
from itbench.world.meter import Meter
from itbench.world.metrics.containers import ContainerMetrics
from itbench.world.metrics.journeys import JourneyMetrics
from itbench.world.metrics.services import ServiceMetrics
from itbench.world.metrics.state import StateMetrics
from itbench.world.noise import Noise
from itbench.world.probes import Probes
from itbench.world.usage import PERIOD_S, Usage
from itbench.world.wiring import Net

RULES = "prometheusrules.monitoring.coreos.com"


class Running:
    """The parts that exist where an app has traffic."""

    def __init__(self, app: App, net: Net, flow: Flow, levers: Levers, cluster: Cluster) -> None:
        self.app, self.net, self.flow, self.levers, self.cluster = app, net, flow, levers, cluster
        self.meter = Meter(flow, net, app)
        self.probes = Probes(app, net)
        self.history = History(len(net.links))


class Scrapes:
    """Everything that is measured.

    Args:
        clusters: by plane name; the first one carries the app.
        chaos: by plane name.
        running: the app's parts, None without traffic.
        noise: its seed.
    """

    def __init__(
        self, clusters: dict[str, Cluster], chaos: dict[str, Chaos], running: Running | None, noise: Noise
    ) -> None:
        self.clusters, self.running, self.noise = clusters, running, noise
        self.usage: dict[str, Usage] = {}
        for name, cluster in clusters.items():
            mine = running if running is not None and running.cluster is cluster else None
            levers, meter = (mine.levers, mine.meter) if mine is not None else (None, None)
            self.usage[name] = Usage(cluster, levers, meter, chaos[name].stolen, chaos[name].memory_mb)
        self._next = PERIOD_S
        self._rules_at: list[str] = []
        self.rule_problems: dict[tuple[str, str], str] = {}
        """What is wrong with PrometheusRule objects that cannot be used, by (namespace, name)."""
        self.attach(MetricStore(), RuleEngine())

    def attach(self, metrics: MetricStore, rules: RuleEngine) -> None:
        """Write into this store, evaluate with this engine."""
        self.metrics, self.rules = metrics, rules
        self._state = [StateMetrics(metrics, cluster.objects, name) for name, cluster in self.clusters.items()]
        self._containers = [
            ContainerMetrics(metrics, cluster, self.usage[name], self.noise) for name, cluster in self.clusters.items()
        ]
        self._services: ServiceMetrics | None = None
        self._journeys: JourneyMetrics | None = None
        if self.running is not None:
            it = self.running
            self._services = ServiceMetrics(metrics, it.app, it.net, it.meter, it.levers, it.cluster, self.noise)
            self._journeys = JourneyMetrics(metrics, it.probes, it.app.namespace, self.noise)

    def logbook(self, name: str) -> Logbook:
        """The log lines of one cluster."""
        it = self.running
        if it is None or self.clusters[name] is not it.cluster:
            return Logbook(None, None, None, self.noise)
        return Logbook(it.app, it.net, it.history, self.noise)

    def due(self) -> float:
        """World second of the next measurement."""
        return min(self._next, self.running.probes.due()) if self.running else self._next

    def step(self, now: float) -> bool:
        """Measure what is due; returns whether a container was killed for its memory."""
        if self.running is not None and now >= self.running.probes.due() - 1e-9:
            self._probe(self.running, now)
        if now < self._next - 1e-9:
            return False
        self._next = PERIOD_S * (now // PERIOD_S + 1)
        for usage in self.usage.values():
            usage.record(now)
        for state in self._state:
            state.scrape(now)
        for containers in self._containers:
            containers.scrape(now)
        if self._services is not None:
            self._services.scrape(now)
        self._load_rules()
        self.rules.evaluate(now, self.metrics)
        return True

    def _probe(self, it: Running, now: float) -> None:
        start = it.probes.due() - 5.0
        delta = it.probes.record(it.meter, now)
        it.history.record(start, now, delta, it.levers.reasons)
        assert self._journeys is not None, "made with the app's parts"
        self._journeys.scrape(now)

    def _load_rules(self) -> None:
        """Rules are PrometheusRule objects of the first cluster."""
        objects = next(iter(self.clusters.values())).objects
        found = list(objects.all(RULES))
        stamp = [f"{o['metadata']['uid']}/{o['metadata'].get('resourceVersion')}" for o in found]
        if stamp != self._rules_at:
            self._rules_at = stamp
            groups, self.rule_problems = groups_from_objects(found)
            self.rules.set_groups(groups)

    def save(self) -> dict[str, Any]:
        """State as plain data."""
        it = self.running
        return {
            "next": self._next,
            "usage": {name: usage.save() for name, usage in self.usage.items()},
            "probes": it.probes.save() if it else None,
            "history": it.history.save() if it else None,
            "services": self._services.save() if self._services else None,
            "journeys": self._journeys.save() if self._journeys else None,
            "metrics": self.metrics.save(),
            "rules": self.rules.save(),
        }

    def restore(self, data: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self._next = data["next"]
        for name, saved in data["usage"].items():
            self.usage[name].restore(saved)
        if self.running is not None:
            self.running.probes.restore(data["probes"])
            self.running.history.restore(data["history"])
        self.attach(MetricStore.load(data["metrics"]), RuleEngine.load(data["rules"]))
        if self._services is not None and self._journeys is not None:
            self._services.restore(data["services"])
            self._journeys.restore(data["journeys"])
