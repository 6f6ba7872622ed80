"""One simulated cluster: a control plane, the mirror of its objects, its kubelets and its network, stepped together.

The estate owns one per control plane. This is the `House` that containers live in and the `Prober` that asks the model.
"""

from itertools import pairwise
from typing import Any

from itbench.core.documents.app import App, Listen
from itbench.core.ids import Ids
from itbench.kube.client import Change, Obj
from itbench.kube.door import Request, Response
from itbench.kube.plane import ControlPlane
from itbench.world import agnhost, serving, stores
from itbench.world.dns import Names
from itbench.world.images import Registry, parse_image
from itbench.world.inside import Inside
from itbench.world.kubelet.kubelets import Kubelets, specs_of
from itbench.world.kubelet.nodes import Nodes
from itbench.world.kubelet.state import ContainerState, PodState
from itbench.world.kubelet.volumes import TOKEN, Tree
from itbench.world.objects import Objects
from itbench.world.process import TOOLS, ports_of, running, words_of
from itbench.world.reach import Net, Reach
from itbench.world.shell.interpreter import Io, Shell

MAX_ROUNDS = 200


class Cluster:
    """A control plane with nodes that run pods.

    Args:
        plane: the control plane.
        app: what runs there, for the programs of its images.
        nodes: node names.
        ids: for what nodes draw.
    """

    def __init__(self, plane: ControlPlane, app: App | None, nodes: list[str], ids: Ids) -> None:
        self.plane, self.app = plane, app
        self.client = plane.client("kubelet", "system:kubelet")
        self.objects = Objects(self.client)
        self.registry = Registry(app)
        self.nodes = Nodes(self.client, ids, nodes)
        self.kubelets = Kubelets(self.client, self.objects, self.registry, self.nodes)
        self.kubelets.prober = self
        self.kubelets.inside = self.inside
        self.kubelets.reach = lambda pod, host, port: self.reach_from(self._obj(pod), host, port).verdict
        self.net = Net(self.objects, self._listening, names=Names(self.objects, self.state))
        self.health: serving.Health = lambda workload, operation: 1.0
        self.memory: dict[str, float] = {}
        self.calendar_ahead_s = 0.0
        self.touched = True
        """Something that the flow depends on may have changed; the estate resets it."""

    @property
    def now(self) -> float:
        """World seconds."""
        return self.plane.now

    def start(self) -> None:
        """Create the nodes."""
        self.nodes.register(self.now)

    def step(self, now: float) -> list[Change]:
        """Everything that is due at `now`, controllers and kubelets in turn until both rest; returns what changed."""
        seen: list[Change] = []
        self.nodes.renew(now)
        for _ in range(MAX_ROUNDS):
            self.plane.run(now)
            changes = self.objects.update()
            seen += changes
            self.kubelets.observe(changes, now)
            worked = self.kubelets.run(now)
            self.touched = self.touched or worked
            if not worked and not changes and self.plane.due() > now:
                return seen
        raise RuntimeError(f"cluster {self.plane.name} does not come to rest at {now}")

    def due(self) -> float:
        """World second of the next thing to do."""
        return min(self.plane.due(), self.kubelets.due(), self.nodes.renew_at)

    # ---- lookups

    def _obj(self, pod: PodState) -> Obj | None:
        return self.objects.get("pods", pod.namespace, pod.name)

    def state(self, namespace: str, name: str) -> PodState | None:
        """The kubelet's state of a pod."""
        obj = self.objects.get("pods", namespace, name)
        return self.kubelets.pods.get(obj["metadata"]["uid"]) if obj else None

    def listeners(self, pod: PodState) -> list[tuple[int, Listen, ContainerState]]:
        """(port, declaration, container) of everything that listens in a pod now."""
        found: list[tuple[int, Listen, ContainerState]] = []
        obj = self._obj(pod)
        if obj is None or pod.frozen_until > self.now:
            return found
        specs = specs_of(obj)
        for container in pod.containers.values():
            if not container.running or container.serves_at > self.now:
                continue
            image = self.registry.find(specs[container.name].get("image", ""))
            if image is None:
                continue
            words = words_of(image.program, specs[container.name])
            program = running(image.program, words)
            ports = ports_of(program, container.env, words)
            found += [(port, listen, container) for port, listen in zip(ports, program.listens, strict=True)]
        return found

    def _listening(self, namespace: str, name: str, port: int) -> bool:
        pod = self.state(namespace, name)
        return pod is not None and any(number == port for number, _, _ in self.listeners(pod))

    # ---- House: what containers ask

    def reach_from(self, source: Obj | None, host: str, port: int) -> Reach:
        """Reachability from a pod, or from outside."""
        return self._api_from(source, host, port) or self.net.reach(source, host, port)

    def _api_from(self, source: Obj | None, host: str, port: int) -> Reach | None:
        """What happens to a connection that ends at the API server; None for others, and while nobody serves it."""
        if source is None or self.plane.registry.services.api is None:
            return None
        return self.net.api(source, host, port)

    def token_of(self, pod: Obj, kept: str) -> str:
        """The token that a volume of a pod stands for."""
        lifetime, _, audience = kept.removeprefix(TOKEN).partition(" ")
        make = self.plane.registry.services.pod_token
        return make(pod, audience, int(lifetime)) if make is not None else kept

    def resolve_from(self, source: Obj | None, host: str) -> tuple[str, ...]:
        """Addresses of a name."""
        return self.net.resolve(source, host)

    def request_from(self, source: Obj | None, host: str, port: int, request: Request) -> tuple[Response | None, str]:
        """One HTTP request: the answer, or None and why not."""
        end = self._api_from(source, host, port)
        if end is not None:
            return self._ask_api(end, request)
        reached = self.net.reach(source, host, port)
        if reached.verdict != "ok":
            return None, reached.verdict
        target = reached.targets[0]
        pod = self.state(target.namespace, target.pod)
        assert pod is not None, "only living pods listen"
        response = self.serve(pod, target.port, request)
        if response is not None:
            return response, "ok"
        spoken = next((listen.protocol for number, listen, _ in self.listeners(pod) if number == target.port), "")
        return None, "http2" if spoken == "grpc" else "empty"

    def _ask_api(self, end: Reach, request: Request) -> tuple[Response | None, str]:
        api = self.plane.registry.services.api
        if end.verdict != "ok" or api is None:
            return None, end.verdict
        response = api(request)
        return (response, "ok") if response is not None else (None, "timeout")

    def serve(self, pod: PodState, port: int, request: Request) -> Response | None:
        """The answer of a port of a pod to an HTTP request; None when it does not speak HTTP."""
        obj = self._obj(pod)
        if obj is None:
            return None
        workload = self.objects.workload_of(obj)
        flags = self.app.flags if self.app else None
        for number, listen, container in self.listeners(pod):
            if number != port:
                continue
            if flags and flags.editor and workload == flags.service and container.name == flags.editor.container:
                spec = specs_of(obj)[container.name]
                path = self._flag_file(obj, spec)
                self.touch()
                return serving.edit_flags(
                    flags.model_copy(update={"file": path}), Tree(obj, spec, pod, container, {}), request
                )
            machine = self.inside(pod, container)
            if listen.serves:
                return agnhost.SERVERS[listen.serves](self._visit(pod, container, machine, request))
            found = serving.fixed(listen, machine, request)
            if found is not None:
                return found
            return serving.answer(self.app, workload, container, listen, request, self.health)
        return None

    def _visit(self, pod: PodState, container: ContainerState, machine: Inside, request: Request) -> agnhost.Visit:
        obj = self._obj(pod)
        assert obj is not None, "only living pods listen"
        spec = specs_of(obj)[container.name]
        image = self.registry.find(spec.get("image", ""))
        words = (words_of(image.program, spec) if image else None) or []
        age_s = self.now - container.started_at
        return agnhost.Visit(machine, words, container.data, age_s, request, lambda line: self._shell(machine, line))

    @staticmethod
    def _shell(machine: Inside, line: str) -> tuple[str, int]:
        """Run a command line in a container: (output, exit code)."""
        output: list[str] = []
        steps = Shell(machine, TOOLS).execute(["sh", "-c", line], Io("", lambda fd, text: output.append(text)))
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return "".join(output), int(end.value)

    def _flag_file(self, obj: Obj, editor: Obj) -> str:
        """Where the editor's container sees the file that the flag service serves: the same volume may be mounted elsewhere."""
        assert self.app is not None and self.app.flags is not None
        flags = self.app.flags
        server = specs_of(obj).get(flags.container, {})
        for mount in server.get("volumeMounts") or ():
            base = mount["mountPath"].rstrip("/")
            if flags.file.startswith(base + "/"):
                for other in editor.get("volumeMounts") or ():
                    if other["name"] == mount["name"]:
                        return str(other["mountPath"].rstrip("/") + flags.file[len(base) :])
        return flags.file

    def redis_from(self, source: Obj | None, host: str, port: int, argv: list[str]) -> tuple[str | None, str]:
        """A command to a Redis-like store: the reply, or None and why not."""
        reached = self.net.reach(source, host, port)
        if reached.verdict != "ok":
            return None, reached.verdict
        target = reached.targets[0]
        pod = self.state(target.namespace, target.pod)
        assert pod is not None, "only living pods listen"
        for number, listen, container in self.listeners(pod):
            if number == target.port and listen.protocol == "redis":
                facts = self._store_facts(source, pod, container, target.port)
                return stores.answer(container.data, argv, facts), ""
        return None, "reset"

    def _store_facts(self, source: Obj | None, pod: PodState, container: ContainerState, port: int) -> stores.Facts:
        obj = self._obj(pod)
        assert obj is not None, "only living pods listen"
        spec = specs_of(obj)[container.name]
        image = parse_image(spec.get("image", ""))
        words = [str(word) for word in (*(spec.get("command") or ())[1:], *(spec.get("args") or ()))]
        asker = str((source or {}).get("status", {}).get("podIP") or "127.0.0.1")
        return stores.Facts(
            "valkey" if image is not None and "valkey" in image.repository else "redis",
            image.tag.split("-")[0] if image is not None and image.tag[:1].isdigit() else "7.2.4",
            self.now - container.started_at,
            self.memory_of(pod, container),
            pod.ip,
            port,
            (*self._callers(self.objects.workload_of(obj)), "127.0.0.1" if asker == pod.ip else asker),
            {a.removeprefix("--"): b for a, b in pairwise(words) if a.startswith("--") and not b.startswith("--")},
        )

    def _callers(self, workload: str) -> list[str]:
        """Addresses of the pods that the app's document says call a workload, and that run: they hold connections."""
        services = self.app.services.items() if self.app else ()
        calling = {
            name
            for name, service in services
            if any(call.to == workload for operation in service.operations.values() for call in operation.calls)
        }
        rows = ((pod, self._obj(pod)) for pod in self.kubelets.pods.values() if calling)
        return [
            pod.ip
            for pod, obj in rows
            if obj is not None
            and self.objects.workload_of(obj) in calling
            and any(container.running for container in pod.containers.values())
        ]

    def memory_of(self, pod: PodState, container: ContainerState) -> float:
        """Resident MiB."""
        known = self.memory.get(f"{pod.uid}/{container.name}")
        if known is not None:
            return known
        obj = self._obj(pod)
        image = self.registry.find(specs_of(obj)[container.name].get("image", "")) if obj else None
        return image.program.memory_mb.base if image else 0.0

    def inside(self, pod: PodState, container: ContainerState) -> Inside:
        """A container, seen from inside."""
        obj = self._obj(pod)
        assert obj is not None, "a container belongs to a pod"
        return Inside(self, pod, container, obj)

    # ---- Prober

    def touch(self) -> None:
        """Files or processes changed outside of any API write."""
        self.touched = True
        self.kubelets.wake_probes()

    def check(self, pod: PodState, container: ContainerState, obj: Obj, spec: Obj, probe: Obj) -> str:
        """Empty when a probe succeeds, else the kubelet's text."""
        if "exec" in probe:
            return self._check_exec(pod, container, probe)
        kind = next((name for name in ("httpGet", "tcpSocket", "grpc") if name in probe), "")
        if not kind:
            return ""
        port = _port_number(probe[kind].get("port"), spec)
        up = any(number == port and owner is container for number, _, owner in self.listeners(pod))
        if kind == "httpGet":
            return self._check_http(pod, port, up, probe["httpGet"])
        if up:
            return ""
        if kind == "grpc":
            return f'timeout: failed to connect service "{pod.ip}:{port}" within 1s: context deadline exceeded'
        return f"dial tcp {pod.ip}:{port}: connect: connection refused"

    def _check_http(self, pod: PodState, port: int, up: bool, action: Obj) -> str:
        path = action.get("path") or "/"
        scheme = (action.get("scheme") or "HTTP").lower()
        if not up:
            return f'Get "{scheme}://{pod.ip}:{port}{path}": dial tcp {pod.ip}:{port}: connect: connection refused'
        response = self.serve(pod, port, Request("GET", path))
        if response is None:
            return f'Get "{scheme}://{pod.ip}:{port}{path}": EOF'
        return "" if 200 <= response.status < 400 else f"HTTP probe failed with statuscode: {response.status}"

    def _check_exec(self, pod: PodState, container: ContainerState, probe: Obj) -> str:
        output: list[str] = []
        shell = Shell(self.inside(pod, container), TOOLS)
        steps = shell.execute(list(probe["exec"]["command"]), Io("", lambda fd, text: output.append(text)))
        limit, spent = float(probe.get("timeoutSeconds") or 1), 0.0
        while True:
            try:
                spent += next(steps)
            except StopIteration as end:
                return "" if end.value == 0 else "".join(output).strip()
            if spent > limit:
                return f'command timed out: "{" ".join(probe["exec"]["command"])}" timed out after {limit:g}s'

    # ---- checkpoints

    def save(self) -> dict[str, Any]:
        """State as plain data."""
        return {
            "plane": self.plane.save(),
            "kubelets": self.kubelets.save(),
            "memory": dict(self.memory),
            "touched": self.touched,
        }

    @classmethod
    def load(cls, data: dict[str, Any], app: App | None, ids: Ids) -> "Cluster":
        """The inverse of `save`."""
        cluster = cls(ControlPlane.load(data["plane"]), app, [], ids)
        cluster.kubelets.restore(data["kubelets"])
        cluster.memory, cluster.touched = dict(data["memory"]), data["touched"]
        cluster.objects.update()
        cluster.kubelets.rebind()
        return cluster


def _port_number(port: int | str | None, spec: Obj) -> int:
    if isinstance(port, int):
        return port
    if port is not None and port.isdigit():
        return int(port)
    return next((int(p["containerPort"]) for p in spec.get("ports") or () if p.get("name") == port), 0)
