"""The inside of containers: files, processes and network as exec, init scripts and exec probes see them.

`Inside` implements the shell's `Machine` for one container; `House` is what it needs of the cluster around it.
"""

from math import inf
from typing import Protocol

from itbench.core.documents.app import Listen
from itbench.kube.client import Obj
from itbench.kube.door import Request, Response
from itbench.kube.quantity import parse_quantity
from itbench.world import proc
from itbench.world.images import Image, Registry
from itbench.world.kubelet.kubelets import specs_of
from itbench.world.kubelet.state import ContainerState, PodState
from itbench.world.kubelet.volumes import TOKEN, Tree
from itbench.world.objects import Objects
from itbench.world.process import TOOLS, describe, memory_limit_mb
from itbench.world.reach import Reach

NODE_MEMORY_MB = 32 * 1024.0
DEBUG_IMAGES = ("curl", "netshoot", "agnhost", "alpine", "busybox")
IMAGE_BUILT_S = -40 * 86400.0
"""World second at which images were built."""
VOLUMES = {
    "redis": ("/data",),
    "valkey": ("/data",),
    "postgres": ("/var/lib/postgresql/data", "/docker-entrypoint-initdb.d"),
}
"""Folders that images of stores declare."""
FOLDERS = ("bin", "dev", "home", "proc", "root", "run", "sbin", "sys", "tmp", "usr", "var")
"""What the root of an image's file system has besides `etc` and the program's own files."""
SLIM = {
    "sh": {"curl", "dig", "nslookup", "getent", "bash", "redis-cli", "valkey-cli", "netcat", "ss"},
    "bash": {
        "netstat",
        "ss",
        "top",
        "curl",
        "wget",
        "nc",
        "netcat",
        "nslookup",
        "dig",
        "ping",
        "redis-cli",
        "valkey-cli",
        "ash",
    },
}
"""Commands that images of a flavour usually lack (busybox brings wget and nc, Debian-based slim images bring neither)."""
EXTRA = {
    "busybox": {"nslookup"},
    "alpine": {"nslookup", "getent"},
    "curl": {"curl", "nslookup"},
    "netshoot": set(TOOLS),
    "agnhost": {"curl", "dig", "nslookup"},
    "redis": {"redis-cli"},
    "valkey": {"valkey-cli", "redis-cli"},
    "nginx": {"curl"},
    "python": {"curl"},
}


class House(Protocol):
    """The cluster around a container."""

    objects: Objects
    registry: Registry

    calendar_ahead_s: float
    """How far the clients' calendar is ahead of the world's own; set by the pacer."""

    @property
    def now(self) -> float:
        """World seconds."""

    def reach_from(self, source: Obj | None, host: str, port: int) -> Reach:
        """Reachability."""

    def resolve_from(self, source: Obj | None, host: str) -> tuple[str, ...]:
        """Name resolution."""

    def request_from(self, source: Obj | None, host: str, port: int, request: Request) -> tuple[Response | None, str]:
        """An HTTP request."""

    def listeners(self, pod: PodState) -> list[tuple[int, Listen, ContainerState]]:
        """What listens in a pod now."""

    def redis_from(self, source: Obj | None, host: str, port: int, argv: list[str]) -> tuple[str | None, str]:
        """A command to a Redis-like store."""

    def memory_of(self, pod: PodState, container: ContainerState) -> float:
        """Resident MiB of a container."""

    def token_of(self, pod: Obj, kept: str) -> str:
        """The token that a volume of a pod stands for."""

    def touch(self) -> None:
        """A file was changed."""


def has_command(image: Image | None, command: str) -> bool:
    """Whether an image brings a command: its flavour's usual set, and what its family is known for."""
    name = command.rsplit("/", 1)[-1]
    if image is None or name not in TOOLS:
        return True
    if image.program.shell == "none":
        return False
    family = image.reference.repository.rsplit("/", 1)[-1]
    extra = next((tools for key, tools in EXTRA.items() if key in family), set())
    return name in extra or name not in SLIM[image.program.shell]


