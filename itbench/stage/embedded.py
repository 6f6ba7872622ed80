"""The embedded environment: control plane, nodes, flow and telemetry of `itbench.world`, in the trial's own process.

Needs nothing but the package. Ansible and agents reach it over HTTPS on the loopback like any cluster. Called by `itbench.run`.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from itbench.core.documents.app import App
from itbench.core.documents.base import load
from itbench.core.documents.result import EVIDENCE
from itbench.core.documents.scenario import Use
from itbench.core.errors import EnvironmentFault, UsageError
from itbench.core.ids import Ids
from itbench.kube.api import Server, serve
from itbench.kube.audit import AuditRecord
from itbench.kube.client import ApiError, Client, Obj
from itbench.kube.rbac import MASTERS
from itbench.stage.ansible import Play, run_play
from itbench.stage.control import Control
from itbench.stage.environment import ACCOUNTS, AGENT, GRADER, STAGER, Doors, Gate, Identity, Staging
from itbench.stage.telemetry import Telemetry
from itbench.stage.triggers import repeat
from itbench.stage.variables import change_variables, staging_variables
from itbench.telemetry.alertmanager import Silence, Silences
from itbench.world.estate import World
from itbench.world.flow import warm
from itbench.world.pace import WorldPacer

KIND = "embedded"
PLANE = "main"
STRETCH_S = 60.0


def parse_clock(text: str) -> dict[str, Any]:
    """`live`, `scaled:10` or `stepped:5` -> arguments of `WorldPacer`.

    Raises:
        UsageError: anything else.
    """
    mode, _, number = text.partition(":")
    try:
        value = float(number) if number else None
    except ValueError:
        value = -1.0
    if mode == "live" and value is None:
        return {"mode": "live"}
    if mode == "scaled" and value is not None and value > 0:
        return {"mode": "scaled", "rate": value}
    if mode == "stepped" and (value is None or value > 0):
        return {"mode": "stepped", "step_s": 5.0 if value is None else value}
    raise UsageError("unknown clock", seen=text, expected="live, scaled:N or stepped:S")


class EmbeddedEnvironment:
    """An `Environment` (see `environment`) on the simulated world.

    Attributes:
        world: the estate; valid after `start` or `restore`.
        pacer: its clock.
    """

    def __init__(self, staging: Staging) -> None:
        self.staging = staging
        self._clock = parse_clock(staging.clock)
        self._marks: dict[str, float] = {}
        self._server: Server | None = None
        self._telemetry: Telemetry | None = None
        self._silences = Silences(Ids(staging.seed))
        self.app = self._load_app()

    def _load_app(self) -> App | None:
        if not self.staging.app:
            return None
        return load(App, self._playbooks(f"apps/{self.staging.app}/app.yaml") / "apps" / self.staging.app / "app.yaml")

    def _playbooks(self, part: str) -> Path:
        for root in self.staging.roots:
            if (root / "playbooks" / part).is_file():
                return root / "playbooks"
        raise EnvironmentFault("the library lacks a file", cause="stage_failed", seen=f"playbooks/{part}")

    # ---- standing up

    async def start(self) -> None:
        """An empty cluster with its nodes, its doors and the identity that stages."""
        staging = self.staging
        self.world = World.create(self.app, seed=staging.seed, nodes=staging.nodes, noise_seed=staging.seed)
        self._set_load(0.0)
        await self._open()

    def _set_load(self, factor: float) -> None:
        if self.app is not None:
            rates = {**self.world.default_load(), **self.staging.load}
            self.world.set_load({name: rate * factor for name, rate in rates.items()})

    async def _open(self) -> None:
        """Clock, servers, kubeconfigs; the clock stands until hand-over."""
        self.pacer = WorldPacer(self.world, **self._clock, standing=True)
        self.staging.private.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._server = await serve(self.world.planes[PLANE], self.pacer, self.world.door(PLANE))
        self._telemetry = await Telemetry.open(self.world, self.pacer, PLANE, self._silences)
        self._write_kubeconfig("stager", STAGER, (MASTERS,))
        self._write_kubeconfig("grader", GRADER, (MASTERS,))

    def _write_kubeconfig(self, identity: Identity, user: str, groups: tuple[str, ...]) -> None:
        assert self._server is not None
        namespace = self.app.namespace if self.app is not None else ""
        path = self._kubeconfig(identity)
        path.touch(mode=0o600)
        path.write_text(self._server.kubeconfig(user, groups, namespace=namespace))

    def _kubeconfig(self, identity: Identity) -> Path:
        return self.staging.private / f"kubeconfig-{identity}"

    async def stage(self, gate: Gate) -> None:
        """Ansible: platform, app, gate, noise, faults.

        Raises:
            EnvironmentFault: what the gate raised, or `stage_failed` with Ansible's own message.
        """

        async def judged() -> None:
            # Users come when everything is up: a storm of retries while it starts would never end.
            self._set_load(self.staging.load_factor)
            await gate()
            self._mark("staged")

        play = self._playbooks("scenario.yml") / "scenario.yml"
        # The engine loads while Ansible does; both take about as long.
        engine = asyncio.ensure_future(asyncio.to_thread(warm))
        async with Control(judged, self.advance, self._mark) as control:
            try:
                await self._play(play, staging_variables(self.staging, KIND), control)
            except EnvironmentFault as fault:
                raise control.error or fault from None
            finally:
                await engine
        if not control.passed:
            raise EnvironmentFault("the playbook never asked for the baseline", cause="stage_failed", seen=str(play))

    async def _play(self, playbook: Path, variables: dict[str, Any], control: Control) -> None:
        private = self.staging.private / "ansible"
        kubeconfig = self._kubeconfig("stager")
        await run_play(Play(playbook, private, kubeconfig, variables, control.url, control.token))

    def _mark(self, name: str) -> None:
        part, _, number = name.partition(".")
        if part == "faults":
            self._marks.setdefault("fault", self.now)
            name = f"fault.{number}"
        if name:
            self._marks[name] = self.now

    # ---- looking

    @property
    def doors(self) -> Doors:
        """Where it can be reached."""
        telemetry, server = self._telemetry, self._server
        if telemetry is None or server is None:
            raise EnvironmentFault("the environment is not up", expected="start() or restore() first")
        return Doors(
            kubeconfigs={identity: self._kubeconfig(identity) for identity in ("stager", "agent", "grader")},
            prometheus_url=telemetry.prometheus_url,
            alertmanager_url=telemetry.alertmanager_url,
            loki_url=telemetry.loki_url,
            ports=(int(server.url.rpartition(":")[2]), *telemetry.ports),
        )

    @property
    def now(self) -> float:
        """World seconds."""
        return float(self.pacer.now())

    async def advance(self, seconds: float) -> None:
        """Let world time pass; in the world it is a fast-forward. Servers get their turn between two stretches."""
        left = seconds
        while left > 0:
            self.pacer.pass_time(min(left, STRETCH_S))
            left -= STRETCH_S
            await asyncio.sleep(0)

    def client(self, identity: Identity) -> Client:
        """In process; the agent's own client goes through its kubeconfig."""
        user = {"stager": STAGER, "grader": GRADER}.get(identity)
        if user is None:
            raise UsageError("no client in process for", seen=identity, expected="stager or grader")
        return self.world.planes[PLANE].client(identity, user, (MASTERS,))

    def journeys(self, start: float, end: float) -> dict[str, list[tuple[float, float, float, float, float]]]:
        """Per journey (t, requests per second, share that succeeded, p50 s, p99 s)."""
        measured = self.world.journeys(start, end)
        return {name: [(s.t, s.rate, s.ok, s.p50, s.p99) for s in samples] for name, samples in measured.items()}

    def alerts(self) -> list[dict[str, Any]]:
        """Pending and firing alerts, by rule state."""
        return self.world.rules.alerts()

    def silences(self) -> list[Silence]:
        """Every silence ever made, ended ones too."""
        return self._silences.all()

    def audit(self) -> list[AuditRecord]:
        """Requests of everybody but the cluster's own components; of programs in pods too."""
        records = self.world.planes[PLANE].audit
        return [row for row in records if not row.user.startswith("system:") or row.user.startswith(ACCOUNTS)]

    def objects(self) -> dict[str, list[Obj]]:
        """What evidence holds, by resource."""
        client, found = self.client("grader"), {}
        for resource in EVIDENCE:
            try:
                found[resource] = client.list(resource)
            except ApiError as error:
                if error.code != 404:
                    raise
        return found

    def marks(self) -> Mapping[str, float]:
        """World seconds of staging: `staged`, `fault`, `fault.N`, `noise.N`."""
        return dict(self._marks)

    # ---- acting

    async def replay(self) -> None:
        """Do the triggers again."""
        if not repeat(self.client("stager")):
            raise EnvironmentFault("nothing to replay", expected="a trigger among the scenario's faults")

    async def inject(self, use: Use) -> None:
        """Apply one fault once more."""
        await self._change("inject", use, "faults")

    async def revert(self, use: Use, part: str = "faults") -> None:
        """Take one fault back, or a piece of noise (`part="noise"`)."""
        await self._change("revert", use, part)

    async def _change(self, verb: str, use: Use, part: str) -> None:
        async def green() -> None:
            """Nothing waits at a gate here."""

        stood = self.pacer.standing
        self.pacer.stand()
        variables = change_variables(self.staging, KIND, part, verb, [use])
        try:
            async with Control(green, self.advance) as control:
                await self._play(self._playbooks("change.yml") / "change.yml", variables, control)
        finally:
            if not stood:
                self.pacer.go()

    # ---- the agent

    def hand_over(self) -> None:
        """The agent's identity works and the clock runs."""
        namespace = self.app.namespace if self.app is not None else "default"
        self._write_kubeconfig("agent", AGENT, (f"oncall-{namespace}",))
        self.world.noise.seed = self.staging.noise_seed
        self.pacer.go()

    async def end_agent(self) -> None:
        """The agent's identity ends, the clock stands."""
        self.pacer.stand()
        if self._server is not None:
            self._server.revoke(AGENT)
        self._kubeconfig("agent").unlink(missing_ok=True)

    # ---- checkpoints and the end

    def save(self) -> dict[str, Any]:
        """The staged estate as plain data."""
        return {"world": self.world.save(), "marks": dict(self._marks), "silences": self._silences.save()}

    async def restore(self, data: dict[str, Any]) -> None:
        """Bring up a saved estate with identities issued anew."""
        self.world = World.load(data["world"])
        self._marks = dict(data["marks"])
        self._silences.restore(data["silences"])
        await self._open()

    async def close(self) -> None:
        """End servers, remove kubeconfigs. Never raises."""
        for part in (self._telemetry, self._server):
            if part is not None:
                with contextlib.suppress(Exception):
                    await part.close()
        self._telemetry = self._server = None
        for identity in ("stager", "agent", "grader"):
            with contextlib.suppress(OSError):
                self._kubeconfig(identity).unlink(missing_ok=True)
