"""What the control plane needs from the world behind it: kubelets, callable services, and the passing of time.

The world implements these protocols. Together with `itbench.kube.client` they are the only ways between the two.
"""

from dataclasses import dataclass, field
from math import inf
from typing import Any, Protocol

from itbench.core.clock import from_unix, unix


@dataclass(frozen=True, slots=True)
class LogQuery:
    """What `kubectl logs` may ask of one container. Times are world seconds."""

    namespace: str
    pod: str
    container: str
    previous: bool = False
    since: float | None = None
    until: float | None = None
    tail: int | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request into the world (service or pod proxy, port-forward, webhooks)."""

    method: str
    path: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Response:
    """The answer to a `Request`.

    Attributes:
        certificate: PEM of the chain that a TLS server showed, empty where none is modelled.
        delay_s: how long the server took.
    """

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    certificate: bytes = b""
    delay_s: float = 0.0


class Session(Protocol):
    """A running exec, attach or port-forward: bytes go in, frames come out, until `exit_code` is set."""

    exit_code: int | None
    due: float
    """World second at which the session wants to be polled again (`sleep`, `ping`); inf when it only waits for input."""

    def write(self, data: bytes) -> None:
        """Standard input, or bytes from the client of a forwarded port."""

    def close(self) -> None:
        """End of input."""

    def read(self) -> list[tuple[int, bytes]]:
        """Frames since the last call: (1, stdout) and (2, stderr)."""


class NodeDoor(Protocol):
    """Kubelets as the API server sees them. Methods raise `ApiError` with the texts of a real kubelet."""

    def logs(self, query: LogQuery) -> list[tuple[float, str]]:
        """Lines with the world second of each, oldest first."""

    def exec(
        self, namespace: str, pod: str, container: str, argv: list[str], *, stdin: bool = False, tty: bool = False
    ) -> Session:
        """Start a command in a container."""

    def connect(self, namespace: str, pod: str, port: int) -> Session:
        """Open a connection to a port of a pod (port-forward)."""

    def http(self, host: str, port: int, request: Request, *, source: str = "") -> tuple[Response | None, str]:
        """A request to a Service name or pod IP.

        Returns:
            The answer, or None and why not: `refused`, `timeout`, `nxdomain`, `denied`, `tls`.
        """

    def pod_metrics(self, namespace: str = "") -> list[dict[str, Any]]:
        """metrics.k8s.io PodMetrics objects (pods that run for at least a scrape interval)."""

    def node_metrics(self) -> list[dict[str, Any]]:
        """metrics.k8s.io NodeMetrics objects."""


class Pacer(Protocol):
    """Lets world time pass on behalf of requests, and translates times at the doors (wire now is wall now)."""

    def enter(self, *, outside: bool, free: bool) -> None:
        """Called before a request is served: the world catches up with the clock.

        Args:
            outside: the request came from outside the tool registry (a tool call in progress already paid).
            free: discovery, openapi, version, health: costs no step.
        """

    async def wait(self, until: float = inf) -> None:
        """Let the world go on to its next event, at most to second `until`: for watches, follows, sleeping sessions."""

    def settle(self) -> None:
        """While staging: let controllers and pod starts come to rest before a write is answered. Otherwise nothing."""

    def now(self) -> float:
        """World seconds."""

    def to_wire(self, world: float) -> float:
        """World seconds -> Unix seconds that a client should see."""

    def from_wire(self, wire: float) -> float:
        """Unix seconds that a client sent -> world seconds."""


class StandingPacer:
    """A pacer for tests and idle servers: time stands at `at`, the wire shows the world's own calendar."""

    def __init__(self, at: float = 0.0) -> None:
        self.at = at

    def enter(self, *, outside: bool, free: bool) -> None:
        """Nothing to catch up with."""

    async def wait(self, until: float = inf) -> None:
        """Yields to other tasks; time stands."""
        import asyncio

        await asyncio.sleep(0.01)

    def settle(self) -> None:
        """Nothing to settle."""

    def now(self) -> float:
        """The standing time."""
        return self.at

    def to_wire(self, world: float) -> float:
        """The world's own calendar."""
        return unix(world)

    def from_wire(self, wire: float) -> float:
        """The world's own calendar."""
        return from_unix(wire)
