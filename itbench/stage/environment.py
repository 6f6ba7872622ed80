"""What a trial needs of the place where it runs: the `Environment` protocol, and what is staged in it.

    environment = EmbeddedEnvironment(staging)
    await environment.start()
    await environment.stage(gate)          # Ansible: platform, app, gate, noise, faults
    environment.client("grader").get("deployments.apps", "checkout", "shop")
    await environment.advance(60)
    environment.journeys(0, environment.now)
    await environment.close()

`itbench.run` drives it; `embedded` implements it.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from itbench.core.documents.scenario import Use
from itbench.kube.audit import AuditRecord
from itbench.kube.client import Client, Obj

Gate = Callable[[], Awaitable[None]]
"""Called between stage and inject; returns when the baseline is green, raises EnvironmentFault when it is not."""
Identity = Literal["stager", "agent", "grader"]
IDENTITIES: tuple[Identity, ...] = ("stager", "agent", "grader")

STAGER = "system:stager"
"""Staging is the cluster's own doing: writes of `system:` users are not recorded."""
GRADER = "system:grader"
ACCOUNTS = "system:serviceaccount:"
"""Users of programs in pods: whoever can run a pod acts as its account."""
AGENT = "oncall"
"""The engineer on call; the app's manifests give the group `oncall-NAMESPACE` what it may do."""


@dataclass(frozen=True)
class Staging:
    """What is stood up and how time passes in it.

    Args:
        private: folder of the trial that no agent can read.
        roots: library folders, the user's own first; each has `playbooks/`.
        app: id of the app; empty for a bare cluster.
        load: requests per second by journey; those not named keep the app's own rate.
        load_factor: scales all rates.
        noise_seed: of the noise in telemetry from hand-over on; before, that of all trials is drawn by `seed`.
        clock: `live`, `scaled:N` or `stepped:S`.
    """

    private: Path
    roots: tuple[Path, ...]
    app: str = ""
    load: Mapping[str, float] = field(default_factory=dict)
    load_factor: float = 1.0
    nodes: int = 3
    faults: tuple[Use, ...] = ()
    noise: tuple[Use, ...] = ()
    seed: int = 0
    noise_seed: int = 0
    clock: str = "live"


@dataclass(frozen=True)
class Doors:
    """Where the estate can be reached: paths of kubeconfigs by identity, URLs of telemetry, ports of all."""

    kubeconfigs: Mapping[Identity, Path]
    prometheus_url: str = ""
    alertmanager_url: str = ""
    loki_url: str = ""
    jaeger_url: str = ""
    ports: tuple[int, ...] = ()


class Environment(Protocol):
    """One estate. Methods raise `EnvironmentFault` when it lets the trial down."""

    @property
    def doors(self) -> Doors:
        """Where it can be reached; valid after `start` or `restore`."""

    @property
    def now(self) -> float:
        """World seconds."""

    async def start(self) -> None:
        """Bring up what Ansible will talk to: an empty cluster and its identities."""

    async def stage(self, gate: Gate) -> None:
        """Stand up the app, pass the gate, then noise and faults, each after its time."""

    async def advance(self, seconds: float) -> None:
        """Let world time pass: fast-forward where time is simulated, really waiting elsewhere."""

    def client(self, identity: Identity) -> Client:
        """The control plane as this identity sees it."""

    def journeys(self, start: float, end: float) -> dict[str, list[tuple[float, float, float, float, float]]]:
        """Per journey (t, requests per second, share that succeeded, p50 s, p99 s), one row per probe interval."""

    def alerts(self) -> list[dict[str, Any]]:
        """Alerts that are pending or firing, by rule state: silences do not hide them."""

    def audit(self) -> list[AuditRecord]:
        """Every request of anybody but the cluster's own components, in order."""

    def objects(self) -> dict[str, list[Obj]]:
        """The objects that evidence holds, by resource."""

    def marks(self) -> Mapping[str, float]:
        """World seconds of staging: `staged`, `fault`, and `noise.1`, `noise.2`, ..."""

    async def replay(self) -> None:
        """Do the triggers again (the challenge), without Ansible."""

    async def inject(self, use: Use) -> None:
        """Apply one fault once more, by its playbook."""

    async def revert(self, use: Use, part: str = "faults") -> None:
        """Take one fault back exactly, by its playbook."""

    async def end_agent(self) -> None:
        """The agent's identity ends."""

    def save(self) -> dict[str, Any]:
        """The staged estate as plain data."""

    async def restore(self, data: dict[str, Any]) -> None:
        """Bring up a saved estate in place of `start` and `stage`; identities are issued anew."""

    async def close(self) -> None:
        """End everything; nothing is left behind. Never raises."""
