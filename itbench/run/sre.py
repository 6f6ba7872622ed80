"""The driver of incidents: an app on a cluster, probed from outside by its journeys. Made by `itbench.run.build`."""

import datetime
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from math import isnan
from typing import Any

from itbench.core.documents.result import Snapshot, Write
from itbench.core.documents.task import Endpoints
from itbench.core.errors import EnvironmentFault
from itbench.evaluate.journeys import Bound, Level, Row
from itbench.evaluate.slo import ChallengeSpec
from itbench.kube.audit import AuditRecord, only_asks
from itbench.library.store import Library
from itbench.run.challenges import challenge
from itbench.run.driver import Gate, Plan, Records
from itbench.stage.embedded import EmbeddedEnvironment
from itbench.stage.environment import ACCOUNTS, AGENT, Staging
from itbench.telemetry.rules import firing_spans

BASELINE_S = 300.0
"""World seconds of ordinary operation before anything is disturbed."""
QUIET_S = 120.0
"""The last of them must be green."""
STEP_S = 5.0
SHOWING_S = 120.0
"""World seconds between the first red probe and hand-over, so that alerts have come up, unless the scenario says otherwise."""
NO_CHANGE = ("exec", "attach", "portforward", "proxy", "log")


class DriverClock:
    """The trial's clock as tools see it."""

    def __init__(self, environment: EmbeddedEnvironment) -> None:
        self._environment = environment

    def now(self) -> float:
        """World seconds, caught up with the wall where the clock follows it."""
        self._environment.pacer.enter(outside=False, free=True)
        return self._environment.now

    def tool_call(self) -> AbstractContextManager[None]:
        """Bracket of one step."""
        return self._environment.pacer.tool_call()

    async def advance(self, seconds: float) -> None:
        """Let world time pass."""
        await self._environment.advance(seconds)


