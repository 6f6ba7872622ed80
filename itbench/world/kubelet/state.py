"""What kubelets remember of pods and containers between two moments. Plain data; `plain.pack` saves it."""

from dataclasses import dataclass, field
from math import inf
from typing import Any


@dataclass(slots=True)
class Terminated:
    """How a container ended."""

    exit_code: int
    reason: str
    started_at: float
    finished_at: float
    message: str = ""
    container_id: str = ""


@dataclass(slots=True)
class ProbeState:
    """Results of one probe in a row."""

    passed: int = 0
    failed: int = 0
    next_at: float = 0.0
    settled: bool = False
    """The last result is known and nothing that it depends on has changed since: no need to look again."""
    message: str = ""


@dataclass(slots=True)
class Run:
    """One life of a container's process, for its log."""

    start: float
    end: float = inf
    lines: list[tuple[float, str]] = field(default_factory=list)
    serves_from: float = inf


@dataclass(slots=True)
class ContainerState:
    """One container of a pod. `phase`: new, pulling, pull-error, pull-backoff, config-error, crash-backoff, running, exited."""

    name: str
    kind: str
    phase: str = "new"
    until: float = inf
    reason: str = "ContainerCreating"
    message: str = ""
    image_id: str = ""
    image_name: str = ""
    program: str = ""
    container_id: str = ""
    started_at: float = 0.0
    exit_at: float = inf
    exit_code: int = 0
    exit_reason: str = ""
    exit_message: str = ""
    restarts: int = 0
    ended: Terminated | None = None
    previous: Terminated | None = None
    pull_backoff_s: float = 10.0
    pull_again_at: float = 0.0
    crash_backoff_s: float = 0.0
    ready: bool = False
    started: bool = False
    probes: dict[str, ProbeState] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    read: dict[str, str] = field(default_factory=dict)
    """Files that the process read when it started, by path."""
    overlay: dict[str, str | None] = field(default_factory=dict)
    data: dict[str, str] = field(default_factory=dict)
    """Keys of a Redis-like store; gone when the process ends."""
    runs: list[Run] = field(default_factory=list)
    recheck_at: float = inf
    serves_at: float = inf

    @property
    def running(self) -> bool:
        """Whether the process runs."""
        return self.phase == "running"

    @property
    def settings(self) -> dict[str, str]:
        """What the process was told when it started: variables, and files by path."""
        return self.env | self.read if self.read else self.env

    @property
    def run(self) -> Run:
        """The current or last life."""
        return self.runs[-1]


@dataclass(slots=True)
class PodState:
    """One pod on one node. `stage`: volumes, sandbox, init, main, stopping, ended."""

    uid: str
    namespace: str
    name: str
    node: str
    stage: str = "volumes"
    until: float = 0.0
    ip: str = ""
    accepted_at: float = 0.0
    sandbox_at: float = inf
    mount_backoff_s: float = 0.5
    volumes: dict[str, dict[str, str]] = field(default_factory=dict)
    containers: dict[str, ContainerState] = field(default_factory=dict)
    conditions: dict[str, tuple[str, float]] = field(default_factory=dict)
    written: Any = None
    frozen_until: float = 0.0
    """While a pod-failure condition lasts, its processes do not run."""
    stop_at: float = inf
    phase: str = "Pending"
    refused: tuple[str, str] = ("", "")
    """Why the node does not take it: reason and message."""

    @property
    def key(self) -> tuple[str, str]:
        """(namespace, name)."""
        return self.namespace, self.name