class Inside:
    """One container, seen from inside.

    Args:
        house: the cluster.
        pod: the pod's state.
        container: the container's state.
        obj: the pod object.
    """

    def __init__(self, house: House, pod: PodState, container: ContainerState, obj: Obj) -> None:
        self._house, self._pod, self._container, self._obj = house, pod, container, obj
        self._spec = specs_of(obj)[container.name]
        self._image = house.registry.find(self._spec.get("image", ""))
        self.workdir = self._spec.get("workingDir") or (self._image.program.workdir if self._image else "/")
        folders = {f"{folder.rstrip('/')}/.keep": "" for folder in (self.workdir, *_volumes_of(self._image))}
        files = {**_base_files(pod, obj), **folders, **(self._image.program.files if self._image else {})}
        self._tree = Tree(obj, self._spec, pod, container, files)
        self.hostname = obj["spec"].get("hostname") or pod.name
        self.user = self._image.program.user if self._image else "root"
        self.env = dict(container.env)

    def now(self) -> float:
        """World seconds."""
        return self._house.now

    def calendar(self) -> float:
        """World seconds on the clients' calendar."""
        return self._house.now + self._house.calendar_ahead_s

    def read(self, path: str) -> str | None:
        """A file's text."""
        found = proc.read(path, self._facts)
        text = self._tree.read(path) if found is None else found
        return self._house.token_of(self._obj, text) if text is not None and text.startswith(TOKEN) else text

    def _facts(self) -> proc.Facts:
        used, total = self.memory()
        cpu = ((self._spec.get("resources") or {}).get("limits") or {}).get("cpu")
        return proc.Facts(
            used,
            total,
            memory_limit_mb(self._spec),
            float(parse_quantity(str(cpu))) if cpu is not None else inf,
            self.now() - self._container.started_at,
            self.processes()[0][2],
            tuple((m["mountPath"], bool(m.get("readOnly"))) for m in self._spec.get("volumeMounts") or ()),
        )

    def modified(self, path: str) -> float:
        """When a file was made, on the clients' calendar: with the image, or at the container's start."""
        image = self._image is not None and path in self._image.program.files and not self._tree.is_mounted(path)
        return (IMAGE_BUILT_S if image else self._container.started_at) + self._house.calendar_ahead_s

    def ports(self) -> list[tuple[int, str]]:
        """(port, `tcp` or `udp`) of what listens in the pod."""
        rows = self._house.listeners(self._pod)
        return sorted((port, "udp" if listen.protocol == "udp" else "tcp") for port, listen, _ in rows)

    def write(self, path: str, text: str) -> str:
        """Write a file, unless the root file system is read-only."""
        locked = (self._spec.get("securityContext") or {}).get("readOnlyRootFilesystem")
        if locked and not self._tree.is_mounted(path):
            return "Read-only file system"
        self._house.touch()
        return self._tree.write(path, text)

    def remove(self, path: str) -> bool:
        """Remove a file."""
        self._house.touch()
        return self._tree.remove(path)

    def entries(self, path: str) -> list[str] | None:
        """Names in a folder."""
        return self._tree.entries(path)

    def processes(self) -> list[tuple[int, str, str]]:
        """Process 1 and the shell that asks."""
        program = self._image.program if self._image else None
        command = describe(self._spec, program) if program else ""
        return [(1, self.user, command), (42, self.user, "ps")]

    def memory(self) -> tuple[float, float]:
        """(used, total) MiB."""
        limit = memory_limit_mb(self._spec)
        return self._house.memory_of(self._pod, self._container), min(limit, NODE_MEMORY_MB)

    def has(self, command: str) -> bool:
        """Whether the image has a command."""
        return has_command(self._image, command)

    def resolve(self, host: str) -> list[str]:
        """Addresses of a name."""
        if host == self.hostname:
            return [self._pod.ip]
        return list(self._house.resolve_from(self._obj, host))

    def dial(self, host: str, port: int) -> str:
        """Reachability from here."""
        return self._house.reach_from(self._obj, host, port).verdict

    def http(self, host: str, port: int, request: Request) -> tuple[Response | None, str]:
        """An HTTP request from here."""
        return self._house.request_from(self._obj, host, port, request)

    def redis(self, host: str, port: int, argv: list[str]) -> tuple[str | None, str]:
        """A command to a Redis-like store."""
        return self._house.redis_from(self._obj, host, port, argv)


def _volumes_of(image: Image | None) -> tuple[str, ...]:
    family = image.reference.repository.rsplit("/", 1)[-1] if image is not None else ""
    return VOLUMES.get(family, ())


def _base_files(pod: PodState, obj: Obj) -> dict[str, str]:
    search = f"{pod.namespace}.svc.cluster.local svc.cluster.local cluster.local"
    return {
        "/etc/hostname": f"{pod.name}\n",
        "/etc/hosts": f"# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n{pod.ip}\t{pod.name}\n",
        "/etc/resolv.conf": f"search {search}\nnameserver 10.96.0.10\noptions ndots:5\n",
        "/etc/passwd": "root:x:0:0:root:/root:/bin/sh\n",
        **{f"/{folder}/.keep": "" for folder in FOLDERS},
        **dict.fromkeys(proc.FILES, ""),
    }
