"""Rego, evaluated in a child process with limits. Called by policy and by drivers that judge what agents wrote."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from itbench.engines.child import Child, EngineCrash, EngineError

MAX_TIMEOUTS = 2
"""A policy that was too slow so often is not asked again."""
TIME_S = 5.0
"""Wall seconds for one evaluation, on top of the start of the process."""
START_S = 20.0


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What came of one evaluation.

    Args:
        value: the rule's value; None when there is none.
        cause: empty, `undefined`, `artifact_error` (syntax, types, crash) or `artifact_timeout`.
        detail: the engine's own words.
    """

    value: Any = None
    cause: str = ""
    detail: str = ""


def engine_name() -> str:
    """Engine and version, as records name it."""
    return f"regorus {version('gordon-to-regorus')}"


class Rego:
    """One policy and the child process that evaluates it; made by `policy`."""

    def __init__(self, text: str, rule: str, child: Child) -> None:
        self._text, self._rule, self._child = text, rule, child
        self._late = 0

    def variant(self, text: str) -> "Rego":
        """Another policy in the same child process (mutation tests)."""
        return Rego(text, self._rule, self._child)

    def evaluate(self, given: Any) -> Evaluation:
        """The value of the rule for one input; never raises for what the policy does."""
        if self._late >= MAX_TIMEOUTS:
            return Evaluation(cause="artifact_timeout", detail="not asked: the policy was too slow before")
        try:
            answer = self._child.ask({"policy": self._text, "rule": self._rule, "input": given})
        except EngineCrash as error:
            late = "no answer" in str(error.seen)
            self._late += late
            return Evaluation(cause="artifact_timeout" if late else "artifact_error", detail=str(error))
        except EngineError as error:
            return Evaluation(cause="artifact_error", detail=error.what)
        if "undefined" in answer:
            return Evaluation(cause="undefined", detail=f"{self._rule} has no value for this input")
        return Evaluation(answer["value"])


@contextmanager
def policy(text: str, rule: str, *, time_s: float = TIME_S) -> Iterator[Rego]:
    """A policy ready to be evaluated.

    Args:
        text: Rego v1 source.
        rule: full path, such as `data.check.result`.
        time_s: wall seconds for one evaluation.
    """
    with Child("itbench.engines.rego_policy", timeout_s=START_S) as child:
        child.ask({"policy": "package warm\nresult := true", "rule": "data.warm.result", "input": None})
        child.timeout_s = time_s
        yield Rego(text, rule, child)
