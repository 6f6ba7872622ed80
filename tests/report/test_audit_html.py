"""The auditor's page."""

from itbench.report.audit_html import audit_html


def test_the_page_shows_findings_gaps_exceptions_and_hashes_and_loads_nothing(audit):
    page = audit_html(audit)
    for text in ("Pod/shop/p", "hostPID: true", "403 Forbidden", "agent of the node vendor", audit.evidence[0].sha256):
        assert text in page
    assert "<script" not in page.lower() and "http://" not in page and "src=" not in page


def test_names_from_the_estate_cannot_become_markup(audit):
    evil = audit.verdicts[0].subject.model_copy(update={"name": "<img onerror=alert(1)>"})
    first = audit.verdicts[0].model_copy(update={"subject": evil, "state": "not_satisfied", "observed": "<b>x</b>"})
    page = audit_html(audit.model_copy(update={"verdicts": (first, *audit.verdicts[1:])}))
    assert "<img" not in page and "<b>x</b>" not in page and "&lt;img" in page


def test_what_was_not_assessed_is_in_no_percentage(audit):
    page = audit_html(audit)
    assert "Subjects that comply</dt><dd>1 of 3" in page and "Coverage: assessed in scope</dt><dd>3 of 4" in page
