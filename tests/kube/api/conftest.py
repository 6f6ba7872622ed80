"""A control plane behind the HTTP door, with a kubelet that runs every pod at once and a world of a few commands."""

import asyncio
import os
import shutil
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from itbench.core.clock import from_unix, rfc3339, unix
from itbench.core.ids import Ids
from itbench.kube.api import Server, serve
from itbench.kube.client import ApiError
from itbench.kube.door import LogQuery, Request, Response
from itbench.kube.plane import ControlPlane
from itbench.kube.status import bad_request


@dataclass
class FakeSession:
    """A command that answers at once (`echo`, `cat`, `fail`), or a port that echoes in capitals."""

    kind: str
    argv: list[str] = field(default_factory=list)
    exit_code: int | None = None
    due: float = inf
    _out: list[tuple[int, bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.kind == "exec" and self.argv[0] == "echo":
            self._out.append((1, " ".join(self.argv[1:]).encode() + b"\n"))
            self.exit_code = 0
        elif self.kind == "exec" and self.argv[0] == "fail":
            self._out.append((2, b"it failed\n"))
            self.exit_code = 7

    def write(self, data: bytes) -> None:
        self._out.append((1, data.upper() if self.kind == "port" else data))
        if self.kind == "port" and b"\n" in data:
            self.exit_code = 0

    def close(self) -> None:
        self.exit_code = 0

    def read(self) -> list[tuple[int, bytes]]:
        frames, self._out = self._out, []
        return frames


class FakeDoor:
    """Kubelets and services as the tests want them."""

    def __init__(self) -> None:
        self.lines: dict[str, list[tuple[float, str]]] = {}
        self.asked: list[LogQuery] = []

    def logs(self, query: LogQuery) -> list[tuple[float, str]]:
        self.asked.append(query)
        rows = self.lines.get(query.pod, [])
        if query.since is not None:
            rows = [row for row in rows if row[0] >= query.since]
        return rows[-query.tail :] if query.tail else rows

    def exec(
        self, namespace: str, pod: str, container: str, argv: list[str], *, stdin: bool = False, tty: bool = False
    ) -> FakeSession:
        if argv[0] == "lost":
            raise bad_request(f'unable to upgrade connection: container not found ("{container}")')
        return FakeSession("exec", argv)

    def connect(self, namespace: str, pod: str, port: int) -> FakeSession:
        if port == 81:
            raise bad_request("connection refused")
        return FakeSession("port")

    def http(self, host: str, port: int, request: Request, *, source: str = "") -> tuple[Response | None, str]:
        if port == 81:
            return None, "refused"
        return Response(
            200, {"Content-Type": "text/plain"}, f"{request.method} {host}:{port}{request.path}".encode()
        ), ""

    def pod_metrics(self, namespace: str = "") -> list[dict[str, Any]]:
        return [_metrics("PodMetrics", "web", "default", containers=[{"name": "c", "usage": _USAGE}])]

    def node_metrics(self) -> list[dict[str, Any]]:
        return [_metrics("NodeMetrics", "node-1", "", usage=_USAGE)]


_USAGE = {"cpu": "250m", "memory": "64Mi"}


def _metrics(kind: str, name: str, namespace: str, **rest: Any) -> dict[str, Any]:
    meta = {"name": name, "labels": {"app": name}} | ({"namespace": namespace} if namespace else {})
    return {
        "kind": kind,
        "apiVersion": "metrics.k8s.io/v1beta1",
        "metadata": meta,
        "timestamp": rfc3339(0),
        "window": "30s",
        **rest,
    }


class TestPacer:
    """World time that stands unless a test moves it; writes settle controllers and start pods; the wire is `offset` ahead."""

    __test__ = False

    def __init__(self, plane: ControlPlane, offset_s: float = 0.0) -> None:
        self.plane, self.offset_s = plane, offset_s
        self.steps = 0
        self.waits: list[float] = []

    def enter(self, *, outside: bool, free: bool) -> None:
        self.steps += not free

    async def wait(self, until: float = inf) -> None:
        self.waits.append(until)
        await asyncio.sleep(0.02)

    def settle(self) -> None:
        client = self.plane.client("kubelet")
        for _ in range(8):
            before = self.plane.revision
            self.plane.run(self.plane.now)
            for pod in client.list("pods"):
                _play(client, pod, self.plane.now)
            if self.plane.revision == before:
                return

    def now(self) -> float:
        return self.plane.now

    def to_wire(self, world: float) -> float:
        return unix(world) + self.offset_s

    def from_wire(self, wire: float) -> float:
        return from_unix(wire) - self.offset_s


def _play(client: Any, pod: dict[str, Any], now: float) -> None:
    meta, spec = pod["metadata"], pod["spec"]
    if meta.get("deletionTimestamp"):
        client.delete("pods", meta["name"], meta["namespace"], grace_s=0)
        return
    if not spec.get("nodeName") or pod["status"].get("phase") == "Running":
        return
    since = rfc3339(now)
    ready = [
        {"type": t, "status": "True", "lastTransitionTime": since} for t in ("Initialized", "Ready", "ContainersReady")
    ]
    rows = [
        {
            "name": c["name"],
            "image": c["image"],
            "imageID": "x",
            "containerID": "containerd://x",
            "ready": True,
            "started": True,
            "restartCount": 0,
            "lastState": {},
            "state": {"running": {"startedAt": since}},
        }
        for c in spec["containers"]
    ]
    status = {
        **pod["status"],
        "phase": "Running",
        "conditions": [*pod["status"].get("conditions", []), *ready],
        "containerStatuses": rows,
        "podIP": "10.244.0.9",
        "podIPs": [{"ip": "10.244.0.9"}],
        "startTime": since,
    }
    client.update("pods", {**pod, "status": status}, subresource="status")


_NODE_INFO = (
    "architecture",
    "bootID",
    "containerRuntimeVersion",
    "kernelVersion",
    "kubeProxyVersion",
    "kubeletVersion",
    "machineID",
    "operatingSystem",
    "osImage",
    "systemUUID",
)


def make_node(plane: ControlPlane, name: str = "node-1") -> None:
    """A Ready node that takes pods."""
    client = plane.client("kubelet")
    room = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    condition = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": rfc3339(0)}
    status = {
        "capacity": room,
        "allocatable": room,
        "conditions": [condition | {"lastTransitionTime": rfc3339(0)}],
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": dict.fromkeys(_NODE_INFO, "x"),
    }
    meta = {"name": name, "labels": {"kubernetes.io/hostname": name}}
    try:
        client.create("nodes", {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": status})
    except ApiError as error:
        raise AssertionError(error.status) from error


@dataclass
class Reply:
    """One answer."""

    status: int
    headers: Any
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)


@dataclass
class Site:
    """A served plane and what belongs to it."""

    plane: ControlPlane
    pacer: TestPacer
    door: FakeDoor
    server: Server
    folder: Path
    session: aiohttp.ClientSession
    tokens: dict[str, str] = field(default_factory=dict)

    @property
    def program(self) -> str:
        """The kubectl of the virtual environment, else of the PATH."""
        return KUBECTL

    def token(self, user: str) -> str:
        """A token of a user; `admin` is in system:masters."""
        if user not in self.tokens:
            self.tokens[user] = self.server.token(user, ("system:masters",) if user == "admin" else ())
        return self.tokens[user]

    async def http(
        self, method: str, path: str, body: Any = None, *, user: str = "admin", headers: dict[str, str] | None = None
    ) -> "Reply":
        """One request with a user's token; `body` is JSON, or bytes as they are."""
        sent = dict(headers or {})
        if user:
            sent.setdefault("Authorization", f"Bearer {self.token(user)}")
        data = body if isinstance(body, bytes) or body is None else orjson.dumps(body)
        if data is not None:
            sent.setdefault("Content-Type", "application/json")
        async with self.session.request(method, self.server.url + path, data=data, headers=sent) as response:
            return Reply(response.status, response.headers, await response.read())

    async def kubectl(self, *args: str, user: str = "admin", stdin: bytes = b"", program: str = "") -> tuple[int, str]:
        """Run the real kubectl against the server: (exit code, stdout and stderr)."""
        config = self.folder / f"{user}.kubeconfig"
        if not config.exists():
            config.write_text(self.server.kubeconfig(user))
        env = {
            "KUBECONFIG": str(config),
            "HOME": str(self.folder),
            "PATH": os.environ["PATH"],
            "TMPDIR": str(self.folder),
        }
        process = await asyncio.create_subprocess_exec(
            program or self.program,
            *args,
            env=env,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await process.communicate(stdin)
        return process.returncode or 0, out.decode()


def _find_kubectl() -> str:
    beside = Path(sys.executable).parent / "kubectl"
    return str(beside) if beside.exists() else shutil.which("kubectl") or ""


KUBECTL = _find_kubectl()
MakeSite = Callable[..., Awaitable[Site]]


@pytest.fixture
async def make_site(tmp_path: Path) -> AsyncIterator[MakeSite]:
    """Makes served planes and closes them."""
    made: list[Site] = []

    async def make(offset_s: float = 0.0) -> Site:
        plane = ControlPlane(ids=Ids(7))
        make_node(plane)
        pacer, door = TestPacer(plane, offset_s), FakeDoor()
        pacer.settle()
        server = await serve(plane, pacer, door)
        context = ssl.create_default_context(cadata=server.certificate.decode())
        session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context))
        site = Site(plane, pacer, door, server, tmp_path, session)
        made.append(site)
        return site

    yield make
    for site in made:
        await site.session.close()
        await site.server.close()


@pytest.fixture
async def site(make_site: MakeSite) -> Site:
    """One served plane whose wire time is world time."""
    return await make_site()
