"""What a trial leaves behind: evidence, checks, result, and the run's own documents. Written by `run`, read by reports."""

from typing import Any, Literal

from pydantic import Field

from itbench.core.documents.base import MAX_TRIALS, Document, Seed

Outcome = Literal["pass", "fail", "invalid"]
EVIDENCE = (
    "namespaces",
    "nodes",
    "deployments.apps",
    "replicasets.apps",
    "statefulsets.apps",
    "daemonsets.apps",
    "pods",
    "services",
    "endpointslices.discovery.k8s.io",
    "configmaps",
    "persistentvolumeclaims",
    "resourcequotas",
    "limitranges",
    "networkpolicies.networking.k8s.io",
    "ingresses.networking.k8s.io",
    "horizontalpodautoscalers.autoscaling",
    "poddisruptionbudgets.policy",
    "jobs.batch",
    "cronjobs.batch",
    "prometheusrules.monitoring.coreos.com",
)
"""What evidence holds of an estate: no Secrets, no Events, none of the kinds that disturb."""


class CheckResult(Document):
    """One graded fact: what was wanted, what the evidence shows, and where in the evidence that stands."""

    name: str
    kind: str
    answer: str
    """The answer it belongs to: diagnosis, mitigation, verdict or answer."""
    passed: bool
    wanted: str
    seen: str
    where: str
    score: float | None = None
    details: dict[str, Any] = {}


class Result(Document):
    """`result.json` of a trial."""

    schema_: Literal["itbench/result/v1"] = Field("itbench/result/v1", alias="schema")
    scenario: str
    seed: Seed
    trial: int
    agent: str
    outcome: Outcome
    cause: str
    """The row of the cause table; `checks` when the checks decided."""
    detail: str = ""
    answers: dict[str, bool] = {}
    checks: tuple[CheckResult, ...] = ()
    metrics: dict[str, float | int | str | None] = {}
    clock: str = ""
    isolation: str = ""
    family: str = ""
    domain: str = ""
    title: str = ""


class Action(Document):
    """One tool call of the agent, in world time."""

    t: float
    end: float
    tool: str
    arguments: dict[str, Any]
    ok: bool
    digest: str


class Write(Document):
    """One write to the estate by somebody other than the controllers: who, what, and the object's digests."""

    t: float
    user: str
    verb: str
    resource: str
    namespace: str
    name: str
    subresource: str = ""
    code: int = 0
    before: str = ""
    after: str = ""


class Snapshot(Document):
    """The estate at the end of a phase: objects by resource, firing alerts, time."""

    t: float
    objects: dict[str, list[dict[str, Any]]] = {}
    alerts: list[dict[str, Any]] = []

    def plain(self) -> dict[str, Any]:
        """As plain data, which is not copied: for those who only write it down."""
        return {"t": self.t, "objects": self.objects, "alerts": self.alerts}


class Evidence(Document):
    """Everything grading may look at. World time only; no ports, tokens, paths or reads."""

    schema_: Literal["itbench/evidence/v1"] = Field("itbench/evidence/v1", alias="schema")
    scenario: str
    seed: Seed
    trial: int
    times: dict[str, float]
    """World seconds: staged, fault, symptom, hand_over, submit, settled, challenge, end (those that happened)."""
    snapshots: dict[str, Snapshot] = {}
    journeys: dict[str, list[tuple[float, float, float, float | None, float | None]]] = {}
    """Per journey rows (t, requests per second, share that succeeded, p50 s, p99 s), one per probe interval; latencies are None
    where nothing was answered."""
    actions: list[Action] = []
    writes: list[Write] = []
    submission: dict[str, Any] | None = None
    cause: str = "checks"
    facts: dict[str, Any] = {}
    """What a domain's own collectors measured (policy matrix, bill, reachability)."""


class RunDocument(Document):
    """`run.yaml`: what was asked for."""

    schema_: Literal["itbench/run/v1"] = Field("itbench/run/v1", alias="schema")
    scenarios: tuple[str, ...]
    agents: tuple[str, ...]
    trials: int = Field(1, ge=1, le=MAX_TRIALS)
    seed: Seed = 0
    clock: str = "auto"
    environment: str = "embedded"
    isolation: str = "auto"
    task: tuple[str, ...] = ()
    kubeconfig: str = ""
    timeout_s: float | None = None
    agent_dirs: tuple[str, ...] = ()
    library: tuple[str, ...] = ()


class Lock(Document):
    """`lock.json`: hashes of every input, versions, seeds; equal locks mean comparable results."""

    schema_: Literal["itbench/lock/v1"] = Field("itbench/lock/v1", alias="schema")
    versions: dict[str, str]
    scenarios: dict[str, str]
    playbooks: str
    metrics: str
    sources: str
    seed: Seed
    clock: str
    isolation: str = ""
