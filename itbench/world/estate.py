"""The world: clock, control planes, kubelets, flow and telemetry in one `advance()`. Stage and run hold it, doors look into it.

    world = World.create(app, seed=0, nodes=3)
    world.plane.client("kubectl").create(...)
    world.settle()
    world.set_load({"buy": 10})
    world.advance(world.now + 300)
    world.journeys(world.now - 60, world.now)["buy"]

Everything is deterministic and plain: `World.load(world.save())` goes on bit for bit.
"""

from typing import Any

from itbench.core.documents.app import App
from itbench.core.errors import EnvironmentFault, UsageError
from itbench.core.ids import Ids
from itbench.kube.plane import ControlPlane
from itbench.telemetry.metrics import MetricStore
from itbench.telemetry.rules import RuleEngine
from itbench.world.chaos import Chaos
from itbench.world.cluster import Cluster
from itbench.world.door import Door
from itbench.world.flow.engine import Flow
from itbench.world.kubelet.state import PodState
from itbench.world.levers import Levers
from itbench.world.noise import Noise
from itbench.world.probes import Sample
from itbench.world.scrapes import Running, Scrapes
from itbench.world.wiring import build

SETTLE_S = 180.0
"""How far staging lets time run at most before one answer."""
QUIET_S = 2.0


