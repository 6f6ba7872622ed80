"""The page of an audit for people: summary, findings by severity, coverage, exceptions, method. One file, nothing loaded."""

from collections.abc import Iterable, Sequence
from html import escape

from itbench.report.html import facts, page
from itbench.report.verdicts import SEVERITIES, AuditReport, Verdict, compliance, control_state, counts, coverage

SIGNS = {
    "satisfied": ("pass", "✓ holds"),
    "not_satisfied": ("fail", "✗ violated"),
    "accepted": ("invalid", "~ accepted"),
    "not_applicable": ("muted", "– not applicable"),
    "not_assessed": ("invalid", "? not assessed"),
    "unsupported": ("invalid", "? unsupported"),
}


def audit_html(report: AuditReport) -> str:
    """The whole document."""
    parts = [
        f"<h1>{escape(report.title)}</h1>",
        f'<p class="sub">{escape(report.profile)} on {escape(report.about.get("server", report.estate))}, '
        f"{escape(report.started)} to {escape(report.ended)}</p>",
        facts(_summary(report)),
        _controls(report),
        _findings(report),
        _open(report),
        _accepted(report),
        _coverage(report),
        _manual(report),
        _method(report),
    ]
    return page(f"Audit {report.profile}", "".join(parts))


def _share(pair: tuple[int, int]) -> str:
    part, whole = pair
    return f"{part} of {whole}" + (f" ({100 * part / whole:.0f} %)" if whole else "")


def _summary(report: AuditReport) -> list[tuple[str, str]]:
    found = counts(report.verdicts)
    return [
        ("Subjects that comply", _share(compliance(report.verdicts))),
        ("Coverage: assessed in scope", _share(coverage(report.verdicts))),
        ("Violations", str(found["not_satisfied"])),
        ("Accepted by exception", str(found["accepted"])),
        ("Not assessed", str(found["not_assessed"] + found["unsupported"])),
        ("Controls for people to assess", str(len(report.manual))),
    ]


