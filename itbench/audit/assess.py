"""From facts to verdicts: pure. Runs the controls of a profile, turns gaps into `not_assessed`, applies exceptions."""

import datetime
import hashlib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import itbench.policy.controls
from itbench import __version__
from itbench.audit import exceptions
from itbench.audit.exceptions import Waiver
from itbench.audit.facts import Facts, Sheet
from itbench.policy.controls.catalog import Profile
from itbench.policy.controls.model import Control, Found, Subject
from itbench.report.verdicts import (
    AuditReport,
    ControlId,
    ControlText,
    Engine,
    EvidenceRef,
    ExceptionRef,
    ManualText,
    Population,
    SubjectId,
    Verdict,
)

ENGINE = Engine(name="itbench", version=__version__)


@cache
def policy_sha256() -> str:
    """Digest of the sources of all controls: which policy a verdict was made with."""
    digest = hashlib.sha256()
    for file in sorted(Path(itbench.policy.controls.__file__).parent.glob("*.py")):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def assess(profile: Profile, facts: Facts, waivers: Sequence[Waiver] = ()) -> AuditReport:
    """Judge.

    Args:
        profile: which controls.
        facts: what was collected; the date of the collection decides which exceptions have expired.
        waivers: approved exceptions.
    """
    bench = Bench(profile, facts, waivers)
    verdicts = [verdict for control in profile.controls for verdict in bench.verdicts(control)]
    verdicts += bench.bad_exceptions()
    return AuditReport(
        profile=profile.key,
        title=profile.title,
        framework=profile.framework,
        version=profile.version,
        estate=facts.estate,
        about=dict(facts.about),
        started=facts.started,
        ended=facts.ended,
        tool=ENGINE,
        profile_sha256=policy_sha256(),
        controls=tuple(_text(control) for control in profile.controls),
        manual=tuple(ManualText(id=each.id, title=each.title, ask=each.ask) for each in profile.manual),
        verdicts=tuple(verdicts),
        populations=tuple(bench.population(control, verdicts) for control in profile.controls),
        evidence=tuple(evidence(sheet) for sheet in facts.sheets),
    )


def _text(control: Control) -> ControlText:
    return ControlText(
        id=control.id,
        title=control.title,
        severity=control.severity,
        expected=control.expected,
        why=control.why,
        fix=control.fix,
        related=control.related,
    )


def evidence(sheet: Sheet) -> EvidenceRef:
    """The reference to a sheet's file."""
    return EvidenceRef(
        path=sheet.path,
        sha256=sheet.sha256,
        collected_at=sheet.collected_at,
        collector=sheet.request,
        identity=sheet.identity,
    )


class Bench:
    """One profile on the facts of one estate."""

    def __init__(self, profile: Profile, facts: Facts, waivers: Sequence[Waiver]) -> None:
        self.profile, self.facts, self.waivers = profile, facts, waivers
        self.objects = facts.objects()
        self.today = datetime.date.fromisoformat(facts.ended[:10])
        self._refs = {sheet.resource: evidence(sheet) for sheet in facts.sheets}
        self._kinds = {obj.get("kind", ""): sheet.resource for sheet in facts.sheets for obj in sheet.items}

    def verdicts(self, control: Control) -> Iterator[Verdict]:
        """All records of a control; at least one, whatever was found."""
        gaps, seen = self.facts.gaps(control.resources), 0
        sure = control.by_subject or not gaps
        for found in sorted(control.check(self.objects), key=lambda each: each.subject) if sure else ():
            seen += 1
            yield self._verdict(control, found)
        if gaps:
            yield self._record(control, Subject("", "", ""), "not_assessed", reason="; ".join(gaps))
        elif not seen:
            yield self._record(
                control, Subject("", "", ""), "not_applicable", reason="population 0, all lists complete"
            )

    def _verdict(self, control: Control, found: Found) -> Verdict:
        if found.state != "not_satisfied":
            return self._record(control, found.subject, found.state, found.observed, found.reason)
        waiver = self._waiver(control, found.subject)
        if waiver is None:
            return self._record(control, found.subject, "not_satisfied", found.observed)
        if why := exceptions.fault(waiver, self.today):
            return self._record(control, found.subject, "not_satisfied", found.observed, why)
        accepted = self._record(control, found.subject, "accepted", found.observed, waiver.reason)
        return accepted.model_copy(update={"exception": ExceptionRef(**exceptions.as_data(waiver))})

    def _waiver(self, control: Control, subject: Subject) -> Waiver | None:
        return next((w for w in self.waivers if w.control == control.id and w.subject == str(subject)), None)

    def bad_exceptions(self) -> Iterator[Verdict]:
        """Exceptions that do not count are findings."""
        for waiver in self.waivers:
            if why := exceptions.fault(waiver, self.today):
                yield Verdict(
                    control=self._id(exceptions.CONTROL),
                    subject=self._subject(Subject("Exception", waiver.control, waiver.subject)),
                    state="not_satisfied",
                    severity="medium",
                    observed=why,
                    expected="an exact subject and a date that has not passed",
                    engine=ENGINE,
                    policy_sha256=policy_sha256(),
                )

    def _record(self, control: Control, subject: Subject, state: str, observed: str = "", reason: str = "") -> Verdict:
        own = self._kinds.get(subject.kind)
        resources = [own] if own in control.resources and control.by_subject else control.resources
        return Verdict.model_validate(
            {
                "control": self._id(control.id),
                "subject": self._subject(subject),
                "state": state,
                "severity": control.severity,
                "observed": observed,
                "expected": control.expected,
                "reason": reason,
                "evidence": tuple(self._refs[name] for name in resources if name in self._refs),
                "engine": ENGINE,
                "policy_sha256": policy_sha256(),
            }
        )

    def _id(self, number: str) -> ControlId:
        return ControlId(framework=self.profile.framework, version=self.profile.version, id=number)

    def _subject(self, subject: Subject) -> SubjectId:
        kind = subject.kind or "Cluster"
        return SubjectId(
            estate=self.facts.estate, kind=kind, namespace=subject.namespace, name=subject.name, uid=subject.uid
        )

    def population(self, control: Control, verdicts: Sequence[Verdict]) -> Population:
        """The numbers behind a control."""
        own = [verdict for verdict in verdicts if verdict.control.id == control.id]
        named = [verdict for verdict in own if verdict.subject.name]
        gaps = self.facts.gaps(control.resources)
        return Population(
            control=control.id,
            subjects=len(named),
            assessed=sum(verdict.state in ("satisfied", "not_satisfied", "accepted") for verdict in named),
            obtained="list " + ", ".join(control.resources),
            complete=not gaps,
            gaps="; ".join(gaps),
        )