class World:
    """A simulated estate. Make one with `create` or `load`."""

    def __init__(self, app: App | None, seed: int, noise_seed: int, clusters: dict[str, Cluster]) -> None:
        self.app, self.seed, self.noise, self.clusters = app, seed, Noise(noise_seed), clusters
        self.now = 0.0
        self.chaos = {name: Chaos(cluster) for name, cluster in clusters.items()}
        self.running: Running | None = None
        self._stale = True
        if app is not None and app.journeys:
            main = next(iter(clusters))
            net = build(app)
            flow = Flow(net.spec)
            levers = Levers(app, net, clusters[main], flow, self.chaos[main].stolen)
            self.running = Running(app, net, flow, levers, clusters[main])
            clusters[main].health = self._health
        self.scrapes = Scrapes(clusters, self.chaos, self.running, self.noise)
        self._doors = {
            name: Door(cluster, self.scrapes.logbook(name), self.scrapes.usage[name])
            for name, cluster in clusters.items()
        }
        for name, cluster in clusters.items():
            cluster.plane.metrics = self._doors[name].pod_metrics

    @classmethod
    def create(
        cls, app: App | None, *, seed: int, nodes: int, noise_seed: int = 0, planes: tuple[str, ...] = ("main",)
    ) -> "World":
        """A fresh estate: empty control planes with nodes.

        Args:
            app: the app whose images and journeys the world knows; it runs on the first plane.
            seed: of the estate: names, uids, small delays.
            nodes: nodes of each cluster.
            noise_seed: of the noise in telemetry.
            planes: names of the control planes.
        """
        if nodes < 0:
            raise UsageError("nodes of a world", seen=nodes, expected="at least 0")
        names = [f"node-{number}" for number in range(1, nodes + 1)]
        clusters = {}
        for index, plane in enumerate(planes):
            control = ControlPlane(ids=Ids(seed * 1000 + index), name=plane)
            clusters[plane] = Cluster(control, app if index == 0 else None, names, Ids(seed * 1000 + 500 + index))
            clusters[plane].start()
        world = cls(app, seed, noise_seed, clusters)
        world._catch_up()
        return world

    # ---- parts

    @property
    def planes(self) -> dict[str, ControlPlane]:
        """Control planes by name."""
        return {name: cluster.plane for name, cluster in self.clusters.items()}

    @property
    def main(self) -> Cluster:
        """The first cluster."""
        return next(iter(self.clusters.values()))

    @property
    def metrics(self) -> MetricStore:
        """Samples of all targets."""
        return self.scrapes.metrics

    @property
    def rules(self) -> RuleEngine:
        """Alert rules and their state."""
        return self.scrapes.rules

    def door(self, plane: str = "main") -> Door:
        """The kubelets' doors of one control plane: a `NodeDoor`, and the log source of Loki."""
        return self._doors[plane]

    def _health(self, workload: str, operation: str) -> float:
        return self.running.probes.health.get(f"{workload} {operation}", 1.0) if self.running else 1.0

    # ---- time

    def next_event(self) -> float:
        """World second of the next thing that happens by itself (the flow's own steps apart)."""
        times = [cluster.due() for cluster in self.clusters.values()]
        times += [each.due() for each in self.chaos.values()]
        return max(self.now, min(*times, self.scrapes.due()))

    def advance(self, until: float) -> None:
        """Let the world go on to `until`, event by event. Earlier times only catch up with changes made meanwhile."""
        self._catch_up()
        while self.now < until:
            self._move(min(self.next_event(), until))
            self._catch_up()

    def _move(self, now: float) -> None:
        if self.running is not None and now > self.running.flow.now:
            self._flow(self.running, now)
        self.now = now
        for cluster in self.clusters.values():
            cluster.plane.now = max(cluster.plane.now, now)
        self.scrapes.step(now)

    def _catch_up(self) -> None:
        """Controllers, kubelets and disturbances at this moment, until none has anything to do."""
        for name, cluster in self.clusters.items():
            for _ in range(20):
                changes = cluster.step(self.now)
                disturbed = self.chaos[name].step(changes, self.now)
                self._stale = self._stale or bool(changes) or disturbed or cluster.touched
                cluster.touched = False
                cluster.kubelets.gone.clear()
                if not disturbed:
                    break

    def _flow(self, it: Running, now: float) -> None:
        """Let requests flow until `now`. Before there were any, only the clock moves: staging needs no engine."""
        if it.flow.steps == 0 and not any(it.levers.rates.values()):
            it.flow.start_at(now)
            return
        self._rewire(it)
        it.flow.advance(now)

    def _rewire(self, it: Running) -> None:
        """Bring the flow up to date with what changed since it last ran."""
        if self._stale and any(it.levers.rates.values()):
            it.levers.update()
            self._stale = False

    def settle(self) -> None:
        """While staging: controllers and pod starts to rest; back-offs and probe failures are rest too.

        Raises:
            EnvironmentFault: something keeps changing for longer than any start takes.
        """
        self._catch_up()
        end = self.now + SETTLE_S
        while any(cluster.kubelets.busy() for cluster in self.clusters.values()) or self._soon():
            following = self.next_event()
            if following > end:
                raise EnvironmentFault("the estate does not settle", seen=f"{SETTLE_S:g} s", cause="stage_failed")
            self._move(following)
            self._catch_up()

    def _soon(self) -> bool:
        """Whether a control plane wants to act within a moment (rate limits, small delays)."""
        return any(cluster.plane.due() < self.now + QUIET_S for cluster in self.clusters.values())

    # ---- load and measurement

    def set_load(self, journeys: dict[str, float]) -> None:
        """Requests per second of each journey; journeys that are not named keep their rate.

        Raises:
            UsageError: no such journey, or one without traffic of its own.
        """
        if self.running is None:
            raise UsageError("load on a world without an app", seen=sorted(journeys), expected="an app with journeys")
        for name, rate in journeys.items():
            if name not in self.running.net.roots:
                known = ", ".join(self.running.net.roots)
                raise UsageError("load on a journey", seen=name, expected=f"one of {known}")
            self.running.levers.rates[name] = rate
        self._stale = True

    @property
    def rates(self) -> dict[str, float]:
        """Requests per second of each journey now."""
        return dict(self.running.levers.rates) if self.running else {}

    def default_load(self) -> dict[str, float]:
        """The rates that the app's document names."""
        journeys = self.app.journeys if self.app else {}
        return {name: journey.rate for name, journey in journeys.items() if journey.entry is not None}

    def journeys(self, start: float, end: float) -> dict[str, list[Sample]]:
        """What outside probes measured in (start, end], by journey."""
        return self.running.probes.journeys(start, end) if self.running else {}

    def pods(self, plane: str = "main") -> list[PodState]:
        """The kubelets' view of the pods of a cluster."""
        return list(self.clusters[plane].kubelets.pods.values())

    # ---- checkpoints

    def save(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            "app": self.app.model_dump(mode="json", by_alias=True) if self.app else None,
            "seed": self.seed,
            "noise_seed": self.noise.seed,
            "now": self.now,
            "clusters": {name: cluster.save() for name, cluster in self.clusters.items()},
            "chaos": {name: each.save() for name, each in self.chaos.items()},
            "flow": self.running.flow.save() if self.running else None,
            "levers": self.running.levers.save() if self.running else None,
            "scrapes": self.scrapes.save(),
            "stale": self._stale,
        }

    @classmethod
    def load(cls, data: dict[str, Any]) -> "World":
        """The inverse of `save`."""
        app = App.model_validate(data["app"]) if data["app"] else None
        clusters = {}
        for index, (name, saved) in enumerate(data["clusters"].items()):
            clusters[name] = Cluster.load(saved, app if index == 0 else None, Ids(data["seed"] * 1000 + 500 + index))
        world = cls(app, data["seed"], data["noise_seed"], clusters)
        world.now, world._stale = data["now"], data["stale"]
        for name, saved in data["chaos"].items():
            world.chaos[name].restore(saved)
        if world.running is not None:
            world.running.flow.load(data["flow"])
            world.running.levers.restore(data["levers"])
        world.scrapes.restore(data["scrapes"])
        return world
