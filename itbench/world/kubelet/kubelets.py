"""All kubelets of one cluster: takes over pods that were scheduled, steps them, writes what changed, removes what was deleted.

The estate calls `observe` with the changes of the control plane and `run` at every moment; `due` says when the next one is.
"""

from collections.abc import Callable
from math import inf
from typing import Any

from itbench.core.clock import rfc3339
from itbench.core.errors import ItbenchError
from itbench.kube.client import ApiError, Change, Client, Obj
from itbench.kube.events import Recorder
from itbench.kube.status import by_policy
from itbench.world import plain
from itbench.world.images import Registry
from itbench.world.kubelet import admission, probes, volumes
from itbench.world.kubelet.containers import Care, jitter, restarts
from itbench.world.kubelet.nodes import Nodes
from itbench.world.kubelet.state import ContainerState, PodState
from itbench.world.kubelet.status import pod_status
from itbench.world.objects import Objects
from itbench.world.shell.machine import Machine

MAX_MOUNT_BACKOFF_S = 122.0
LISTS = {
    "main": "containers",
    "init": "initContainers",
    "sidecar": "initContainers",
    "ephemeral": "ephemeralContainers",
}
"""Where in a pod's spec a kind of container is declared."""
RETRY_S = 10.0
"""After which a kubelet tries a write again that a webhook or policy refused."""
REFRESH_S = 60.0
"""How long a mounted ConfigMap's files lag behind the object (sync period and cache)."""