def _table(title: str, caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells are HTML already."""
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    if not body:
        return ""
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    label = escape(title, quote=True)
    return (
        f'<h2>{escape(title)}</h2><div class="scroll" tabindex="0" role="region" aria-label="{label}">'
        f"<table><caption>{escape(caption)}</caption><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _sign(state: str) -> str:
    style, words = SIGNS[state]
    return f'<span class="{style}">{escape(words)}</span>'


def _of(report: AuditReport, control: str) -> list[Verdict]:
    return [verdict for verdict in report.verdicts if verdict.control.id == control]


def _controls(report: AuditReport) -> str:
    rows = []
    for text in report.controls:
        own = _of(report, text.id)
        bad = sum(verdict.state == "not_satisfied" for verdict in own)
        rows.append(
            (
                f"<code>{escape(text.id)}</code>",
                escape(text.title),
                escape(text.severity),
                _sign(control_state(own)),
                f"{bad} of {sum(verdict.state not in ('not_applicable',) for verdict in own)}",
                escape(", ".join(text.related)),
            )
        )
    head = ("Control", "Asks for", "Severity", "State", "Violations", "See also")
    return _table("Controls", "A control's state is that of its worst subject.", head, rows)


def _findings(report: AuditReport) -> str:
    bad = [verdict for verdict in report.verdicts if verdict.state == "not_satisfied"]
    parts = []
    for severity in reversed(SEVERITIES):
        for control in dict.fromkeys(verdict.control.id for verdict in bad if verdict.severity == severity):
            parts.append(_finding(report, control, [verdict for verdict in bad if verdict.control.id == control]))
    return f"<h2>Findings</h2>{''.join(parts)}" if parts else "<h2>Findings</h2><p>No violation was found.</p>"


def _finding(report: AuditReport, control: str, verdicts: list[Verdict]) -> str:
    known = {text.id: text for text in report.controls}
    title = known[control].title if control in known else "An exception that does not count"
    lines = "".join(
        f"<tr><td><code>{escape(verdict.subject.text)}</code></td><td>{escape(verdict.observed or verdict.reason)}</td>"
        f"<td>{_proof(verdict)}</td></tr>"
        for verdict in verdicts
    )
    words = ""
    if control in known:
        text = known[control]
        words = f"<p>Expected: {escape(text.expected)}.<br>Why it matters: {escape(text.why)}.<br>Remedy: {escape(text.fix)}.</p>"
    head = '<tr><th scope="col">What</th><th scope="col">Observed</th><th scope="col">Evidence</th></tr>'
    return (
        f"<details open><summary>{escape(control)} {escape(title)} ({escape(verdicts[0].severity)}, {len(verdicts)})</summary>"
        f'{words}<div class="scroll"><table><thead>{head}</thead><tbody>{lines}</tbody></table></div></details>'
    )


def _proof(verdict: Verdict) -> str:
    return "<br>".join(
        f'<a href="{escape(ref.path, quote=True)}">{escape(ref.path)}</a> <code>{escape(ref.sha256[:12])}</code>'
        for ref in verdict.evidence
    )


def _open(report: AuditReport) -> str:
    rows = [
        (f"<code>{escape(v.control.id)}</code>", escape(v.subject.text), _sign(v.state), escape(v.reason))
        for v in report.verdicts
        if v.state in ("not_assessed", "unsupported")
    ]
    return _table("Not assessed", "Counted neither for nor against.", ("Control", "Subject", "State", "Why not"), rows)


def _accepted(report: AuditReport) -> str:
    rows = [
        (
            f"<code>{escape(v.control.id)}</code>",
            f"<code>{escape(v.subject.text)}</code>",
            escape(v.observed),
            escape(v.exception.reason),
            escape(f"{v.exception.approver}, until {v.exception.expires}"),
        )
        for v in report.verdicts
        if v.exception is not None
    ]
    head = ("Control", "Subject", "Observed", "Reason", "Approved by")
    return _table("Accepted exceptions", "Violations that somebody answers for.", head, rows)


def _coverage(report: AuditReport) -> str:
    rows = [
        (
            f"<code>{escape(p.control)}</code>",
            str(p.subjects),
            str(p.assessed),
            escape(p.obtained) + (f"<br>{escape(p.gaps)}" if p.gaps else ""),
        )
        for p in report.populations
    ]
    return _table("Coverage", "Subjects of each control.", ("Control", "Subjects", "Assessed", "Obtained by"), rows)


def _manual(report: AuditReport) -> str:
    rows = [(f"<code>{escape(m.id)}</code>", escape(m.title), escape(m.ask)) for m in report.manual]
    caption = "No API answers these; they are outside of every number above."
    return _table("For people to assess", caption, ("Control", "Asks for", "Ask for"), rows)


def _method(report: AuditReport) -> str:
    rows = [
        (
            f'<a href="{escape(ref.path, quote=True)}">{escape(ref.path)}</a>',
            f"<code>{escape(ref.sha256)}</code>",
            escape(ref.collected_at),
            escape(ref.collector),
        )
        for ref in report.evidence
    ]
    about = [(name.replace("_", " ").capitalize(), value) for name, value in sorted(report.about.items()) if value]
    about += [("Tool", f"{report.tool.name} {report.tool.version}"), ("Profile hash", report.profile_sha256[:16])]
    words = (
        "<h2>Method and limits</h2><p>Every fact was read with get and list requests under the identity below; nothing was "
        "written to the estate. Values of Secrets were not asked for; environment values and ConfigMap contents are left out of "
        "the evidence. The verdicts can be repeated from the evidence files without the estate.</p>"
    )
    return (
        words
        + facts(about)
        + _table("Evidence", "Collected facts with their SHA-256.", ("File", "SHA-256", "Collected", "Request"), rows)
    )
