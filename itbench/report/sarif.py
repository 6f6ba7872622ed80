"""SARIF 2.1.0 of an audit, for code-scanning front ends: a rule per control, a result per record.

Fingerprints come from what a record is about, so that they stay the same from run to run.
"""

import hashlib
from collections.abc import Iterator
from typing import Any

from itbench.report.verdicts import AuditReport, ControlText, State, Verdict

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
KINDS: dict[State, str] = {
    "satisfied": "pass",
    "not_satisfied": "fail",
    "accepted": "fail",
    "not_applicable": "notApplicable",
    "not_assessed": "open",
    "unsupported": "open",
}
LEVELS = {"high": "error", "medium": "warning", "low": "note"}

Json = dict[str, Any]


def sarif(report: AuditReport) -> Json:
    """The document as plain data."""
    frameworks = sorted({report.framework, *(name for name, _, _ in _related(report))})
    run: Json = {
        "tool": {
            "driver": {
                "name": report.tool.name,
                "semanticVersion": report.tool.version,
                "rules": [_rule(report, text, frameworks) for text in report.controls],
                "supportedTaxonomies": [{"name": name, "index": at} for at, name in enumerate(frameworks)],
            }
        },
        "taxonomies": [_taxonomy(report, name) for name in frameworks],
        "invocations": [
            {
                "executionSuccessful": not any(verdict.state == "not_assessed" for verdict in report.verdicts),
                "startTimeUtc": report.started,
                "endTimeUtc": report.ended,
            }
        ],
        "artifacts": [
            {"location": {"uri": ref.path}, "hashes": {"sha-256": ref.sha256}, "mimeType": "application/json"}
            for ref in report.evidence
        ],
        "results": [_result(report, verdict) for verdict in report.verdicts],
        "columnKind": "utf16CodeUnits",
        "properties": {"profile": report.profile, "estate": report.estate},
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _related(report: AuditReport) -> Iterator[tuple[str, str, str]]:
    """(framework, id there, our control)."""
    for text in report.controls:
        yield report.framework, text.id, text.id
        for other in text.related:
            name, _, number = other.partition(" ")
            yield name, number, text.id


def _taxonomy(report: AuditReport, name: str) -> Json:
    numbers = sorted({number for framework, number, _ in _related(report) if framework == name})
    version = {"version": report.version} if name == report.framework else {}
    return {"name": name, **version, "taxa": [{"id": number} for number in numbers]}


def _rule(report: AuditReport, text: ControlText, frameworks: list[str]) -> Json:
    links = [
        {
            "target": {"id": number, "toolComponent": {"name": name, "index": frameworks.index(name)}},
            "kinds": ["equal"] if name == report.framework else ["relevant"],
        }
        for name, number, control in _related(report)
        if control == text.id
    ]
    return {
        "id": text.id,
        "shortDescription": {"text": text.title},
        "fullDescription": {"text": f"{text.expected}. Why: {text.why}."},
        "help": {"text": text.fix},
        "defaultConfiguration": {"level": LEVELS[text.severity]},
        "relationships": links,
    }


def _result(report: AuditReport, verdict: Verdict) -> Json:
    kind = KINDS[verdict.state]
    index = [text.id for text in report.controls].index(verdict.control.id) if _known(report, verdict) else -1
    message = verdict.observed or verdict.reason or report.title
    result: Json = {
        "ruleId": verdict.control.id,
        "ruleIndex": index,
        "kind": kind,
        "level": LEVELS[verdict.severity] if kind == "fail" else "none",
        "message": {"text": f"{verdict.subject.text}: {message}"},
        "guid": verdict.id,
        "partialFingerprints": {"record/v1": hashlib.sha256(verdict.key.encode()).hexdigest()},
        "locations": [_location(verdict)],
        "properties": {"state": verdict.state},
    }
    if index < 0:
        del result["ruleIndex"]
    if verdict.exception is not None:
        why = f"{verdict.exception.reason} (approved by {verdict.exception.approver} until {verdict.exception.expires})"
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": why}]
    return result


def _known(report: AuditReport, verdict: Verdict) -> bool:
    return any(text.id == verdict.control.id for text in report.controls)


def _location(verdict: Verdict) -> Json:
    logical = {"fullyQualifiedName": verdict.subject.text, "kind": "object"}
    if verdict.subject.name:
        logical["name"] = verdict.subject.name
    place: Json = {"logicalLocations": [logical]}
    if verdict.evidence:
        where = {"uri": verdict.evidence[0].path}
        place["physicalLocation"] = {"artifactLocation": where, "region": {"startLine": 1}}
    return place
