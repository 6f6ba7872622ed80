"""The vocabulary of controls: what a control needs, what it says about a subject. Used by every module beside it, and by audit.

A control is a pure function from objects to findings. It never sees a client, a clock or the reasons why a list is missing:
`itbench.audit.assess` knows which lists are complete and turns gaps into `not_assessed`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Obj = dict[str, Any]
Objects = Mapping[str, list[Obj]]
"""Resource (`deployments.apps`) -> objects, as a client lists them."""
State = Literal["satisfied", "not_satisfied", "not_applicable"]
Severity = Literal["high", "medium", "low"]
SEVERITIES: tuple[Severity, ...] = ("low", "medium", "high")


@dataclass(frozen=True, slots=True, order=True)
class Subject:
    """What a finding is about."""

    kind: str
    namespace: str
    name: str
    uid: str = ""

    @classmethod
    def of(cls, obj: Obj) -> "Subject":
        """The subject that an object is."""
        meta = obj["metadata"]
        return cls(obj.get("kind", ""), meta.get("namespace", ""), meta.get("name", ""), meta.get("uid", ""))

    def __str__(self) -> str:
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)


@dataclass(frozen=True, slots=True)
class Found:
    """What a control says about one subject.

    Args:
        observed: the facts that decided, as paths and values.
        reason: why it does not apply, where it does not.
    """

    subject: Subject
    state: State
    observed: str = ""
    reason: str = ""


Check = Callable[[Objects], Iterable[Found]]


@dataclass(frozen=True)
class Control:
    """One control of a benchmark, in our own words.

    Args:
        id: of the benchmark that the profile names.
        title: what is asked for.
        severity: of a violation.
        resources: lists that must be complete before anything absent counts as absent.
        check: the function.
        expected: what a compliant subject shows.
        why: what an attacker gains from a violation.
        fix: what to do about it.
        related: ids of other frameworks, such as `NIST AC-6`.
        by_subject: a subject is judged by itself alone, so that a gap in another list does not touch its verdict.
    """

    id: str
    title: str
    severity: Severity
    resources: tuple[str, ...]
    check: Check = field(repr=False)
    expected: str
    why: str
    fix: str
    related: tuple[str, ...] = ()
    by_subject: bool = True


@dataclass(frozen=True)
class Manual:
    """A control that no API can answer, and what an auditor has to ask for."""

    id: str
    title: str
    ask: str


def judged(subject: Subject, faults: Iterable[str], fine: str) -> Found:
    """Not satisfied with all faults named, or satisfied."""
    seen = list(faults)
    return Found(subject, "not_satisfied", "; ".join(seen)) if seen else Found(subject, "satisfied", fine)


def items(objects: Objects, resources: Iterable[str]) -> Iterator[Obj]:
    """The objects of several resources, one after the other."""
    for resource in resources:
        yield from objects.get(resource, ())
