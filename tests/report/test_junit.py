"""JUnit: a missed check is a failure, an invalid trial an error, and any text can be carried."""

from dataclasses import replace
from xml.etree import ElementTree

from itbench.report.junit import render_junit
from itbench.report.model import CheckView, RunView, TrialView


def test_checks_are_cases_and_totals_add_up(view: TrialView) -> None:
    passed = replace(view, outcome="pass", cause="", checks=[CheckView("slo", True)])
    invalid = TrialView("sre-2", "t", "nop", 0, "invalid", "stage_failed")
    root = ElementTree.fromstring(render_junit(RunView("run", [view, passed, invalid])))
    assert {key: root.get(key) for key in ("tests", "failures", "errors")} == {
        "tests": "9",
        "failures": "2",
        "errors": "1",
    }
    missed = [case.get("name") for case in root.iter("testcase") if case.find("failure") is not None]
    assert missed == ["challenge: replay trigger", "outcome"]
    assert [error.get("message") for error in root.iter("error")] == ["stage_failed"]


def test_texts_that_xml_cannot_carry_are_replaced(view: TrialView) -> None:
    bad = replace(view, title="a\x00\x1b[31m<b>&\ud800", checks=[CheckView("x\x07", False, "\ufffe", "<&>")])
    root = ElementTree.fromstring(render_junit(RunView("r", [bad])).encode())
    assert next(root.iter("failure")).text == "seen: \ufffd\nwanted: <&>"
