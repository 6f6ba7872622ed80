"""Writes an audit in the formats that were asked for, all from the same report. Called by the command line."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from itbench.audit.facts import canonical
from itbench.core.errors import ItbenchError, UsageError
from itbench.report import oscal
from itbench.report.audit_html import audit_html
from itbench.report.sarif import sarif
from itbench.report.verdicts import AuditReport

Files = Mapping[str, bytes]
COLUMNS = ("control", "severity", "state", "kind", "namespace", "name", "observed", "expected", "reason", "evidence")


def _html(report: AuditReport) -> Files:
    return {"report.html": audit_html(report).encode()}


def _json(report: AuditReport) -> Files:
    document = report.model_dump(mode="json")
    for record, verdict in zip(document["verdicts"], report.verdicts, strict=True):
        record["id"] = verdict.id
    return {"audit.json": canonical(document)}


def _sarif(report: AuditReport) -> Files:
    return {"audit.sarif": canonical(sarif(report))}


def _oscal(report: AuditReport) -> Files:
    files = {
        oscal.PLAN_FILE: oscal.assessment_plan(report),
        "assessment-results.json": oscal.assessment_results(report),
    }
    for name, document in files.items():
        if wrong := oscal.problems(document):
            raise ItbenchError(
                f"{name} is not consistent", seen=wrong[0], expected="references that lead somewhere", hint="report it"
            )
        oscal.check_with_trestle(document)
    return {name: canonical(document) for name, document in files.items()}


def _csv(report: AuditReport) -> Files:
    text = io.StringIO()
    sheet = csv.writer(text, lineterminator="\n")
    sheet.writerow(COLUMNS)
    for verdict in report.verdicts:
        subject, paths = verdict.subject, " ".join(ref.path for ref in verdict.evidence)
        row = (verdict.control.id, verdict.severity, verdict.state, subject.kind, subject.namespace, subject.name)
        sheet.writerow(map(_cell, (*row, verdict.observed, verdict.expected, verdict.reason, paths)))
    return {"audit.csv": text.getvalue().encode()}


def _cell(text: str) -> str:
    """Names come from the estate: a spreadsheet must not take one for a formula."""
    return "'" + text if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


FORMATS: Mapping[str, Callable[[AuditReport], Files]] = {
    "html": _html,
    "json": _json,
    "sarif": _sarif,
    "oscal": _oscal,
    "csv": _csv,
}


def chosen(text: str) -> tuple[str, ...]:
    """`html,sarif` -> names of formats.

    Raises:
        UsageError: a format that there is not.
    """
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in FORMATS:
            raise UsageError("no such format", seen=name, expected=", ".join(FORMATS))
    return names


def publish(report: AuditReport, formats: Iterable[str], folder: Path) -> list[Path]:
    """Write the files of every format into a folder; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in formats:
        for file, data in FORMATS[name](report).items():
            (folder / file).write_bytes(data)
            written.append(folder / file)
    return written
