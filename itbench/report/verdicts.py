"""Verdict records of an audit: one per control and subject, in six states, each with the evidence it rests on.

`itbench.audit` fills an `AuditReport`; the exporters beside this module (`audit_html`, `sarif`, `oscal`) and the command line
draw it.
A control that could not be assessed is never counted as held.
"""

import uuid
from collections import Counter
from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from itbench.core.documents.base import Document

State = Literal["satisfied", "not_satisfied", "accepted", "not_applicable", "not_assessed", "unsupported"]
STATES: tuple[State, ...] = (
    "not_satisfied",
    "not_assessed",
    "unsupported",
    "accepted",
    "satisfied",
    "not_applicable",
)
"""In the order in which a reader wants them."""
COUNTED: tuple[State, ...] = ("satisfied", "not_satisfied", "accepted")
OPEN: tuple[State, ...] = ("not_assessed", "unsupported")
SEVERITIES = ("low", "medium", "high")
NAMESPACE = uuid.UUID("6f0c2b52-3c0c-5a2b-9a52-0d7f6c1e7b11")
"""Of our name-based ids: equal records have equal ids in every run."""


class ControlId(Document):
    """Which control of which edition."""

    framework: str
    version: str
    id: str


class SubjectId(Document):
    """What was judged."""

    estate: str
    kind: str
    namespace: str = ""
    name: str = ""
    uid: str = ""

    @property
    def text(self) -> str:
        """`Deployment/shop/cart`."""
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)


class EvidenceRef(Document):
    """A file of collected facts."""

    path: str
    sha256: str
    collected_at: str
    collector: str
    identity: str


class Engine(Document):
    """What judged."""

    name: str
    version: str


class ExceptionRef(Document):
    """The approved exception that turned a violation into an accepted one."""

    reason: str
    approver: str
    expires: str


class Verdict(Document):
    """One record."""

    control: ControlId
    subject: SubjectId
    state: State
    severity: str
    observed: str = ""
    expected: str = ""
    reason: str = ""
    evidence: tuple[EvidenceRef, ...] = ()
    engine: Engine
    policy_sha256: str
    exception: ExceptionRef | None = None

    @property
    def key(self) -> str:
        """What the record is about: equal in every run on the same estate."""
        control, subject = self.control, self.subject
        return "|".join((control.framework, control.version, control.id, subject.estate, subject.text, subject.uid))

    @property
    def id(self) -> str:
        """A name-based UUID of the key."""
        return name_id("verdict", self.key)


class ControlText(Document):
    """A control in our words."""

    id: str
    title: str
    severity: str
    expected: str
    why: str
    fix: str
    related: tuple[str, ...] = ()


class ManualText(Document):
    """A control that people have to assess."""

    id: str
    title: str
    ask: str


class Population(Document):
    """How many subjects a control has, how they were obtained, and how many could be judged."""

    control: str
    subjects: int
    assessed: int
    obtained: str
    complete: bool
    gaps: str = ""


class AuditReport(Document):
    """An audit of one estate by one profile."""

    profile: str
    title: str
    framework: str
    version: str
    estate: str
    """Fingerprint of the estate."""
    about: dict[str, str] = Field(default_factory=dict)
    """Address, server version, context, identity, as far as known."""
    started: str
    ended: str
    tool: Engine
    profile_sha256: str
    controls: tuple[ControlText, ...]
    manual: tuple[ManualText, ...] = ()
    verdicts: tuple[Verdict, ...]
    populations: tuple[Population, ...] = ()
    evidence: tuple[EvidenceRef, ...] = ()

    def text(self, control: str) -> ControlText:
        """The words of a control; KeyError for an unknown id."""
        return {each.id: each for each in self.controls}[control]


def name_id(*parts: str) -> str:
    """A UUID (version 5) that depends on its parts only."""
    return str(uuid.uuid5(NAMESPACE, "\x1f".join(parts)))


def counts(verdicts: Iterable[Verdict]) -> dict[State, int]:
    """How many records are in each state; all six are there."""
    found = Counter(verdict.state for verdict in verdicts)
    return {state: found[state] for state in STATES}


def compliance(verdicts: Iterable[Verdict]) -> tuple[int, int]:
    """(satisfied, satisfied + not_satisfied + accepted): what could not be assessed is in neither."""
    found = counts(verdicts)
    return found["satisfied"], sum(found[state] for state in COUNTED)


def coverage(verdicts: Iterable[Verdict]) -> tuple[int, int]:
    """(assessed, in scope): records that are not applicable are in neither."""
    found = counts(verdicts)
    assessed = sum(found[state] for state in COUNTED)
    return assessed, assessed + sum(found[state] for state in OPEN)


def control_state(verdicts: Iterable[Verdict]) -> State:
    """The state of a control as a whole: its worst record; `not_applicable` when there is nothing it applies to."""
    present = {verdict.state for verdict in verdicts}
    return next((state for state in STATES if state in present), "not_assessed")


def exit_code(verdicts: Iterable[Verdict], fail_on: str = "") -> int:
    """0: all in scope assessed and the gate held; 1: a violation at or above `fail_on`; 3: something could not be assessed."""
    known = list(verdicts)
    bad = [verdict for verdict in known if verdict.state == "not_satisfied"]
    if fail_on and any(SEVERITIES.index(verdict.severity) >= SEVERITIES.index(fail_on) for verdict in bad):
        return 1
    return 3 if any(verdict.state in OPEN for verdict in known) else 0
