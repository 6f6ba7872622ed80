"""The scenario document: what is broken, what the agent is told, what counts as repaired. Written by scenario authors.

Checks and steps are one-key mappings (`{slo: {...}}`, `{kubectl: "..."}`) whose typed models the domains register;
the library receives those models as a `Vocabulary` and validates with them, so a new domain changes nothing here.
"""

from typing import Any, Literal

from pydantic import Field, field_validator

from itbench.core.documents.base import Document, Duration, Rate

Level = Literal["easy", "medium", "hard"]
Answer = Literal["diagnosis", "mitigation", "verdict", "answer"]
Clock = Literal["live", "scaled", "stepped"]


class Source(Document):
    """Where the scenario comes from."""

    what: str
    kind: Literal["paper", "postmortem", "benchmark", "standard", "issue", "practice"] = "practice"


class AppUse(Document):
    """The workload: an app of the library and its arguments."""

    id: str
    args: dict[str, Any] = {}


class Load(Document):
    """Open-loop demand, requests per second by journey; `factor` scales the app's defaults."""

    journeys: dict[str, Rate] = {}
    factor: float = Field(1.0, gt=0, le=1000)


class AccountUse(Document):
    """An AWS account: the estate that seeds it, and its arguments."""

    estate: str
    args: dict[str, Any] = {}


class EnvironmentSpec(Document):
    """What is stood up."""

    app: AppUse | None = None
    load: Load = Load()
    nodes: int = Field(3, ge=1, le=100)
    clusters: tuple[str, ...] = ("main",)
    addons: tuple[str, ...] = ()
    aws: AccountUse | None = None
    objects: tuple[str, ...] = ()
    """Manifest files of the scenario folder that belong to the estate."""
    today: str = ""
    """FinOps: the fixed calendar day, YYYY-MM-DD."""


class Use(Document):
    """A fault or a piece of noise applied to a target, with arguments, some time after the baseline."""

    id: str
    target: str = ""
    args: dict[str, Any] = {}
    after: Duration = 60.0


class Symptom(Document):
    """How the symptom gate behaves.

    `within`: it must be red this long after injection. `hand_over`: seconds between the end of injection and hand-over.
    `self_recovering`: red at some second is enough, it may be green again at hand-over.
    """

    within: Duration = 300.0
    hand_over: Duration | None = None
    self_recovering: bool = False
    none: bool = False


class Limits(Document):
    """World time and tool calls that the agent may use."""

    time: Duration = 1800.0
    steps: int = Field(80, ge=1, le=100_000)


class TaskSpec(Document):
    """What the agent has to answer, within which limits, with which tools (empty: the domain's own set)."""

    answers: tuple[Answer, ...] = ("diagnosis", "mitigation")
    limits: Limits = Limits()
    tools: tuple[str, ...] = ()
    answer_schema: dict[str, Any] = {}
    files: tuple[str, ...] = ()
    """Files of the scenario folder that are copied into the agent's workspace."""


class Cause(Document):
    """One root cause: an entity and a mechanism of the closed vocabulary."""

    entity: str
    mechanism: str


class RootCause(Cause):
    """A root cause and what is accepted in its place."""

    alternatives: tuple[Cause, ...] = Field((), alias="or")


class Truth(Document):
    """Sealed; never leaves the grader."""

    root_causes: tuple[RootCause, ...] = ()
    chain: tuple[tuple[str, ...], ...] = ()
    verdict: str = "incident"
    answer: dict[str, Any] = {}


class Entry(Document):
    """A one-key mapping: the kind of a check or step, and its specification."""

    kind: str
    spec: Any

    @classmethod
    def from_mapping(cls, value: Any) -> Any:
        """`{slo: {...}}` -> Entry(kind="slo", spec={...})."""
        if isinstance(value, Entry):
            return value
        if isinstance(value, dict) and set(value) == {"kind", "spec"}:
            return value
        if not isinstance(value, dict) or len(value) != 1:
            raise ValueError("expected a mapping with one key, the kind")
        ((kind, spec),) = value.items()
        return {"kind": str(kind), "spec": spec}


class Repair(Document):
    """Steps that must lead to a pass. `verdict` is what a perfect agent would also answer, if not the truth's."""

    name: str
    steps: tuple[Entry, ...] = ()

    _entries = field_validator("steps", mode="before")(lambda value: [Entry.from_mapping(item) for item in value or []])


class Decoy(Repair):
    """Tempting wrong steps that must fail, and the check that must catch them."""

    caught_by: str


class Scenario(Document):
    """A scenario as written in `scenario.yaml`."""

    schema_: Literal["itbench/scenario/v1"] = Field(alias="schema")
    id: str = Field(pattern=r"^[a-z]+-[a-z0-9]+(@twin)?$")
    title: str
    domain: str
    family: str
    level: Level
    source: Source
    tags: tuple[str, ...] = ()
    environment: EnvironmentSpec
    faults: tuple[Use, ...] = ()
    noise: tuple[Use, ...] = ()
    symptom: Symptom = Symptom()
    page: str
    task: TaskSpec = TaskSpec()
    truth: Truth = Truth()
    checks: tuple[Entry, ...]
    settle: Duration = 360.0
    """World seconds after submission before the challenge; restart back-off needs up to six minutes."""
    repairs: tuple[Repair, ...]
    decoys: tuple[Decoy, ...] = ()
    allow: tuple[str, ...] = ()
    """Objects that any agent may touch without harm (levers of the runbook)."""
    notes: str = ""

    _entries = field_validator("checks", mode="before")(
        lambda value: [Entry.from_mapping(item) for item in value or []]
    )

    @property
    def twin_of(self) -> str | None:
        """The id of the row that this document twins."""
        return self.id.removesuffix("@twin") if self.id.endswith("@twin") else None
