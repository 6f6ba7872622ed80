"""The contract with an agent: a `Task` goes in, a `Submission` comes out, the same in every domain.

The runner makes the task, `itbench.agents` hands it over and brings the submission back, `itbench.evaluate` reads it.
Nothing here carries a truth; everything here may be shown to an agent.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from itbench.core.documents.vocabulary import (
    ENTITY_FORMS,
    MECHANISMS,
    VERDICTS,
    canonical_entity,
    canonical_mechanism,
    canonical_verdict,
)
from itbench.core.errors import ItbenchError

TASK_SCHEMA = "itbench/task/v1"
SUBMISSION_SCHEMA = "itbench/submission/v1"
MAX_DEPTH = 64
"""Of objects and lists in each other, in answers and arguments of tools: evidence must be kept by every writer."""
MAX_SUBMISSION_BYTES = 256 * 1024
"""A submission is an answer, not a dump; longer ones are refused unread."""

Answer = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]
"""`diagnosis`, `mitigation`, `verdict`, or a name that a domain registers (`policy`, `remediation`, `savings`, ...)."""


class SubmissionInvalid(ItbenchError):
    """The agent's answer cannot be read as a submission; the trial goes on with cause `submission_invalid`."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class ToolSpec(_Frozen):
    """One tool as the agent sees it. The hints are derived from reversibility classes and trusted by nobody."""

    name: str
    description: str
    input_schema: dict[str, Any]
    read_only: bool = False
    destructive: bool = False


class Endpoints(_Frozen):
    """Where the estate can be reached. All addresses are those of this trial alone; empty means not in this scenario."""

    workspace: str = ""
    """Folder in which the agent may write."""
    kubeconfig: str = ""
    """Path of a kubeconfig with the agent's identity; several clusters are several contexts in it."""
    prometheus_url: str = ""
    alertmanager_url: str = ""
    loki_url: str = ""
    jaeger_url: str = ""
    aws_endpoint_url: str = ""
    aws_env: dict[str, str] = Field(default_factory=dict)
    """AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and the like."""
    databases: dict[str, str] = Field(default_factory=dict)
    """Name -> path of a SQLite file that the `sql` tool opens read-only (bills)."""
    tools_url: str = ""
    tools_token: str = ""
    mcp_url: str = ""

    def environment(self) -> dict[str, str]:
        """The variables under which child processes find these places; empty ones are left out."""
        named = {
            "ITBENCH_WORKSPACE": self.workspace,
            "KUBECONFIG": self.kubeconfig,
            "PROMETHEUS_URL": self.prometheus_url,
            "ALERTMANAGER_URL": self.alertmanager_url,
            "LOKI_URL": self.loki_url,
            "JAEGER_URL": self.jaeger_url,
            "AWS_ENDPOINT_URL": self.aws_endpoint_url,
            "ITBENCH_TOOLS_URL": self.tools_url,
            "ITBENCH_TOOLS_TOKEN": self.tools_token,
            "ITBENCH_MCP_URL": self.mcp_url,
        }
        return {key: value for key, value in {**self.aws_env, **named}.items() if value}


class Limits(_Frozen):
    """What an agent may use up."""

    time_s: float = Field(default=1800.0, gt=0)
    """World seconds from hand-over."""
    steps: int = Field(default=80, gt=0)
    """Tool calls, or non-discovery requests from outside the tool registry."""


class Vocabulary(_Frozen):
    """The words in which a diagnosis is given; equal in every task, so they hint at nothing."""

    mechanisms: tuple[str, ...] = MECHANISMS
    entities: tuple[str, ...] = ENTITY_FORMS
    verdicts: tuple[str, ...] = VERDICTS


class Deliverable(_Frozen):
    """Something the agent has to leave behind besides its answer."""

    kind: str
    """What it is: `ValidatingAdmissionPolicy`, `rego`, `script`, ..."""
    via: Literal["workspace", "api", "account"] = "workspace"
    path: str = ""
    """Place in the workspace, relative."""
    about: str = ""


class Task(_Frozen):
    """All that an agent is told."""

    schema_: Literal["itbench/task/v1"] = Field(default="itbench/task/v1", alias="schema")
    trial: str
    """Opaque; names no scenario."""
    domain: str
    page: str
    answers: tuple[Answer, ...]
    today: str = ""
    """The date of the estate where it is not the wall's (FinOps)."""
    tools: tuple[ToolSpec, ...] = ()
    endpoints: Endpoints = Field(default_factory=Endpoints)
    limits: Limits = Field(default_factory=Limits)
    deliver: tuple[Deliverable, ...] = ()
    answer_schema: dict[str, Any] = Field(default_factory=dict)
    """JSON Schema of the submission; `submission_schema` makes it."""
    vocabulary: Vocabulary = Field(default_factory=Vocabulary)