class SreDriver:
    """One incident."""

    tools: tuple[str, ...] = ()

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        scenario, library = plan.scenario, Library(plan.library)
        use = scenario.environment.app
        assert use is not None
        staging = Staging(
            private=plan.private,
            roots=library.roots,
            app=use.id,
            load=scenario.environment.load.journeys,
            load_factor=scenario.environment.load.factor,
            nodes=scenario.environment.nodes,
            faults=scenario.faults,
            noise=scenario.noise,
            seed=plan.seed,
            noise_seed=plan.noise_seed,
            clock=plan.clock,
        )
        self.environment = EmbeddedEnvironment(staging)
        assert self.environment.app is not None
        self.app = self.environment.app
        self.clock = DriverClock(self.environment)
        self._red: float | None = None
        self._handed_over = 0.0

    # -- standing up -----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """An empty cluster."""
        await self.environment.start()

    async def stage(self, gate: Gate) -> None:
        """Ansible: app, gate, noise, faults."""
        await self.environment.stage(gate)

    async def restore(self, data: Any) -> None:
        """A staged estate from its checkpoint."""
        await self.environment.restore(data["environment"])
        self._red, self._handed_over = data["red"], data["handed_over"]

    def save(self) -> Any:
        """The estate as plain data."""
        return {"environment": self.environment.save(), "red": self._red, "handed_over": self._handed_over}

    async def close(self) -> None:
        """End everything."""
        await self.environment.close()

    # -- probing ---------------------------------------------------------------------------------------------------

    async def baseline(self) -> str:
        """Ordinary operation for a while; every journey green at its end, no alert firing."""
        await self.environment.advance(BASELINE_S)
        now = self.environment.now
        red = [name for name, row in self._rows(now - QUIET_S, now) if not self._level(name).held(row)]
        if red:
            return "journeys outside their level: " + ", ".join(sorted(set(red)))
        firing = [
            str(alert["labels"].get("alertname"))
            for alert in self.environment.alerts()
            if alert.get("state") == "firing"
        ]
        return "alerts firing: " + ", ".join(sorted(firing)) if firing else ""

    async def symptom(self) -> str:
        """Wait for the first red probe, then until hand-over is due."""
        symptom, start = self.plan.scenario.symptom, self._fault_at()
        if symptom.none:
            return await self._stays_green(symptom.hand_over or symptom.within)
        while self._first_red(start) is None:
            if self.environment.now - start >= symptom.within:
                return f"every journey stayed green for {symptom.within:g} s after injection"
            await self.environment.advance(STEP_S)
        self._red = self._first_red(start)
        assert self._red is not None
        due = start + symptom.hand_over if symptom.hand_over is not None else self._red + SHOWING_S
        if due > self.environment.now:
            await self.environment.advance(due - self.environment.now)
        now = self.environment.now
        if not symptom.self_recovering and not any(
            not self._level(name).held(row) for name, row in self._rows(now - 30, now)
        ):
            return "the estate recovered by itself before hand-over"
        return ""

    async def _stays_green(self, seconds: float) -> str:
        start = self.environment.now
        await self.environment.advance(seconds)
        red = self._first_red(start)
        return f"a journey was red at world second {red:g} although nothing is wrong" if red is not None else ""

    def _fault_at(self) -> float:
        return float(self.environment.marks().get("fault", self.environment.now))

    def _level(self, journey: str) -> Level:
        slo = self.app.slo.get(journey)
        success = slo.success if slo is not None else 0.99
        p99 = slo.p99_ms if slo is not None else None
        return Level(Bound(">=", success), Bound("<=", p99 / 1000) if p99 else None)

    def _journeys(self, start: float, end: float) -> dict[str, list[Row]]:
        return {name: [known(row) for row in rows] for name, rows in self.environment.journeys(start, end).items()}

    def _rows(self, start: float, end: float) -> Iterator[tuple[str, Row]]:
        for name, rows in self._journeys(start, end).items():
            for row in rows:
                yield name, row

    def _first_red(self, start: float) -> float | None:
        red = [row[0] for name, row in self._rows(start, self.environment.now) if not self._level(name).held(row)]
        return min(red) if red else None

    # -- the agent's time ------------------------------------------------------------------------------------------

    @property
    def endpoints(self) -> Endpoints:
        """Where the agent finds the estate."""
        doors = self.environment.doors
        return Endpoints(
            kubeconfig=str(doors.kubeconfigs["agent"]),
            prometheus_url=doors.prometheus_url,
            alertmanager_url=doors.alertmanager_url,
            loki_url=doors.loki_url,
            jaeger_url=doors.jaeger_url,
        )

    @property
    def ports(self) -> tuple[int, ...]:
        """Ports of this trial's doors."""
        return self.environment.doors.ports

    def page_values(self) -> dict[str, str]:
        """Times as the agent's clock shows them."""
        marks = dict(self.environment.marks())
        moments = {"at.fault": marks.get("fault"), "at.symptom": self._red}
        moments |= {f"at.{name}": moment for name, moment in marks.items() if name.startswith("noise.")}
        moments["at.now"] = self.environment.now
        values = {name: self._wire(moment) for name, moment in moments.items() if moment is not None}
        if self.plan.scenario.faults:
            kind, _, rest = self.plan.scenario.faults[0].target.partition("/")
            values |= {
                "target.kind": kind,
                "target.name": rest.rpartition("/")[2],
                "target.namespace": rest.rpartition("/")[0],
            }
        return values

    def _wire(self, moment: float) -> str:
        seconds = self.environment.pacer.to_wire(moment)
        return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%H:%M UTC")

    def count_steps(self, step: Callable[[], object]) -> None:
        """Every request of the agent that goes past its tools is a step too."""
        self.environment.pacer.on_step = step

    async def hand_over(self) -> None:
        """The agent's clock runs."""
        self.environment.hand_over()
        self._handed_over = self.environment.now

    async def submit(self) -> None:
        """The agent's identity ends and the clock stands."""
        await self.environment.end_agent()

    async def settle(self, seconds: float) -> None:
        """Fast-forward."""
        await self.environment.advance(seconds)

    async def challenge(self) -> bool:
        """Carry out the scenario's challenges, one after the other."""
        specs = [
            ChallengeSpec.model_validate(entry.spec) for entry in self.plan.scenario.checks if entry.kind == "challenge"
        ]
        for spec in specs:
            await challenge(spec, self.environment)
        return bool(specs)

    async def revert(self) -> None:
        """Take the faults back, the last one first, and then the noise, so that nothing is left but the baseline."""
        self.environment.hand_over()
        for part, uses in (("faults", self.plan.scenario.faults), ("noise", self.plan.scenario.noise)):
            for use in reversed(uses):
                await self.environment.revert(use, part)

    # -- records ---------------------------------------------------------------------------------------------------

    def times(self) -> dict[str, float]:
        """World seconds of injection and symptom."""
        found = {name: float(moment) for name, moment in self.environment.marks().items()}
        if self._red is not None:
            found["symptom"] = self._red
        return found

    def snapshot(self) -> Snapshot:
        """Objects without bookkeeping, and alerts."""
        objects = {resource: [plain(item) for item in items] for resource, items in self.environment.objects().items()}
        return Snapshot(t=self.environment.now, objects=objects, alerts=self.environment.alerts())

    async def records(self) -> Records:
        """Journeys of the whole trial, the agent's writes, the service levels."""
        levels = {name: {"success": slo.success, "p99_ms": slo.p99_ms} for name, slo in self.app.slo.items()}
        levels = {
            name: {key: value for key, value in level.items() if value is not None} for name, level in levels.items()
        }
        missing = [name for name in levels if name not in self.app.journeys]
        if missing:
            raise EnvironmentFault("levels of unknown journeys", seen=missing)
        return Records(
            journeys=self._journeys(0.0, self.environment.now),
            writes=[to_write(record) for record in self.environment.audit() if self._counts(record)],
            facts={"slo": levels, "alerts": self._alert_spans(), "silences": self._silences()},
        )

    def _alert_spans(self) -> list[tuple[str, float, float | None, str]]:
        """Every stretch in which an alert fired: name, begin, end, labels that tell it from others of its name."""
        spans = firing_spans(self.environment.world.metrics, 0.0, self.environment.now)
        return [(labels.get("alertname", "?"), start, end, _distinct(labels)) for labels, start, end in spans]

    def _silences(self) -> list[dict[str, Any]]:
        """What was silenced since hand-over, and from when to when: a silenced alert is not a solved one."""
        made = [each for each in self.environment.silences() if each.updated_at >= self._handed_over]
        return [
            {
                "matchers": ["".join(matcher) for matcher in each.matchers],
                "start": each.starts_at,
                "end": each.ends_at,
                "by": each.created_by,
                "comment": each.comment,
            }
            for each in made
        ]

    def _counts(self, record: AuditRecord) -> bool:
        return (
            (record.user == AGENT or record.user.startswith(ACCOUNTS))
            and record.writes
            and record.time >= self._handed_over
            and record.subresource not in NO_CHANGE
            and not only_asks(record.resource)
        )


def _distinct(labels: dict[str, str]) -> str:
    return ", ".join(
        f"{key}={value}" for key, value in sorted(labels.items()) if key not in ("alertname", "severity", "alertstate")
    )


def known(row: tuple[float, float, float, float, float]) -> Row:
    """A probe's row as evidence: no traffic is no success, no answer is no latency."""
    t, rate, success, p50, p99 = row
    return (t, rate, 0.0 if isnan(success) else success, None if isnan(p50) else p50, None if isnan(p99) else p99)


def plain(obj: dict[str, Any]) -> dict[str, Any]:
    """An object without what differs between equal estates or says nothing about them."""
    meta = {key: value for key, value in obj["metadata"].items() if key not in ("managedFields", "resourceVersion")}
    return {**obj, "metadata": meta}


def to_write(record: AuditRecord) -> Write:
    """A record of the control plane as evidence."""
    return Write(
        t=record.time,
        user=record.user,
        verb=record.verb,
        resource=record.resource,
        namespace=record.namespace,
        name=record.name,
        subresource=record.subresource,
        code=record.code,
        before=record.before,
        after=record.after,
    )


def make(plan: Plan) -> SreDriver:
    """The driver of one trial."""
    return SreDriver(plan)
