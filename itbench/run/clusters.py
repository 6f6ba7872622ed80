"""The driver of rows about policies on clusters: no app, one or more control planes, and a check that the agent delivers.

After the agent left, its script is run on the visible and on a hidden cluster, with too few rights, and with nobody answering;
its policy judges what was collected, and the hidden fixtures. Made by `itbench.run.build`.
"""

import asyncio
import contextlib
import datetime
import hashlib
import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import yaml

from itbench.core.documents.result import Snapshot
from itbench.core.documents.task import Endpoints
from itbench.core.errors import EnvironmentFault, ScenarioDefect
from itbench.engines.rego import Evaluation, engine_name, policy
from itbench.kube.api import Server, serve
from itbench.kube.audit import only_asks
from itbench.kube.rbac import MASTERS
from itbench.library.store import Library
from itbench.policy.controls.pods import WORKLOADS
from itbench.policy.fixtures import fixtures, judge, result_of, second_cluster, truth
from itbench.run.collecting import Collected, collect, deliverable
from itbench.run.driver import Gate, Plan, Records
from itbench.run.sre import NO_CHANGE, plain, to_write
from itbench.stage.ansible import Play, run_play
from itbench.stage.embedded import parse_clock
from itbench.stage.environment import ACCOUNTS, AGENT, STAGER
from itbench.world.estate import World
from itbench.world.pace import WorldPacer

VISIBLE, HIDDEN = "main", "second"
COLLECTOR, AUDITORS, PARTIAL = "collector", "auditors", "auditors-partial"
SCRIPT, POLICY, RULE = "script.sh", "policy.rego", "data.check.result"
WARM_S = 120.0
NOWHERE = "https://127.0.0.1:1"
RESOURCES = ("namespaces", *WORKLOADS)

NONE: tuple[tuple[str, str, str], ...] = ()

Obj = dict[str, Any]
Objects = dict[str, list[Obj]]


class ClustersClock:
    """The trial's clock as tools see it."""

    def __init__(self, driver: "ClustersDriver") -> None:
        self._driver = driver

    def now(self) -> float:
        """World seconds, caught up with the wall where the clock follows it."""
        self._driver.pacer.enter(outside=False, free=True)
        return float(self._driver.pacer.now())

    def tool_call(self) -> AbstractContextManager[None]:
        """Bracket of one step."""
        return self._driver.pacer.tool_call()

    async def advance(self, seconds: float) -> None:
        """Let world time pass."""
        self._driver.pacer.pass_time(seconds)


