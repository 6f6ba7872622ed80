"""Checks by kind: their typed specification, the answer they belong to, and the pure function that grades them.

A domain adds its checks by `@check(...)` in a module of its own; `itbench.evaluate.grade` imports those modules.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from itbench.core.documents.base import Exact
from itbench.core.documents.result import CheckResult, Evidence
from itbench.core.documents.scenario import Scenario


class Spec(Exact):
    """Base of check specifications: frozen, unknown fields are errors."""


@dataclass(frozen=True)
class Case:
    """What a check may look at: the scenario with its truth, and the evidence of one trial."""

    scenario: Scenario
    evidence: Evidence
    answers: tuple[str, ...]


@dataclass(frozen=True)
class Finding:
    """What a check function returns: passed or not, what was wanted, what was seen, where it stands in the evidence."""

    passed: bool
    wanted: str
    seen: str
    where: str
    score: float | None = None
    details: dict[str, Any] | None = None
    label: str = ""


Grader = Callable[[Any, Case], Finding | Iterable[Finding]]


@dataclass(frozen=True)
class Kind:
    """One kind of check."""

    name: str
    spec: type[BaseModel]
    answer: str
    grade: Grader


KINDS: dict[str, Kind] = {}


def check(name: str, spec: type[BaseModel], *, answer: str) -> Callable[[Grader], Grader]:
    """Register a check function under the key that scenarios use.

    Args:
        name: the key in `checks:`.
        spec: model of its value.
        answer: the answer it belongs to: `diagnosis`, `mitigation`, `verdict`, `answer`.
    """

    def register(grade: Grader) -> Grader:
        if name in KINDS:
            raise ValueError(f"check {name!r} is registered twice")
        KINDS[name] = Kind(name, spec, answer, grade)
        return grade

    return register


def results(kind: Kind, spec: BaseModel, case: Case) -> list[CheckResult]:
    """Run one check; a check that sees several things gives several results."""
    found = kind.grade(spec, case)
    findings = [found] if isinstance(found, Finding) else list(found)
    return [
        CheckResult(
            name=kind.name + (f":{finding.label}" if finding.label else ""),
            kind=kind.name,
            answer=kind.answer,
            passed=finding.passed,
            wanted=finding.wanted,
            seen=finding.seen,
            where=finding.where,
            score=finding.score,
            details=finding.details or {},
        )
        for finding in findings
    ]
