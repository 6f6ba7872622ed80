"""What differs between domains in the life of a trial: how an estate is stood up, probed, challenged and recorded.

Modules `sre`, `account` and `clusters` beside it implement it; `itbench.run.trial` calls it and knows nothing else.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from itbench.core.documents.result import Snapshot, Write
from itbench.core.documents.scenario import Scenario
from itbench.core.documents.task import Endpoints
from itbench.evaluate.journeys import Row
from itbench.tools.context import TrialClock

Gate = Callable[[], Awaitable[None]]
"""Called between stage and inject; returns when the baseline is green, raises EnvironmentFault when it is not."""


@dataclass(frozen=True)
class Plan:
    """What a driver needs to know of a trial."""

    scenario: Scenario
    folder: Path
    """Where the scenario lies (fixtures)."""
    private: Path
    """Folder of the trial that no agent can read."""
    workspace: Path
    """Folder that the agent may write."""
    seed: int = 0
    trial: int = 1
    clock: str = "live"
    environment: str = "embedded"
    kubeconfig: str = ""
    library: tuple[str, ...] = ()

    @property
    def noise_seed(self) -> int:
        """Of the noise in telemetry from hand-over on; what is before is shared by all trials of a seed."""
        return self.seed * 1000 + self.trial


@dataclass
class Records:
    """What was measured over the whole trial."""

    journeys: dict[str, list[Row]] = field(default_factory=dict)
    writes: list[Write] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)


class Driver(Protocol):
    """One estate for one trial. Methods raise `EnvironmentFault` when the estate lets the trial down."""

    @property
    def clock(self) -> TrialClock:
        """The trial's clock: `now`, `tool_call`, `advance`."""

    @property
    def endpoints(self) -> Endpoints:
        """Where the agent finds the estate."""

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools that agents of this domain get by default."""

    @property
    def ports(self) -> tuple[int, ...]:
        """TCP ports of this trial that an isolated agent may connect to."""

    async def start(self) -> None:
        """Bring up what Ansible will talk to."""

    async def stage(self, gate: Gate) -> None:
        """Stand up, pass the gate, inject noise and faults."""

    async def baseline(self) -> str:
        """Why the baseline is not green; empty when it is."""

    async def symptom(self) -> str:
        """Let time pass until hand-over is due; why the symptom is not as the scenario says, empty when it is."""

    def page_values(self) -> dict[str, str]:
        """`at.symptom` and the like as texts on the agent's clock."""

    def count_steps(self, step: Callable[[], object]) -> None:
        """Call `step` for every request of the agent that goes past its tools and is not discovery."""

    async def hand_over(self) -> None:
        """From here on the agent's identity works and its clock runs."""

    async def submit(self) -> None:
        """The agent is gone: its identity ends, the clock stands and only moves when told."""

    async def settle(self, seconds: float) -> None:
        """Let world time pass after the submission."""

    async def challenge(self) -> bool:
        """Do what the scenario's challenges say; False when there is none."""

    async def revert(self) -> None:
        """Take the faults back, as their revert playbooks say."""

    def snapshot(self) -> Snapshot:
        """Objects and alerts now, in world time."""

    async def records(self) -> Records:
        """Everything measured since the beginning, and the domain's facts. Called once, at the end."""

    def times(self) -> dict[str, float]:
        """World seconds of moments that the driver knows: `fault`, `symptom`."""

    def save(self) -> Any:
        """The estate as plain data, staged or after the agent's end; None when it cannot be saved at this moment."""

    async def restore(self, data: Any) -> None:
        """Bring up a saved estate instead of `start` and `stage`."""

    async def close(self) -> None:
        """End everything; nothing is left behind. Never raises."""
