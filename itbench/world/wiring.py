"""Maps an app's model on a flow net: stations, call edges, journey roots. Built once per app; levers are set by `levers.py`.

The same operation reached by two paths is two edges, so the net is a forest with one tree per journey. Called by the estate.
"""

from dataclasses import dataclass
from math import inf

from itbench.core.documents.app import App, Call, Operation, Setting
from itbench.core.errors import ScenarioDefect
from itbench.world.flow.spec import Edge, FlowSpec, Station
from itbench.world.settings import evaluate

SLOTS = 6
"""Pods of one workload that the net keeps apart; what a larger scale adds is shared among them."""
LONG_WAIT_S = 60.0
"""How long a caller without a timeout of its own waits for an address that swallows packets."""
MAX_DEPTH = 24
MAX_EDGES = 2000
NETWORK_S = 0.0005


@dataclass(frozen=True, slots=True)
class Link:
    """One edge of the net, with what it stands for."""

    index: int
    journey: str
    parent: int
    caller: str
    workload: str
    operation: str
    call: Call | None
    topic: str = ""
    grain: float = 1.0
    """Small requests of the flow for one request: that of the finest station on the way here."""

    @property
    def name(self) -> str:
        """For messages and metrics."""
        return f"{self.workload}/{self.operation}"


@dataclass(frozen=True, slots=True)
class Net:
    """A flow net and its legend: `stations` are workloads in station order, `roots` the root edge of each journey."""

    spec: FlowSpec
    links: tuple[Link, ...]
    stations: tuple[str, ...]
    roots: dict[str, int]
    grains: dict[str, float]
    """Workload -> small requests of the flow for one request."""

    def of_service(self, workload: str, operation: str | None = None) -> list[Link]:
        """The edges that a workload answers."""
        return [x for x in self.links if x.workload == workload and operation in (None, x.operation)]

    def effects(self, journey: str, workload: str, operation: str) -> list[int]:
        """Edges of a journey's tree that are the given operation."""
        return [x.index for x in self.links if (x.journey, x.workload, x.operation) == (journey, workload, operation)]


class _Builder:
    def __init__(self, app: App) -> None:
        self.app = app
        self.links: list[Link] = []
        self.edges: list[Edge] = []
        self.stations: list[str] = []
        self.roots: dict[str, int] = {}

    def build(self) -> Net:
        for name, journey in self.app.journeys.items():
            if journey.entry is None:
                continue
            operation = self._operation(journey.entry.workload, journey.entry.operation)
            link = self._link(name, None, journey.entry.workload, journey.entry.operation, None, "")
            self.roots[name] = link.index
            self._add(link, operation, timeout_s=journey.timeout_s)
            self._children(link, operation, 1)
        spec = FlowSpec(tuple(self._station(name) for name in self.stations), tuple(self.edges))
        grains = {name: self.app.services[name].capacity.grain for name in self.stations}
        return Net(spec, tuple(self.links), tuple(self.stations), self.roots, grains)

    def _operation(self, workload: str, name: str) -> Operation:
        found = self.app.operation(workload, name)
        assert found is not None, "the document was validated"
        return found

    def _add(self, link: Link, operation: Operation, **numbers: float | int | bool | None) -> None:
        if link.workload not in self.stations:
            self.stations.append(link.workload)
        if len(self.edges) >= MAX_EDGES:
            raise ScenarioDefect(
                f"app {self.app.id} has too many call paths", seen=len(self.edges), expected=f"at most {MAX_EDGES}"
            )
        self.links.append(link)
        values = {"delay_s": NETWORK_S + operation.latency_ms / 1000, **numbers}
        above = self.links[link.parent].grain if link.parent >= 0 else 1.0
        values["calls"] = float(values.get("calls") or 1.0) * link.grain / above
        work_s = operation.service_ms / 1000 / link.grain
        station = self.stations.index(link.workload)
        self.edges.append(Edge(link.name, link.parent, station, work_s, **values))  # type: ignore[arg-type]

    def _link(
        self, journey: str, parent: Link | None, workload: str, operation: str, call: Call | None, topic: str
    ) -> Link:
        own = self.app.services[workload].capacity.grain
        grain = max(own, parent.grain) if parent is not None else own
        index, above = len(self.links), parent.index if parent is not None else -1
        return Link(
            index, journey, above, self._caller(parent, call, workload), workload, operation, call, topic, grain
        )

    @staticmethod
    def _caller(parent: Link | None, call: Call | None, workload: str) -> str:
        """Who dials: the caller, or the consumer itself, which fetches from its broker."""
        if parent is None:
            return ""
        return parent.workload if call is not None else workload

    def _children(self, parent: Link, operation: Operation, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise ScenarioDefect(f"calls of app {self.app.id} go in a circle", seen=parent.name)
        known: dict[str, int] = {}
        for call in operation.calls:
            link = self._link(parent.journey, parent, call.to, call.operation, call, call.topic or "")
            if call.id:
                known[call.id] = link.index
            callee = self._operation(call.to, call.operation)
            self._add(
                link,
                callee,
                timeout_s=_initial(call.timeout_s, inf),
                retries=int(_initial(call.retries, 0)),
                max_retries=_most(call),
                backoff_s=_initial(call.backoff_s, 0.0),
                retry_errors=call.retry_errors,
                calls=call.times,
                budget=_initial(call.retry_budget, -1.0),
                after=known.get(call.after or "", -1),
                join=call.wait,
                soft=call.errors == "ignored",
            )
            self._children(link, callee, depth + 1)
            if call.topic:
                self._consumers(link, depth + 1)

    def _consumers(self, publish: Link, depth: int) -> None:
        for workload, service in self.app.services.items():
            for item in service.consumes:
                if item.topic != publish.topic or item.broker != publish.workload:
                    continue
                operation = self._operation(workload, item.operation)
                link = self._link(publish.journey, publish, workload, item.operation, None, item.topic)
                self._add(link, operation, join=False, queued=True)
                self._children(link, operation, depth + 1)

    def _station(self, workload: str) -> Station:
        capacity = self.app.services[workload].capacity
        return Station(workload, SLOTS, capacity.workers, float(capacity.workers), inf, capacity.scv)


def _initial(number: object, off: float) -> float:
    """A setting before anybody has read its source."""
    if isinstance(number, Setting):
        return evaluate(number, {}, lambda name, key: None, off=off)
    return off if number == "off" else float(number)  # type: ignore[arg-type]


def _most(call: Call) -> int:
    """The most retries that the net must have room for."""
    start = int(_initial(call.retries, 0))
    return max(start, int(call.retries.max or start)) if isinstance(call.retries, Setting) else start


def build(app: App) -> Net:
    """The net of an app.

    Raises:
        ScenarioDefect: calls go in a circle, or there are too many.
    """
    return _Builder(app).build()