class RootCause(_Frozen):
    """One cause: what is at the root, and how it acts."""

    entity: str
    mechanism: str

    @field_validator("entity")
    @classmethod
    def _entity(cls, value: str) -> str:
        return canonical_entity(value)

    @field_validator("mechanism")
    @classmethod
    def _mechanism(cls, value: str) -> str:
        return canonical_mechanism(value)


class Submission(_Frozen):
    """The agent's answer. Mitigation is not in it: the estate itself shows that."""

    schema_: Literal["itbench/submission/v1"] = Field(default="itbench/submission/v1", alias="schema")
    diagnosis: tuple[RootCause, ...] = Field(default=(), max_length=20)
    chain: tuple[tuple[str, ...], ...] = Field(default=(), max_length=20)
    """Paths of propagation, each from a root cause to what users see, as entities."""
    verdict: str | None = None
    answer: dict[str, Any] = Field(default_factory=dict)
    """The domain's own answer, by the schema that the scenario gives."""
    notes: str = ""

    @field_validator("chain")
    @classmethod
    def _chain(cls, value: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(canonical_entity(entity) for entity in path) for path in value)

    @field_validator("verdict")
    @classmethod
    def _verdict(cls, value: str | None) -> str | None:
        return None if value is None else canonical_verdict(value)


def submission_schema(answers: tuple[str, ...], domain_answer: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The JSON Schema of a submission that answers what the task asks for.

    Args:
        answers: the task's answers; `diagnosis` and `verdict` become required keys.
        domain_answer: schema of the key `answer`; given, the key is required too.
    """
    entity = {"type": "string", "description": "one of: " + "; ".join(ENTITY_FORMS)}
    cause = {
        "type": "object",
        "required": ["entity", "mechanism"],
        "additionalProperties": False,
        "properties": {"entity": entity, "mechanism": {"enum": list(MECHANISMS)}},
    }
    path = {"type": "array", "items": entity}
    required = [key for key in ("diagnosis", "verdict") if key in answers] + (["answer"] if domain_answer else [])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": False,
        "required": required,
        "properties": {
            "schema": {"const": SUBMISSION_SCHEMA},
            "diagnosis": {"type": "array", "maxItems": 20, "items": cause},
            "chain": {"type": "array", "maxItems": 20, "items": path},
            "verdict": {"enum": [*VERDICTS, None]},
            "answer": dict(domain_answer or {"type": "object"}),
            "notes": {"type": "string"},
        },
    }


def parse_submission(data: str | bytes | Mapping[str, Any]) -> Submission:
    """Read `submission.json` or an object already decoded.

    Raises:
        SubmissionInvalid: one line that names the key, the value seen and what was expected.
    """
    raw = _decoded(data) if isinstance(data, str | bytes) else data
    if not isinstance(raw, Mapping):
        raise SubmissionInvalid("submission is not an object", seen=_short(raw), expected="a JSON object")
    problem = not_plain(raw)
    if problem:
        raise SubmissionInvalid(f"submission cannot be kept ({problem})", expected="finite numbers and valid text")
    try:
        return Submission.model_validate(dict(raw))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "submission"
        reason = str(first["msg"]).removeprefix("Value error, ").replace("valid tuple", "list")
        raise SubmissionInvalid(f"submission key {place}: {reason}", seen=_short(first.get("input"))) from error


def not_plain(value: Any) -> str:
    """Why a value cannot be written down as JSON (NaN, half a character, too deep, other types); empty when it can."""
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, TypeError, RecursionError) as error:
        return str(error).splitlines()[0][:200]
    return f"nested more than {MAX_DEPTH} deep" if _is_deep(value) else ""


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        inner = [each for each in level if isinstance(each, Mapping | list | tuple)]
        level = [item for each in inner for item in (each.values() if isinstance(each, Mapping) else each)]
        if not level:
            return False
    return any(isinstance(each, Mapping | list | tuple) for each in level)


def _decoded(data: str | bytes) -> Any:
    if len(data) > MAX_SUBMISSION_BYTES:
        raise SubmissionInvalid("submission too long", seen=len(data), expected=f"at most {MAX_SUBMISSION_BYTES} bytes")
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        text = data.decode(errors="replace") if isinstance(data, bytes) else data
        raise SubmissionInvalid(
            f"submission is not JSON ({error})", seen=_short(text), expected="a JSON object"
        ) from error


def _short(value: object, limit: int = 120) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."
