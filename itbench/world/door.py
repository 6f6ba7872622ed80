"""The world as the API server and the telemetry servers see it: logs, exec, connections, metrics of pods and nodes.

Implements `itbench.kube.door.NodeDoor` for one cluster, and the log source of Loki. Errors carry a real kubelet's texts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from itbench.core.clock import rfc3339
from itbench.kube.client import ApiError, Obj
from itbench.kube.door import LogQuery, Request, Response, Session
from itbench.kube.status import failure
from itbench.telemetry.labels import Labels, freeze
from itbench.world.cluster import Cluster
from itbench.world.images import Image
from itbench.world.kubelet.kubelets import specs_of
from itbench.world.kubelet.state import ContainerState, PodState, Run
from itbench.world.logs import Line, Logbook
from itbench.world.sessions import ExecSession, ForwardSession
from itbench.world.usage import Usage


def _bad(message: str) -> ApiError:
    return failure(400, "BadRequest", message)


class Door:
    """The kubelets' doors of one cluster.

    Args:
        cluster: the cluster.
        logbook: draws log lines.
        usage: CPU and memory of containers.
    """

    def __init__(self, cluster: Cluster, logbook: Logbook, usage: Usage) -> None:
        self.cluster, self.logbook, self.usage = cluster, logbook, usage

    # ---- lookups

    def _pod(self, namespace: str, name: str) -> tuple[Obj, PodState]:
        obj = self.cluster.objects.get("pods", namespace, name)
        if obj is None:
            raise failure(404, "NotFound", f'pods "{name}" not found')
        state = self.cluster.kubelets.pods.get(obj["metadata"]["uid"])
        if state is None:
            if not obj["spec"].get("nodeName"):
                raise _bad(f"pod {name} does not have a host assigned")
            raise failure(404, "NotFound", f'pods "{name}" not found')
        return obj, state

    def _container(self, obj: Obj, pod: PodState, name: str) -> ContainerState:
        found = pod.containers.get(name or obj["spec"]["containers"][0]["name"])
        if found is None:
            raise _bad(f"container {name} is not valid for pod {pod.name}")
        return found

    def _image(self, obj: Obj, container: ContainerState) -> Image | None:
        return self.cluster.registry.find(specs_of(obj)[container.name].get("image", ""))

    # ---- logs

    def logs(self, query: LogQuery) -> list[Line]:
        """Lines with the world second of each, oldest first."""
        obj, pod = self._pod(query.namespace, query.pod)
        container = self._container(obj, pod, query.container)
        run = self._run(pod, container, previous=query.previous)
        image = self._image(obj, container)
        if image is None:
            return []
        start = query.since if query.since is not None else -inf
        end = min(self.cluster.now + 1e-9, query.until if query.until is not None else inf)
        workload = self.cluster.objects.workload_of(obj)
        if query.tail is not None and query.since is None:
            return self._tail(query.tail, pod, container, image, workload, run, end)
        found = self.logbook.lines(pod, container, image.program, workload, run, (start, end))
        return found if query.tail is None else found[len(found) - min(query.tail, len(found)) :]

    def _tail(
        self, count: int, pod: PodState, container: ContainerState, image: Image, workload: str, run: Run, end: float
    ) -> list[Line]:
        """The last lines, drawn from a window that grows backwards until it holds enough."""
        window = 60.0
        while True:
            span = (end - window, end)
            found = self.logbook.lines(pod, container, image.program, workload, run, span)
            if len(found) >= count or span[0] <= run.start:
                return found[len(found) - min(count, len(found)) :]
            window *= 4

    def _run(self, pod: PodState, container: ContainerState, *, previous: bool) -> Run:
        if previous:
            lives = container.runs[:-1] if container.running else container.runs
            if container.running or container.phase == "exited":
                lives = container.runs[:-1]
            if not lives:
                raise _bad(f'previous terminated container "{container.name}" in pod "{pod.name}" not found')
            return lives[-1]
        if not container.runs:
            why = f"waiting to start: {container.reason}"
            if container.reason in ("ErrImagePull", "ImagePullBackOff"):
                why = "waiting to start: trying and failing to pull image"
            raise _bad(f'container "{container.name}" in pod "{pod.name}" is {why}')
        return container.runs[-1]

    def streams(self, start: float, end: float) -> Sequence["PodStream"]:
        """Log streams of all containers that lived in [start, end), for Loki."""
        found: list[PodStream] = []
        for pod in self.cluster.kubelets.pods.values():
            obj = self.cluster.objects.get("pods", pod.namespace, pod.name)
            if obj is None:
                continue
            for container in pod.containers.values():
                image = self._image(obj, container)
                if image is not None and any(run.start < end and run.end >= start for run in container.runs):
                    found.append(
                        PodStream(self, obj, pod, container, image, _stream_labels(self.cluster, obj, pod, container))
                    )
        return found

    # ---- exec and connections

    def exec(
        self, namespace: str, pod: str, container: str, argv: list[str], *, stdin: bool = False, tty: bool = False
    ) -> Session:
        """Start a command in a container."""
        obj, state = self._pod(namespace, pod)
        inner = self._container(obj, state, container)
        if not inner.running or state.frozen_until > self.cluster.now:
            raise failure(500, "InternalError", f'unable to upgrade connection: container not found ("{inner.name}")')
        if not argv:
            raise _bad("you must specify at least one command for the container")
        return ExecSession(self.cluster.inside(state, inner), argv, stdin=stdin, tty=tty)

    def connect(self, namespace: str, pod: str, port: int) -> Session:
        """Open a connection to a port of a pod."""
        obj, state = self._pod(namespace, pod)
        listen = next((item for number, item, _ in self.cluster.listeners(state) if number == port), None)
        if listen is None:
            refused = f"dial tcp4 127.0.0.1:{port}: connect: connection refused"
            text = f"failed to connect to localhost:{port} inside namespace, IPv4: {refused}"
            raise failure(500, "InternalError", text)
        return ForwardSession(
            lambda request: self.cluster.serve(state, port, request),
            lambda argv: self.cluster.redis_from(obj, "localhost", port, argv)[0],
            is_redis=listen.protocol == "redis",
        )

    def http(self, host: str, port: int, request: Request, *, source: str = "") -> tuple[Response | None, str]:
        """A request to a Service name or pod address; `source` is `namespace/pod`, empty for a client outside."""
        namespace, _, name = source.partition("/")
        obj = self.cluster.objects.get("pods", namespace, name) if name else None
        return self.cluster.request_from(obj, host, port, request)

    # ---- metrics.k8s.io

    def pod_metrics(self, namespace: str = "") -> list[dict[str, Any]]:
        """PodMetrics of the pods that run for at least a scrape interval."""
        found = []
        for pod in self.cluster.kubelets.pods.values():
            obj = self.cluster.objects.get("pods", pod.namespace, pod.name)
            rows = self.usage.containers_of(pod)
            if obj is None or not rows or (namespace and pod.namespace != namespace):
                continue
            meta = {"name": pod.name, "namespace": pod.namespace, "creationTimestamp": rfc3339(self.cluster.now)}
            if obj["metadata"].get("labels"):
                meta["labels"] = obj["metadata"]["labels"]
            containers = [{"name": name, "usage": _amounts(cpu, memory)} for name, cpu, memory in rows]
            found.append(self._metrics("PodMetrics", meta, {"containers": containers}))
        return sorted(found, key=lambda item: (item["metadata"]["namespace"], item["metadata"]["name"]))

    def node_metrics(self) -> list[dict[str, Any]]:
        """NodeMetrics of all nodes."""
        found = []
        for name in self.cluster.nodes.names:
            meta = {"name": name, "creationTimestamp": rfc3339(self.cluster.now)}
            found.append(self._metrics("NodeMetrics", meta, {"usage": _amounts(*self.usage.node(name))}))
        return found

    def _metrics(self, kind: str, meta: Obj, more: Obj) -> Obj:
        return {
            "kind": kind,
            "apiVersion": "metrics.k8s.io/v1beta1",
            "metadata": meta,
            "timestamp": rfc3339(self.usage.at),
            "window": "15s",
            **more,
        }


def _amounts(cpu: float, memory_mb: float) -> dict[str, str]:
    return {"cpu": f"{round(cpu * 1e9)}n", "memory": f"{round(memory_mb * 1024)}Ki"}


def _stream_labels(cluster: Cluster, obj: Obj, pod: PodState, container: ContainerState) -> Labels:
    workload = cluster.objects.workload_of(obj).rsplit("/", 1)[-1]
    app = (obj["metadata"].get("labels") or {}).get("app.kubernetes.io/name") or workload
    values = {
        "app": app,
        "container": container.name,
        "job": f"{pod.namespace}/{workload}",
        "namespace": pod.namespace,
        "node_name": pod.node,
        "pod": pod.name,
        "service_name": app,
    }
    return freeze(values)


@dataclass(frozen=True, slots=True)
class PodStream:
    """The log of one container, for Loki."""

    door: Door
    obj: Obj
    pod: PodState
    container: ContainerState
    image: Image
    labels: Labels

    def lines(self, start: float, end: float) -> Iterator[Line]:
        """Lines in [start, end), oldest first."""
        workload = self.door.cluster.objects.workload_of(self.obj)
        for run in self.container.runs:
            yield from self.door.logbook.lines(
                self.pod, self.container, self.image.program, workload, run, (start, end)
            )
