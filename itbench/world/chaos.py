"""Chaos Mesh in the model: StressChaos (cpu, memory) and PodChaos act on containers as the real experiments do.

The estate calls `step` with the changes of a cluster; `stolen` says what stress takes from a container's CPU.
"""

from dataclasses import dataclass, field
from math import inf
from typing import Any

from itbench.core.clock import rfc3339
from itbench.core.documents.base import seconds
from itbench.core.ids import digest
from itbench.kube.client import ApiError, Change, Obj
from itbench.kube.quantity import parse_quantity
from itbench.kube.selectors import matches
from itbench.kube.status import by_policy
from itbench.world import plain
from itbench.world.cluster import Cluster
from itbench.world.kubelet.state import PodState

STRESS = "stresschaos.chaos-mesh.org"
POD = "podchaos.chaos-mesh.org"


@dataclass
class Experiment:
    """One running or ended experiment. `targets` are (pod uid, container)."""

    resource: str
    namespace: str
    name: str
    until: float = inf
    action: str = ""
    cores: float = 0.0
    memory_mb: float = 0.0
    targets: list[tuple[str, str]] = field(default_factory=list)
    running: bool = True


class Chaos:
    """The experiments of one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.experiments: dict[str, Experiment] = {}

    def due(self) -> float:
        """World second at which the next experiment ends."""
        return min((e.until for e in self.experiments.values() if e.running), default=inf)

    def step(self, changes: list[Change], now: float) -> bool:
        """Begin, end and forget experiments; returns whether anything changed."""
        acted = False
        for change in changes:
            if change.resource not in (STRESS, POD):
                continue
            uid = change.object["metadata"]["uid"]
            if change.type == "DELETED" or change.object["metadata"].get("deletionTimestamp"):
                acted = self._forget(uid, now) or acted
            elif uid not in self.experiments:
                self._begin(uid, change.resource, change.object, now)
                acted = True
        for experiment in self.experiments.values():
            if experiment.running and experiment.until <= now:
                self._recover(experiment, now)
                self._report(experiment, now)
                acted = True
        return acted

    def stolen(self, pod: PodState, container: str, limit: float) -> float:
        """Cores that stress takes from a container, at most its limit."""
        if not self.experiments:
            return 0.0
        taken = sum(
            e.cores for e in self.experiments.values() if e.running and e.cores and (pod.uid, container) in e.targets
        )
        return min(taken, limit)

    def memory_mb(self, pod: PodState, container: str) -> float:
        """MiB that stress holds in a container."""
        if not self.experiments:
            return 0.0
        held = [e.memory_mb for e in self.experiments.values() if e.running and (pod.uid, container) in e.targets]
        return sum(held)

    # ---- life of an experiment

    def _begin(self, uid: str, resource: str, obj: Obj, now: float) -> None:
        spec, meta = obj["spec"], obj["metadata"]
        experiment = Experiment(resource, meta.get("namespace", ""), meta["name"])
        duration = spec.get("duration")
        experiment.until = now + seconds(duration) if duration else inf
        experiment.targets = self._targets(uid, obj)
        self.experiments[uid] = experiment
        if resource == STRESS:
            _read_stress(experiment, spec.get("stressors") or {})
        else:
            experiment.action = spec.get("action", "")
            self._act(experiment, spec, now)
        self._report(experiment, now)

    def _act(self, experiment: Experiment, spec: Obj, now: float) -> None:
        if experiment.action == "pod-kill":
            for pod in self._pods(experiment):
                self._delete(pod, int(spec.get("gracePeriod") or 0))
            experiment.until = now
        elif experiment.action == "container-kill":
            for pod in self._pods(experiment):
                for uid, name in experiment.targets:
                    if uid == pod.uid:
                        self.cluster.kubelets.kill_container(pod, pod.containers[name], now, 137, "Error")
            experiment.until = now
        elif experiment.action == "pod-failure":
            for pod in self._pods(experiment):
                self.cluster.kubelets.freeze(pod, experiment.until, now)

    def _delete(self, pod: PodState, grace_s: int) -> None:
        try:
            self.cluster.client.delete("pods", pod.name, pod.namespace, grace_s=grace_s, uid=pod.uid)
        except ApiError as error:
            if error.code not in (404, 409) and not by_policy(error):
                raise

    def _recover(self, experiment: Experiment, now: float) -> None:
        experiment.running = False
        if experiment.action == "pod-failure":
            for pod in self._pods(experiment):
                self.cluster.kubelets.freeze(pod, now, now)

    def _forget(self, uid: str, now: float) -> bool:
        experiment = self.experiments.pop(uid, None)
        if experiment is not None and experiment.running:
            self._recover(experiment, now)
        return experiment is not None

    def _pods(self, experiment: Experiment) -> list[PodState]:
        uids = dict.fromkeys(uid for uid, _ in experiment.targets)
        return [self.cluster.kubelets.pods[uid] for uid in uids if uid in self.cluster.kubelets.pods]

    # ---- selection and status

    def _targets(self, uid: str, obj: Obj) -> list[tuple[str, str]]:
        spec = obj["spec"]
        chosen = [pod for pod in self.cluster.objects.all("pods") if _selected(pod, spec.get("selector") or {}, obj)]
        living = [pod for pod in chosen if pod["metadata"]["uid"] in self.cluster.kubelets.pods]
        living = living[: _count(spec, len(living))] if spec.get("mode", "all") != "one" else _one(uid, living)
        found: list[tuple[str, str]] = []
        for pod in living:
            names = [c["name"] for c in pod["spec"]["containers"]]
            wanted = spec.get("containerNames") or names[:1]
            found += [(pod["metadata"]["uid"], name) for name in wanted if name in names]
        return found

    def _report(self, experiment: Experiment, now: float) -> None:
        on = experiment.running
        kinds = {"Selected": bool(experiment.targets), "AllInjected": on, "AllRecovered": not on, "Paused": False}
        records = []
        for uid, container in experiment.targets:
            pod = self.cluster.kubelets.pods.get(uid)
            where = f"{pod.namespace}/{pod.name}" if pod else uid
            event = {"operation": "Apply" if on else "Recover", "timestamp": rfc3339(now), "type": "Succeeded"}
            records.append(
                {
                    "id": f"{where}/{container}" if experiment.resource == STRESS else where,
                    "selectorKey": ".",
                    "phase": "Injected" if on else "Not Injected",
                    "injectedCount": 1,
                    "recoveredCount": 0 if on else 1,
                    "events": [event],
                }
            )
        status = {
            "conditions": [{"type": kind, "status": "True" if value else "False"} for kind, value in kinds.items()],
            "experiment": {"desiredPhase": "Run" if on else "Stop", "containerRecords": records},
        }
        try:
            self.cluster.client.patch(
                experiment.resource, experiment.name, experiment.namespace, {"status": status}, subresource="status"
            )
        except ApiError as error:
            if error.code != 404 and not by_policy(error):
                raise

    # ---- checkpoints

    def save(self) -> dict[str, Any]:
        """State as plain data."""
        return {uid: plain.pack(experiment) for uid, experiment in self.experiments.items()}

    def restore(self, data: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self.experiments = {uid: plain.unpack(Experiment, saved) for uid, saved in data.items()}


def _read_stress(experiment: Experiment, stressors: Obj) -> None:
    cpu, memory = stressors.get("cpu") or {}, stressors.get("memory") or {}
    if cpu:
        experiment.cores = float(cpu.get("workers") or 1) * float(cpu.get("load") or 100) / 100
    if memory:
        size = str(memory.get("size") or "0").upper().removesuffix("B")
        unit = {"K": "Ki", "M": "Mi", "G": "Gi"}.get(size[-1:], "")
        number = size[:-1] + unit if unit else size
        experiment.memory_mb = float(memory.get("workers") or 1) * float(parse_quantity(number)) / 2**20


def _selected(pod: Obj, selector: Obj, obj: Obj) -> bool:
    meta = pod["metadata"]
    namespace = meta.get("namespace", "")
    named = selector.get("pods")
    if named:
        return meta["name"] in (named.get(namespace) or ())
    if namespace not in (selector.get("namespaces") or [obj["metadata"].get("namespace", "")]):
        return False
    if selector.get("nodes") and pod["spec"].get("nodeName") not in selector["nodes"]:
        return False
    wanted = {
        "matchLabels": selector.get("labelSelectors") or {},
        "matchExpressions": selector.get("expressionSelectors") or [],
    }
    annotations = meta.get("annotations") or {}
    same = all(annotations.get(key) == value for key, value in (selector.get("annotationSelectors") or {}).items())
    phases = selector.get("podPhaseSelectors")
    if phases and (pod.get("status") or {}).get("phase") not in phases:
        return False
    return same and matches(wanted, meta.get("labels")) and not meta.get("deletionTimestamp")


def _one(uid: str, pods: list[Obj]) -> list[Obj]:
    """One pod, drawn from the experiment's uid."""
    return [pods[digest(uid)[0] % len(pods)]] if pods else []


def _count(spec: Obj, total: int) -> int:
    mode, value = spec.get("mode", "all"), float(spec.get("value") or 0)
    if mode == "fixed":
        return min(int(value), total)
    if mode in ("fixed-percent", "random-max-percent"):
        return int(total * value / 100)
    return total
