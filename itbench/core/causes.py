"""The one table that says, for each cause of trouble, whether a trial is retried, graded and valid.

Used by `run` (what to do next) and `evaluate` (what an outcome means). A test proves the table total.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal


class Cause(StrEnum):
    """Why a trial ended as it did. `checks`: nothing went wrong, the checks decide."""

    CHECKS = "checks"
    UNSUPPORTED_HERE = "unsupported_here"
    STAGE_FAILED = "stage_failed"
    IMAGE_UNAVAILABLE = "image_unavailable"
    ENVIRONMENT_LOST = "environment_lost"
    CHECKPOINT_CORRUPT = "checkpoint_corrupt"
    BASELINE_NOT_GREEN = "baseline_not_green"
    SYMPTOM_ABSENT = "symptom_absent"
    SCENARIO_DEFECT = "scenario_defect"
    AGENT_NOT_STARTABLE = "agent_not_startable"
    AGENT_AUTH = "agent_auth"
    MODEL_UNKNOWN = "model_unknown"
    PROVIDER_RATE_LIMIT = "provider_rate_limit"
    PROVIDER_5XX = "provider_5xx"
    PROVIDER_STALLED = "provider_stalled"
    PROVIDER_QUOTA = "provider_quota"
    NETWORK = "network"
    TOOL_SERVER_CRASH = "tool_server_crash"
    TIME_LIMIT = "time_limit"
    WALL_LIMIT = "wall_limit"
    STEP_LIMIT = "step_limit"
    TOKEN_LIMIT = "token_limit"
    COST_LIMIT = "cost_limit"
    CONTEXT_EXCEEDED = "context_exceeded"
    OUTPUT_EXCEEDED = "output_exceeded"
    REFUSAL = "refusal"
    AGENT_EXIT_NONZERO = "agent_exit_nonzero"
    AGENT_CRASH = "agent_crash"
    GAVE_UP = "gave_up"
    NO_SUBMISSION = "no_submission"
    SUBMISSION_INVALID = "submission_invalid"
    AGENT_OOM = "agent_oom"
    ENVIRONMENT_DESTROYED_BY_AGENT = "environment_destroyed_by_agent"
    RESOURCE_EXHAUSTED_BY_AGENT = "resource_exhausted_by_agent"
    INTEGRITY = "integrity"
    DAMAGED = "damaged"
    EVIDENCE_INCOMPLETE = "evidence_incomplete"
    ARTIFACT_ERROR = "artifact_error"
    ARTIFACT_TIMEOUT = "artifact_timeout"
    EVALUATOR_ERROR = "evaluator_error"
    EVALUATOR_TIMEOUT = "evaluator_timeout"
    JUDGE_UNAVAILABLE = "judge_unavailable"
    UNRATED = "unrated"
    INTERRUPTED = "interrupted"
    RUNNER_CRASH = "runner_crash"
    UNKNOWN = "unknown"


Verdict = Literal["checks", "fail", "invalid", "none"]


@dataclass(frozen=True, slots=True)
class Rule:
    """What follows from a cause.

    Args:
        retries: how often the trial is tried again.
        grade: whether the evidence is graded.
        outcome: `checks` (they decide), `fail`, `invalid`, or `none` (no outcome yet: the trial resumes).
        aborts: the whole run ends after the first such trial.
    """

    retries: int
    grade: bool
    outcome: Verdict
    aborts: bool = False

    @property
    def valid(self) -> bool:
        """Whether the trial counts in the denominator."""
        return self.outcome in ("checks", "fail")


_ENVIRONMENT = Rule(2, False, "invalid")
_USAGE = Rule(0, False, "invalid", aborts=True)
_PROVIDER = Rule(3, True, "invalid")
_AGENT = Rule(0, True, "checks")
_JUDGE = Rule(0, False, "invalid")

TABLE: dict[Cause, Rule] = {
    Cause.CHECKS: _AGENT,
    Cause.UNSUPPORTED_HERE: Rule(0, False, "invalid"),
    Cause.STAGE_FAILED: _ENVIRONMENT,
    Cause.IMAGE_UNAVAILABLE: _ENVIRONMENT,
    Cause.ENVIRONMENT_LOST: _ENVIRONMENT,
    Cause.CHECKPOINT_CORRUPT: Rule(1, False, "invalid"),
    Cause.BASELINE_NOT_GREEN: Rule(1, False, "invalid"),
    Cause.SYMPTOM_ABSENT: Rule(1, False, "invalid"),
    Cause.SCENARIO_DEFECT: Rule(0, False, "invalid"),
    Cause.AGENT_NOT_STARTABLE: _USAGE,
    Cause.AGENT_AUTH: _USAGE,
    Cause.MODEL_UNKNOWN: _USAGE,
    Cause.PROVIDER_RATE_LIMIT: _PROVIDER,
    Cause.PROVIDER_5XX: _PROVIDER,
    Cause.PROVIDER_STALLED: _PROVIDER,
    Cause.NETWORK: _PROVIDER,
    Cause.PROVIDER_QUOTA: Rule(0, True, "invalid", aborts=True),
    Cause.TOOL_SERVER_CRASH: _ENVIRONMENT,
    Cause.TIME_LIMIT: _AGENT,
    Cause.WALL_LIMIT: _AGENT,
    Cause.STEP_LIMIT: _AGENT,
    Cause.TOKEN_LIMIT: _AGENT,
    Cause.COST_LIMIT: _AGENT,
    Cause.CONTEXT_EXCEEDED: _AGENT,
    Cause.OUTPUT_EXCEEDED: _AGENT,
    Cause.REFUSAL: _AGENT,
    Cause.AGENT_EXIT_NONZERO: _AGENT,
    Cause.AGENT_CRASH: _AGENT,
    Cause.GAVE_UP: _AGENT,
    Cause.NO_SUBMISSION: _AGENT,
    Cause.SUBMISSION_INVALID: _AGENT,
    Cause.AGENT_OOM: _AGENT,
    Cause.ENVIRONMENT_DESTROYED_BY_AGENT: Rule(0, True, "fail"),
    Cause.RESOURCE_EXHAUSTED_BY_AGENT: Rule(0, True, "fail"),
    Cause.INTEGRITY: Rule(0, True, "fail"),
    Cause.DAMAGED: Rule(0, True, "fail"),
    Cause.EVIDENCE_INCOMPLETE: Rule(1, False, "invalid"),
    Cause.ARTIFACT_ERROR: _AGENT,
    Cause.ARTIFACT_TIMEOUT: _AGENT,
    Cause.EVALUATOR_ERROR: _JUDGE,
    Cause.EVALUATOR_TIMEOUT: _JUDGE,
    Cause.JUDGE_UNAVAILABLE: _JUDGE,
    Cause.UNRATED: Rule(0, False, "invalid"),
    Cause.INTERRUPTED: Rule(0, False, "none"),
    Cause.RUNNER_CRASH: Rule(0, False, "none"),
    Cause.UNKNOWN: Rule(0, True, "invalid"),
}
"""Source: `docs/outcomes.md`, after Harbor's table, with closed causes and a fail-closed default."""


def rule(cause: str) -> Rule:
    """The rule of a cause; an unknown one is never a pass and never valid."""
    return TABLE[Cause(cause)] if cause in Cause._value2member_map_ else TABLE[Cause.UNKNOWN]