class ClustersDriver:
    """One trial on control planes of its own. The agent sees the first."""

    tools: tuple[str, ...] = ()

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.names = plan.scenario.environment.clusters
        if self.names[0] != VISIBLE or not set(self.names) <= {VISIBLE, HIDDEN}:
            raise ScenarioDefect(
                "clusters of the scenario", seen=self.names, expected=f"{VISIBLE}, or both with {HIDDEN}"
            )
        self.clock = ClustersClock(self)
        self._pace = parse_clock(plan.clock)
        self._servers: dict[str, Server] = {}
        self._handed_over = 0.0
        self._matrix: dict[str, Any] = {}

    # -- standing up -----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Empty clusters."""
        seed, nodes = self.plan.seed, self.plan.scenario.environment.nodes
        self.world = World.create(None, seed=seed, nodes=nodes, noise_seed=seed, planes=self.names)
        await self._open()

    async def _open(self) -> None:
        self.pacer = WorldPacer(self.world, **self._pace, standing=True)
        self.plan.private.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name in self.names:
            self._servers[name] = await serve(self.world.planes[name], self.pacer, self.world.door(name))

    def _file(self, name: str, text: str) -> Path:
        file = self.plan.private / name
        file.touch(mode=0o600)
        file.write_text(text, encoding="utf-8")
        return file

    async def stage(self, gate: Gate) -> None:
        """Ansible applies the scenario's objects to the visible cluster, drawn ones to the hidden; then the gate."""
        clusters, shared = [], self._manifests()
        for name in self.names:
            own = [path for path in shared if path.stem not in (VISIBLE, HIDDEN) or path.stem == name]
            if name == HIDDEN:
                drawn = yaml.safe_dump_all(second_cluster(self.plan.seed), sort_keys=False)
                own.append(self._file("second.yaml", drawn))
            kubeconfig = self._file(f"kubeconfig-{name}", self._servers[name].kubeconfig(STAGER, (MASTERS,)))
            clusters.append({"kubeconfig": str(kubeconfig), "files": [str(path) for path in own]})
        playbook = self._playbook()
        first = Path(str(clusters[0]["kubeconfig"]))
        await run_play(Play(playbook, self.plan.private / "ansible", first, {"clusters": clusters}))
        await gate()
        if self.plan.scenario.faults:
            raise ScenarioDefect(
                "rows about clusters have their defects in objects", seen=self.plan.scenario.faults[0].id
            )

    def _manifests(self) -> list[Path]:
        return [self.plan.folder / name for name in self.plan.scenario.environment.objects]

    def _playbook(self) -> Path:
        for root in Library(self.plan.library).roots:
            if (root / "playbooks" / "objects.yml").is_file():
                return root / "playbooks" / "objects.yml"
        raise EnvironmentFault("the library lacks a file", cause="stage_failed", seen="playbooks/objects.yml")

    def save(self) -> Any:
        """All clusters as plain data."""
        return {"world": self.world.save()}

    async def restore(self, data: Any) -> None:
        """Clusters from their checkpoint, identities issued anew."""
        self.world = World.load(data["world"])
        await self._open()

    async def close(self) -> None:
        """End the servers, remove identities."""
        for server in self._servers.values():
            with contextlib.suppress(Exception):
                await server.close()
        self._servers = {}
        for file in self.plan.private.glob("kubeconfig-*"):
            file.unlink(missing_ok=True)

    # -- probing ---------------------------------------------------------------------------------------------------

    def _objects(self, name: str) -> Objects:
        client = self.world.planes[name].client("grader", "system:grader", (MASTERS,))
        return {resource: client.list(resource) for resource in RESOURCES}

    async def baseline(self) -> str:
        """Every cluster has its workloads and its pods run."""
        self.pacer.pass_time(WARM_S)
        for name in self.names:
            objects = self._objects(name)
            waiting = [pod["metadata"]["name"] for pod in objects["pods"] if pod["status"].get("phase") != "Running"]
            if waiting or not objects["pods"]:
                return f"pods of {name} do not run: " + (", ".join(waiting[:5]) or "there are none")
        return ""

    async def symptom(self) -> str:
        """The visible cluster violates the control, or does not where the row says so."""
        found = truth(self._objects(VISIBLE))
        if bool(found) == self.plan.scenario.symptom.none:
            return "a workload violates the control" if found else "no workload violates the control"
        return ""

    def page_values(self) -> dict[str, str]:
        """The time, and the true answers for scripted agents."""
        wire = datetime.datetime.fromtimestamp(self.pacer.to_wire(self.pacer.now()), datetime.UTC)
        found = truth(self._objects(VISIBLE))
        listed = [{"kind": kind, "namespace": namespace, "name": name} for kind, namespace, name in found]
        return {"at.now": wire.strftime("%H:%M UTC"), "answer.violations": json.dumps(listed)}

    # -- the agent's time ------------------------------------------------------------------------------------------

    @property
    def endpoints(self) -> Endpoints:
        """The visible cluster."""
        return Endpoints(kubeconfig=str(self.plan.private / "kubeconfig-agent"))

    @property
    def ports(self) -> tuple[int, ...]:
        """The visible cluster's port."""
        return (self._port(VISIBLE),)

    def _port(self, name: str) -> int:
        return int(self._servers[name].url.rpartition(":")[2])

    def count_steps(self, step: Callable[[], object]) -> None:
        """Requests past the tools are steps."""
        self.pacer.on_step = step

    async def hand_over(self) -> None:
        """The agent may read what makes pods, and its clock runs."""
        self._file("kubeconfig-agent", self._servers[VISIBLE].kubeconfig(AGENT, (AUDITORS,)))
        self._handed_over = self.pacer.now()
        self.world.noise.seed = self.plan.noise_seed
        self.pacer.go()

    async def submit(self) -> None:
        """The agent's identity ends, the clock stands."""
        self.pacer.stand()
        self._servers[VISIBLE].revoke(AGENT)
        (self.plan.private / "kubeconfig-agent").unlink(missing_ok=True)

    async def settle(self, seconds: float) -> None:
        """Let time pass; then everything that runs an engine or a script of the agent happens here."""
        self.pacer.pass_time(seconds)
        self._matrix = await self._judge_deliverables()

    async def _judge_deliverables(self) -> dict[str, Any]:
        script, text = (deliverable(self.plan.workspace, name) for name in (SCRIPT, POLICY))
        gathered = [(name, await self._run(name, script)) for name in ("main", "second", "partial", "unreachable")]
        rows, runs = await asyncio.to_thread(self._evaluate, text, gathered)
        given = {
            Path(name).name: _digest((self.plan.folder / name).read_text()) for name in self.plan.scenario.task.files
        }
        delivered = {SCRIPT: _digest(script), POLICY: _digest(text)}
        return {"engine": engine_name(), "given": given, "delivered": delivered, "fixtures": rows, "runs": runs}

    async def _run(self, name: str, script: str | None) -> Collected:
        if script is None:
            return Collected(cause="artifact_error", detail=f"{SCRIPT} is missing or no text")
        cluster = name if name in self.names else VISIBLE if name == "unreachable" else self.names[-1]
        group = PARTIAL if name == "partial" else AUDITORS
        server = self._servers[cluster]
        kubeconfig, port = server.kubeconfig(COLLECTOR, (group,)), self._port(cluster)
        if name == "unreachable":
            kubeconfig, port = kubeconfig.replace(server.url, NOWHERE), 1
        attempt = self.plan.private / "collect" / name
        try:
            return await collect(script, kubeconfig, port, attempt)
        finally:
            server.revoke(COLLECTOR)

    def _evaluate(self, text: str | None, gathered: list[tuple[str, Collected]]) -> tuple[list[Obj], list[Obj]]:
        matrix = fixtures(self.plan.seed)
        if text is None:
            gone = Evaluation(cause="artifact_error", detail=f"{POLICY} is missing or no text")
            return judge(lambda given: gone, matrix), [self._run_row(name, it, gone) for name, it in gathered]
        with policy(text, RULE) as rego:
            rows = judge(rego.evaluate, matrix)
            return rows, [self._run_row(name, it, rego.evaluate(it.data)) for name, it in gathered]

    def _run_row(self, name: str, it: Collected, came: Evaluation) -> Obj:
        """One run of script and policy: what was to come out, what did, which objects were not collected."""
        row: Obj = {
            "id": name,
            "exit": it.exit,
            "cause": it.cause or came.cause,
            "detail": it.detail or came.detail[:300],
        }
        state, seen = row["cause"], NONE
        if not row["cause"]:
            try:
                state, seen = result_of(came.value)
            except ValueError as error:
                row |= {"cause": "artifact_error", "detail": str(error)}
                state = "artifact_error"
        row |= {"state": state, "seen": [list(each) for each in seen]}
        if name in ("partial", "unreachable"):
            return {
                **row,
                "expected": "not_assessed",
                "violations": [],
                "missing": [],
                "right": state == "not_assessed",
            }
        objects = self._objects(name if name in self.names else VISIBLE)
        wanted, missing = truth(objects), sorted(_subjects(objects) - _collected(it.data))
        expected = "not_satisfied" if wanted else "satisfied"
        right = not row["cause"] and not missing and state == expected and seen == wanted
        listed = {"violations": [list(each) for each in wanted], "missing": [list(each) for each in missing[:20]]}
        return {**row, "expected": expected, **listed, "right": right}

    async def challenge(self) -> bool:
        """The hidden cluster and the failing ones are part of settling."""
        return False

    async def revert(self) -> None:
        """Nothing was injected: the defects are the objects' own."""

    # -- records ---------------------------------------------------------------------------------------------------

    def times(self) -> dict[str, float]:
        """The violation is there from the start."""
        return {"symptom": round(self.pacer.now(), 6)}

    def snapshot(self) -> Snapshot:
        """Workloads of the visible cluster."""
        objects = {resource: [plain(obj) for obj in items] for resource, items in self._objects(VISIBLE).items()}
        return Snapshot(t=self.pacer.now(), objects=objects)

    async def records(self) -> Records:
        """The agent's writes, and the matrix of verdicts."""
        audit = self.world.planes[VISIBLE].audit
        writes = [
            to_write(record)
            for record in audit
            if (record.user == AGENT or record.user.startswith(ACCOUNTS))
            and record.writes
            and record.time >= self._handed_over
            and record.subresource not in NO_CHANGE
            and not only_asks(record.resource)
        ]
        return Records(writes=writes, facts={"matrix": self._matrix})


def _digest(text: str | None) -> str:
    return "" if text is None else hashlib.sha256(text.encode()).hexdigest()


def _subjects(objects: Objects) -> set[tuple[str, str, str]]:
    """Everything that is or makes pods."""
    return {
        (obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        for resource in WORKLOADS
        for obj in objects[resource]
    }


def _collected(data: Any) -> set[tuple[str, str, str]]:
    items = data.get("items") if isinstance(data, dict) else None
    found = set()
    for item in items if isinstance(items, list) else ():
        meta = item.get("metadata") if isinstance(item, dict) else None
        if isinstance(meta, dict):
            found.add((str(item.get("kind")), str(meta.get("namespace", "")), str(meta.get("name", ""))))
    return found


def make(plan: Plan) -> ClustersDriver:
    """The driver of one trial."""
    return ClustersDriver(plan)
