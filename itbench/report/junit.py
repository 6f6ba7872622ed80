"""JUnit XML of a run, for CI systems: one suite per scenario, one case per check, so that a pipeline shows what was missed."""

from xml.etree.ElementTree import Element, SubElement, indent, tostring

from itbench.report.model import CheckView, RunView, TrialView

ILLEGAL = {code: "\ufffd" for code in range(32) if code not in (9, 10, 13)}
"""Characters that XML cannot carry."""


def _clean(text: str) -> str:
    return "".join(each if each.isprintable() or each in "\t\n" else "\ufffd" for each in text.translate(ILLEGAL))


def _case(suite: Element, view: TrialView, check: CheckView) -> None:
    case = SubElement(suite, "testcase", classname=_clean(view.scenario), name=_clean(check.name))
    if not check.passed:
        failure = SubElement(case, "failure", type="check", message=_clean(f"seen {check.seen}; wanted {check.wanted}"))
        failure.text = _clean(f"seen: {check.seen}\nwanted: {check.wanted}")


def _suite(root: Element, view: TrialView) -> tuple[int, int, int]:
    """One trial; returns the number of cases, failures and errors."""
    name = f"{view.scenario} #{view.trial} ({view.agent}, seed {view.seed})"
    suite = SubElement(root, "testsuite", name=_clean(name))
    properties = SubElement(suite, "properties")
    for key, value in (("title", view.title), ("agent", view.agent), ("outcome", view.outcome), ("cause", view.cause)):
        SubElement(properties, "property", name=key, value=_clean(value))
    for check in view.checks:
        _case(suite, view, check)
    failures = sum(not check.passed for check in view.checks)
    errors = 0
    verdict = SubElement(suite, "testcase", classname=_clean(view.scenario), name="outcome")
    if view.outcome == "invalid":
        errors = 1
        SubElement(verdict, "error", type="invalid", message=_clean(view.cause or "the environment failed"))
    elif view.outcome != "pass":
        failures += 1
        SubElement(verdict, "failure", type="outcome", message=_clean(view.cause or view.outcome))
    counts = len(view.checks) + 1, failures, errors
    for key, number in zip(("tests", "failures", "errors"), counts, strict=True):
        suite.set(key, str(number))
    return counts


def render_junit(run: RunView) -> str:
    """The XML document. A failed trial has a failed case `outcome`; an invalid one an error, never a failure."""
    root = Element("testsuites", name=_clean(run.title))
    totals = [_suite(root, view) for view in run.trials]
    for key, place in (("tests", 0), ("failures", 1), ("errors", 2)):
        root.set(key, str(sum(counts[place] for counts in totals)))
    indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(root, encoding="unicode") + "\n"
