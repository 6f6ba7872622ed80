"""One unit of work for a worker process: a trial of one agent on one scenario, the proof that revert
restores, or an estate left running.

`itbench.run.pool` sends jobs as JSON to `python -m itbench.run.worker`; everything a worker needs stands in the job.
"""

from typing import Literal

from itbench.core.documents.base import Document, Seed
from itbench.core.documents.scenario import EnvironmentSpec


class Job(Document):
    """What one worker process does."""

    scenario: str
    agent: str
    trial: int = 1
    seed: Seed = 0
    kind: Literal["trial", "revert", "up"] = "trial"
    clock: str = "auto"
    environment: str = "embedded"
    kubeconfig: str = ""
    isolation: str = "auto"
    answers: tuple[str, ...] = ()
    library: tuple[str, ...] = ()
    folder: str = ""
    """Folder of the trial; empty: a temporary one that is removed."""
    fresh: bool = False
    """Stage anew, leave checkpoints alone."""
    timeout_s: float | None = None
    agent_dirs: tuple[str, ...] = ()
    cwd: str = ""

    @property
    def label(self) -> str:
        """How people see the job."""
        return f"{self.scenario} {self.agent} #{self.trial}"


def driver_module(environment: EnvironmentSpec) -> str:
    """The module whose driver can stand up what a scenario asks for."""
    if environment.aws is not None:
        return "itbench.run.account"
    return "itbench.run.clusters" if environment.app is None else "itbench.run.sre"


SCRIPTED = ("nop", "oracle", "decoy", "saboteur", "constant", "heuristic", "replay")


def clock_for(job: Job) -> str:
    """The clock of a job: as asked; by default stepped for scripted built-in agents, live for all others."""
    if job.clock != "auto":
        return job.clock
    return "stepped:5" if job.agent.split(":", 1)[0] in SCRIPTED else "live"
