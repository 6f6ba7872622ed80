"""OSCAL 1.2.1 of an audit: assessment plan and assessment results, for tools of governance.

Plain data; with the extra `oscal` the documents are also checked by compliance-trestle. Trestle accepts references that lead
nowhere and hashes that are none, so `problems` looks for those, always.
"""

import importlib
import re
from collections.abc import Iterator
from typing import Any

from itbench.core.errors import ItbenchError
from itbench.report.verdicts import AuditReport, ControlText, State, SubjectId, Verdict, control_state, name_id

VERSION = "1.2.1"
PLAN_FILE = "assessment-plan.json"
TARGETS: dict[State, tuple[str, str]] = {
    "satisfied": ("satisfied", "pass"),
    "not_satisfied": ("not-satisfied", "fail"),
    "accepted": ("not-satisfied", "other"),
    "not_assessed": ("not-satisfied", "other"),
    "unsupported": ("not-satisfied", "other"),
}
"""State of a control -> state and reason of its finding; what is not applicable has no finding."""
REMARKS: dict[State, str] = {
    "accepted": "Violated under an approved exception.",
    "not_assessed": "Could not be assessed: facts are missing.",
    "unsupported": "Not covered by the engine.",
}
PROPERTIES = "urn:itbench:oscal"

Json = dict[str, Any]
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[45][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_REFERENCES = ("subject-uuid", "observation-uuid", "risk-uuid")


def assessment_results(report: AuditReport) -> Json:
    """The document with its root key."""
    result: Json = {
        "uuid": _id(report, "result"),
        "title": report.title,
        "description": f"Automated assessment of {report.profile}; read-only, by the API.",
        "start": report.started,
        "end": report.ended,
        "reviewed-controls": _reviewed(report),
        "local-definitions": {"inventory-items": [_item(report, subject) for subject in _subjects(report)]},
        "observations": [_observation(report, verdict) for verdict in report.verdicts],
        "findings": list(_findings(report)),
    }
    if risks := [_risk(verdict) for verdict in report.verdicts if verdict.exception is not None]:
        result["risks"] = risks
    for key in ("findings", "observations"):
        if not result[key]:
            del result[key]
    document: Json = {
        "uuid": _id(report, "results"),
        "metadata": _metadata(report, "Results"),
        "import-ap": {"href": PLAN_FILE},
        "results": [result],
    }
    if report.evidence:
        document["back-matter"] = {"resources": list(_resources(report))}
    return {"assessment-results": document}


def assessment_plan(report: AuditReport) -> Json:
    """What was meant to be assessed; the results refer to it."""
    return {
        "assessment-plan": {
            "uuid": _id(report, "plan"),
            "metadata": _metadata(report, "Plan"),
            "import-ssp": {"href": f"#{_id(report, 'ssp')}"},
            "reviewed-controls": _reviewed(report),
            "back-matter": {
                "resources": [
                    {
                        "uuid": _id(report, "ssp"),
                        "title": "System security plan",
                        "description": "To be supplied by the owner of the system; the audit has not seen one.",
                    }
                ]
            },
        }
    }


def problems(document: Json) -> list[str]:
    """What is wrong with identifiers, references and hashes of a document; empty when nothing is."""
    found, defined, used = [], set(), []
    for path, key, value in _walk(document, ""):
        if key == "uuid":
            if not _UUID.fullmatch(str(value)):
                found.append(f"{path}: not a UUID: {value!r}")
            if value in defined:
                found.append(f"{path}: UUID used twice: {value!r}")
            defined.add(value)
        elif key in _REFERENCES:
            used.append((path, value))
        elif key == "href" and str(value).startswith("#"):
            used.append((path, str(value)[1:]))
        elif key == "hashes":
            found += [f"{path}: not a SHA-256: {each['value']!r}" for each in value if not _sha256(each)]
    return found + [f"{path}: refers to nothing: {value!r}" for path, value in used if value not in defined]


def check_with_trestle(document: Json) -> bool:
    """Let compliance-trestle read a document; False when it is not installed.

    Raises:
        ItbenchError: trestle refuses the document.
    """
    ((root, content),) = document.items()
    kind = {"assessment-results": "AssessmentResults", "assessment-plan": "AssessmentPlan"}[root]
    try:
        module = importlib.import_module(f"trestle.oscal.{root.replace('-', '_')}")
    except ImportError:
        return False
    try:
        getattr(module, kind)(**content)
    except ValueError as error:
        raise ItbenchError(
            f"the OSCAL {root} is not valid", seen=str(error).splitlines()[0], expected=f"OSCAL {VERSION}"
        ) from error
    return True


def _walk(value: Any, path: str) -> Iterator[tuple[str, str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{path}.{key}", key, inner
            yield from _walk(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from _walk(inner, f"{path}[{at}]")


def _sha256(hashed: Json) -> bool:
    return hashed.get("algorithm") == "SHA-256" and bool(re.fullmatch(r"[0-9a-f]{64}", str(hashed.get("value"))))


def _id(report: AuditReport, *parts: str) -> str:
    return name_id(report.profile, report.estate, report.started, *parts)


def _metadata(report: AuditReport, what: str) -> Json:
    return {
        "title": f"{what} of the assessment: {report.title}",
        "last-modified": report.ended,
        "version": report.ended,
        "oscal-version": VERSION,
    }


def _control(report: AuditReport, number: str) -> str:
    """Control ids are tokens and may not begin with a digit."""
    return f"{report.framework}-{number}"


def _reviewed(report: AuditReport) -> Json:
    chosen = [{"control-id": _control(report, text.id)} for text in report.controls]
    return {"control-selections": [{"description": report.profile, "include-controls": chosen}]}


def _subjects(report: AuditReport) -> list[SubjectId]:
    return list(dict.fromkeys(verdict.subject for verdict in report.verdicts))


def _subject_id(subject: SubjectId) -> str:
    return name_id("subject", subject.estate, subject.text, subject.uid)


def _item(report: AuditReport, subject: SubjectId) -> Json:
    named = {"kind": subject.kind, "namespace": subject.namespace, "name": subject.name, "uid": subject.uid}
    props = [{"name": name, "ns": PROPERTIES, "value": value} for name, value in named.items() if value]
    return {"uuid": _subject_id(subject), "description": subject.text or report.estate, "props": props}


def _evidence_id(report: AuditReport, path: str) -> str:
    return _id(report, "evidence", path)


def _observation(report: AuditReport, verdict: Verdict) -> Json:
    collected = max((ref.collected_at for ref in verdict.evidence), default=report.ended)
    found: Json = {
        "uuid": verdict.id,
        "title": f"{verdict.control.id} {verdict.subject.text}",
        "description": verdict.observed or verdict.reason or verdict.state,
        "props": [{"name": "state", "ns": PROPERTIES, "value": verdict.state.replace("_", "-")}],
        "methods": ["TEST-AUTOMATED"],
        "subjects": [{"subject-uuid": _subject_id(verdict.subject), "type": "inventory-item"}],
        "collected": collected,
    }
    if verdict.evidence:
        found["relevant-evidence"] = [
            {"href": f"#{_evidence_id(report, ref.path)}", "description": ref.collector} for ref in verdict.evidence
        ]
    return found


def _findings(report: AuditReport) -> Iterator[Json]:
    for text in report.controls:
        own = [verdict for verdict in report.verdicts if verdict.control.id == text.id]
        state = control_state(own)
        if own and state in TARGETS:
            yield _finding(report, text, own, state)


def _finding(report: AuditReport, text: ControlText, own: list[Verdict], state: State) -> Json:
    target, reason = TARGETS[state]
    found: Json = {
        "uuid": _id(report, "finding", text.id),
        "title": f"{text.id} {text.title}",
        "description": f"Expected: {text.expected}.",
        "target": {
            "type": "objective-id",
            "target-id": _control(report, text.id) + "_obj",
            "status": {"state": target, "reason": reason, **({"remarks": REMARKS[state]} if state in REMARKS else {})},
        },
        "related-observations": [{"observation-uuid": verdict.id} for verdict in own],
    }
    if risks := [{"risk-uuid": name_id("risk", verdict.key)} for verdict in own if verdict.exception is not None]:
        found["related-risks"] = risks
    return found


def _risk(verdict: Verdict) -> Json:
    assert verdict.exception is not None
    return {
        "uuid": name_id("risk", verdict.key),
        "title": f"{verdict.control.id} {verdict.subject.text}",
        "description": verdict.observed,
        "statement": f"{verdict.exception.reason} (approved by {verdict.exception.approver})",
        "status": "deviation-approved",
        "deadline": f"{verdict.exception.expires}T23:59:59Z",
        "related-observations": [{"observation-uuid": verdict.id}],
    }


def _resources(report: AuditReport) -> Iterator[Json]:
    for ref in report.evidence:
        hashed = {"algorithm": "SHA-256", "value": ref.sha256}
        yield {
            "uuid": _evidence_id(report, ref.path),
            "title": ref.path,
            "description": f"{ref.collector} as {ref.identity or 'unknown identity'} at {ref.collected_at}",
            "rlinks": [{"href": ref.path, "media-type": "application/json", "hashes": [hashed]}],
        }