class Kubelets:
    """The nodes' agents.

    Args:
        client: writes status and events.
        objects: the mirror, updated by the estate before each `run`.
        registry: where images come from.
        nodes: the node objects.
    """

    def __init__(self, client: Client, objects: Objects, registry: Registry, nodes: Nodes) -> None:
        self.client, self.objects, self.registry, self.nodes = client, objects, registry, nodes
        self.pods: dict[str, PodState] = {}
        self.care = Care(self)
        self.prober: probes.Prober
        self.inside: Callable[[PodState, ContainerState], Machine]
        self.reach: Callable[[PodState, str, int], str]
        self.now = 0.0
        self._images: dict[str, list[str]] = {}
        self._next_ip: dict[str, int] = {}
        self._refresh: dict[str, float] = {}
        self._recorders: dict[str, Recorder] = {}
        self._dirty: set[str] = set()
        self.disks: dict[str, volumes.Files] = {}
        """`node:folder` -> files that pods wrote there through hostPath volumes."""
        self.gone: list[PodState] = []
        """Pods that ended since the estate last looked (it resets their queues)."""

    # ---- what containers ask of their node

    def event(
        self, pod: PodState, obj: Obj, kind: str, reason: str, message: str, container: ContainerState | None
    ) -> None:
        """An event about a pod or one of its containers."""
        path = ""
        if container is not None:
            path = f"spec.{LISTS[container.kind]}{{{container.name}}}"
        self._recorder(pod.node).event(self.now, obj, kind, reason, message, field_path=path)

    def _recorder(self, node: str) -> Recorder:
        if node not in self._recorders:
            self._recorders[node] = Recorder(self.client, "kubelet", node)
        return self._recorders[node]

    def cached(self, node: str, image: str) -> bool:
        """Whether the node has the image."""
        return image in self._images.get(node, ())

    def cache(self, node: str, image: str) -> None:
        """Remember a pulled image."""
        self._images.setdefault(node, []).append(image)

    def machine(self, pod: PodState, container: ContainerState) -> Machine:
        """The inside of a container."""
        return self.inside(pod, container)

    def dial(self, pod: PodState, host: str, port: int) -> str:
        """Reachability from a pod."""
        return self.reach(pod, host, port)

    # ---- the estate's calls

    def observe(self, changes: list[Change], now: float) -> None:
        """Take over new pods, notice deletions and edits, plan refreshes of mounted ConfigMaps."""
        for change in changes:
            if change.resource == "pods":
                self._pod_changed(change, now)
            elif change.resource in ("configmaps", "secrets") and change.type != "DELETED":
                self._source_changed(change, now)

    def _pod_changed(self, change: Change, now: float) -> None:
        obj = change.object
        uid, node = obj["metadata"]["uid"], obj["spec"].get("nodeName")
        known = self.pods.get(uid)
        if change.type == "DELETED":
            if known is not None:
                self._forget(known)
            return
        if known is None:
            if node and self.nodes.owns(node) and obj.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
                self.pods[uid] = self._accept(obj, node, now, bound=change.type == "MODIFIED")
            return
        stopping = obj["metadata"].get("deletionTimestamp") and known.stage not in ("stopping", "ended")
        if stopping or (change.previous or {}).get("spec") != obj["spec"]:
            known.until = min(known.until, now)
            self._dirty.add(uid)

    def _accept(self, obj: Obj, node: str, now: float, *, bound: bool) -> PodState:
        pod = _begin(obj, node, now)
        host = self.objects.get("nodes", "", node)
        if host is not None and not bound:
            others = [self._object(other) for other in self.pods.values() if other.node == node]
            pod.refused = admission.refusal(obj, host, [other for other in others if other is not None])
        if pod.refused[0]:
            pod.until = now + admission.REFUSED_AFTER_S
        return pod

    def _refuse(self, pod: PodState, obj: Obj, now: float) -> None:
        """Say that the node does not take the pod, and forget it."""
        self.event(pod, obj, "Warning", *pod.refused, None)
        status = admission.refused_status(obj, *pod.refused, rfc3339(now))
        self._put_status(pod, obj, status, now)
        pod.stage, pod.until = "ended", inf
        self.pods.pop(pod.uid, None)

    def _source_changed(self, change: Change, now: float) -> None:
        namespace, name = change.object["metadata"].get("namespace", ""), change.object["metadata"]["name"]
        for pod in self.pods.values():
            obj = self._object(pod) if pod.namespace == namespace and pod.stage not in ("stopping", "ended") else None
            if obj is None or not volumes.uses(obj, change.resource, name):
                continue
            if pod.stage != "volumes":
                self._refresh.setdefault(pod.uid, now + REFRESH_S * (0.5 + 0.5 * jitter(pod, "refresh")))

    def _forget(self, pod: PodState) -> None:
        self.pods.pop(pod.uid, None)
        self._refresh.pop(pod.uid, None)
        self._dirty.discard(pod.uid)
        if pod.stage != "ended":
            pod.stage = "ended"
            self.gone.append(pod)

    def _object(self, pod: PodState) -> Obj | None:
        obj = self.objects.get("pods", pod.namespace, pod.name)
        return obj if obj is not None and obj["metadata"]["uid"] == pod.uid else None

    def due(self) -> float:
        """World second at which some pod wants attention."""
        first = min((pod.until for pod in self.pods.values()), default=inf)
        return min(first, min(self._refresh.values(), default=inf))

    def busy(self) -> bool:
        """Whether a pod is on its way to running or gone (waiting out a back-off is rest, not work)."""
        return any(_moving(pod, self.now) for pod in self.pods.values())

    def wake_probes(self) -> None:
        """Something in the model changed that probes may see."""
        for pod in self.pods.values():
            obj = self._object(pod)
            if obj is None or pod.stage not in ("init", "main"):
                continue
            specs = specs_of(obj)
            for container in pod.containers.values():
                if container.running and container.probes:
                    probes.wake(container, self.now, specs[container.name])
                    container.until = min(container.until, probes.due(container))
                    pod.until = min(pod.until, container.until)

    def run(self, now: float) -> bool:
        """Step every pod that is due; returns whether anything was done."""
        self.now = now
        stale = [uid for uid, at in self._refresh.items() if at <= now]
        for uid in stale:
            del self._refresh[uid]
            self._reload(uid)
        due = [pod for pod in self.pods.values() if pod.until <= now or pod.uid in self._dirty]
        self._dirty.clear()
        for pod in due:
            obj = self._object(pod)
            if obj is None:
                self._forget(pod)
                continue
            self._step(pod, obj, now)
        return bool(due or stale)

    def _host_files(self, obj: Obj, pod: PodState) -> dict[str, volumes.Files]:
        """The folders of its node that a pod mounts: all pods there share them."""
        rows = ((row["name"], row["hostPath"]["path"]) for row in obj["spec"].get("volumes") or () if "hostPath" in row)
        return {name: self.disks.setdefault(f"{pod.node}:{path}", {}) for name, path in rows}

    def rebind(self) -> None:
        """After a restore: pods share the folders of their node again."""
        for pod in self.pods.values():
            obj = self._object(pod)
            if obj is not None and pod.stage != "volumes":
                pod.volumes |= self._host_files(obj, pod)

    def _reload(self, uid: str) -> None:
        pod = self.pods.get(uid)
        obj = self._object(pod) if pod else None
        if pod is None or obj is None:
            return
        try:
            fresh = volumes.load(self.objects, obj, pod)
        except volumes.MissingSource:
            return
        pod.volumes = {**fresh, **self._host_files(obj, pod)}

    # ---- one pod

    def _step(self, pod: PodState, obj: Obj, now: float) -> None:
        if pod.refused[0] and not obj["metadata"].get("deletionTimestamp"):
            self._refuse(pod, obj, now)
            return
        if obj["metadata"].get("deletionTimestamp") and pod.stage not in ("stopping", "ended"):
            self._stop(pod, obj, now)
        if pod.stage == "volumes":
            self._mount(pod, obj, now)
        if pod.stage == "sandbox" and pod.sandbox_at <= now:
            pod.ip, pod.stage = self._address(pod.node), "init"
        if pod.stage == "init":
            self._initialise(pod, obj, now)
        if pod.stage in ("init", "main"):
            self._pump(pod, obj, now)
        if pod.stage == "stopping":
            self._stopping(pod, obj, now)
            return
        self._write(pod, obj, now)

    def _mount(self, pod: PodState, obj: Obj, now: float) -> None:
        try:
            pod.volumes = {**volumes.load(self.objects, obj, pod), **self._host_files(obj, pod)}
        except volumes.MissingSource as missing:
            text = f'MountVolume.SetUp failed for volume "{missing.volume}" : {missing}'
            self.event(pod, obj, "Warning", "FailedMount", text, None)
            pod.until = now + pod.mount_backoff_s
            pod.mount_backoff_s = min(2 * pod.mount_backoff_s, MAX_MOUNT_BACKOFF_S)
            return
        pod.stage, pod.sandbox_at = "sandbox", now + 0.3 + 0.4 * jitter(pod, "sandbox")
        pod.until = pod.sandbox_at

    def _address(self, node: str) -> str:
        self._next_ip[node] = self._next_ip.get(node, 1) + 1
        return self.nodes.pod_address(node, self._next_ip[node])

    def _initialise(self, pod: PodState, obj: Obj, now: float) -> None:
        """Init containers, one after the other; sidecars only have to start."""
        specs = specs_of(obj)
        for container in [c for c in pod.containers.values() if c.kind in ("init", "sidecar")]:
            self.care.pump(pod, obj, container, specs[container.name], now)
            done = container.running and container.started
            if container.kind == "init":
                done = container.phase == "exited" and container.ended is not None and container.ended.exit_code == 0
                failed = container.phase == "exited" and not done
                if failed and not restarts(obj, container, specs[container.name]):
                    pod.until = inf
                    return
            if not done:
                pod.until = container.until
                return
        pod.stage = "main"

    def _pump(self, pod: PodState, obj: Obj, now: float) -> None:
        specs = specs_of(obj)
        for name in [row["name"] for row in obj["spec"].get("ephemeralContainers") or ()]:
            if name not in pod.containers:  # `kubectl debug` adds them to running pods
                pod.containers[name] = ContainerState(name, "ephemeral")
        running = [c for c in pod.containers.values() if c.kind == "sidecar" and c.phase != "new"]
        running += [c for c in pod.containers.values() if c.kind == "ephemeral"]
        if pod.stage == "main":
            running += [c for c in pod.containers.values() if c.kind == "main"]
        frozen = pod.frozen_until > now
        for container in running:
            if not frozen:
                self.care.pump(pod, obj, container, specs[container.name], now)
        times = [c.until for c in running]
        if pod.stage == "init":
            times.append(pod.until)
        pod.until = max(pod.frozen_until, now) if frozen else min(times, default=inf)

    def _stop(self, pod: PodState, obj: Obj, now: float) -> None:
        """Begin graceful termination."""
        grace = obj["metadata"].get("deletionGracePeriodSeconds")
        grace = 30.0 if grace is None else float(grace)
        specs, longest = specs_of(obj), 0.05
        for container in pod.containers.values():
            if container.running:
                self.event(pod, obj, "Normal", "Killing", f"Stopping container {container.name}", container)
                image = self.registry.find(specs[container.name].get("image", ""))
                needed = (image.program.stop_s if image else 0.1) + _pre_stop_s(specs[container.name])
                longest = max(longest, needed)
        pod.stage, pod.stop_at = "stopping", now + min(longest, max(grace, 0.05))
        pod.until = pod.stop_at

    def _stopping(self, pod: PodState, obj: Obj, now: float) -> None:
        if now < pod.stop_at:
            pod.until = pod.stop_at
            return
        for container in pod.containers.values():
            # Servers shut down in good order; a script that is at work does not hear the signal and is killed.
            graceful = container.serves_at < inf
            self.care.kill(pod, obj, container, now, *((0, "Completed") if graceful else (137, "Error")))
        pod.stage, pod.until = "ended", inf
        self._write(pod, obj, now)
        self.gone.append(pod)
        try:
            self.client.delete("pods", pod.name, pod.namespace, grace_s=0, uid=pod.uid)
        except ApiError as error:
            if by_policy(error):
                pod.stage, pod.stop_at, pod.until = "stopping", now + RETRY_S, now + RETRY_S
                self.gone.remove(pod)
                return
            if error.code not in (404, 409):
                raise ItbenchError(f"kubelet cannot remove pod {pod.namespace}/{pod.name}", seen=str(error)) from error
        self.pods.pop(pod.uid, None)

    def _write(self, pod: PodState, obj: Obj, now: float) -> None:
        status = pod_status(pod, obj, self.nodes.address(pod.node), now)
        if status != pod.written:
            self._put_status(pod, obj, status, now)

    def _put_status(self, pod: PodState, obj: Obj, status: Obj, now: float) -> None:
        try:
            self.client.update("pods", {**obj, "status": status, "metadata": _unversioned(obj)}, subresource="status")
        except ApiError as error:
            if by_policy(error):
                pod.until = min(pod.until, now + RETRY_S)
                return
            if error.code != 404:
                raise ItbenchError(f"kubelet cannot write pod {pod.namespace}/{pod.name}", seen=str(error)) from error
        pod.written = status

    def kill_container(self, pod: PodState, container: ContainerState, now: float, code: int, reason: str) -> None:
        """A container dies from outside: `OOMKilled` by the kernel, `Error` by a signal."""
        obj = self._object(pod)
        if obj is not None:
            self.care.kill(pod, obj, container, now, code, reason)
            pod.until = now

    def freeze(self, pod: PodState, until: float, now: float) -> None:
        """The pod's processes do not run until then (its image is swapped for one that does nothing), then start anew."""
        obj = self._object(pod)
        if obj is None:
            return
        thawing = until <= now and pod.frozen_until > now
        pod.frozen_until = until
        for container in pod.containers.values():
            if thawing or (container.running and until > now):
                self.care.kill(pod, obj, container, now, 137, "Error")
        pod.until = now

    # ---- checkpoints

    def save(self) -> dict[str, Any]:
        """State as plain data."""
        return {
            "pods": [plain.pack(pod) for pod in self.pods.values()],
            "images": {node: list(names) for node, names in self._images.items()},
            "next_ip": dict(self._next_ip),
            "refresh": dict(self._refresh),
            "dirty": sorted(self._dirty),
            "recorders": {node: recorder.save() for node, recorder in self._recorders.items()},
            "nodes": self.nodes.save(),
            "disks": {place: dict(files) for place, files in self.disks.items()},
        }

    def restore(self, data: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self.pods = {item["uid"]: plain.unpack(PodState, item) for item in data["pods"]}
        self._images = {node: list(names) for node, names in data["images"].items()}
        self._next_ip, self._refresh = dict(data["next_ip"]), dict(data["refresh"])
        self._dirty = set(data["dirty"])
        self.disks = {place: dict(files) for place, files in data.get("disks", {}).items()}
        for node, saved in data["recorders"].items():
            self._recorder(node).restore(saved)
        self.nodes.restore(data["nodes"])


def _unversioned(obj: Obj) -> Obj:
    return {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}


def specs_of(obj: Obj) -> dict[str, Obj]:
    """Container specs by name: init containers first, ephemeral ones last."""
    spec = obj["spec"]
    rows = (*(spec.get("initContainers") or ()), *spec["containers"], *(spec.get("ephemeralContainers") or ()))
    return {item["name"]: item for item in rows}


def _begin(obj: Obj, node: str, now: float) -> PodState:
    meta, spec = obj["metadata"], obj["spec"]
    pod = PodState(meta["uid"], meta.get("namespace", ""), meta["name"], node, accepted_at=now, until=now)
    for item in spec.get("initContainers") or ():
        kind = "sidecar" if item.get("restartPolicy") == "Always" else "init"
        pod.containers[item["name"]] = ContainerState(item["name"], kind, reason="PodInitializing")
    waiting = "PodInitializing" if spec.get("initContainers") else "ContainerCreating"
    for item in spec["containers"]:
        pod.containers[item["name"]] = ContainerState(item["name"], "main", reason=waiting)
    return pod


def _moving(pod: PodState, now: float) -> bool:
    if pod.stage in ("sandbox", "stopping") or (pod.stage == "volumes" and pod.mount_backoff_s < 1.0):
        return True
    for container in pod.containers.values():
        if container.running and now < container.serves_at < inf:
            return True
        if container.phase == "pulling" or (container.phase == "new" and pod.stage == "main"):
            return True
        if container.running and (
            container.exit_at < inf
            or (not container.ready and container.kind in ("main", "sidecar") and not _stuck(container))
        ):
            return True
    return False


def _stuck(container: ContainerState) -> bool:
    """Not ready for a reason that does not pass by waiting a moment: probes keep failing, or it waits for others."""
    if container.recheck_at < inf:
        return True
    return any(probe.failed >= 3 for probe in container.probes.values())


def _pre_stop_s(spec: Obj) -> float:
    hook = (spec.get("lifecycle") or {}).get("preStop") or {}
    if "sleep" in hook:
        return float(hook["sleep"].get("seconds") or 0)
    words = (hook.get("exec") or {}).get("command") or []
    text = " ".join(words).split()
    if "sleep" in text and text.index("sleep") + 1 < len(text):
        number = text[text.index("sleep") + 1].strip("'\"s;")
        return float(number) if number.replace(".", "", 1).isdigit() else 0.0
    return 0.0
