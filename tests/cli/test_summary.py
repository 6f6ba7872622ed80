"""The table at the end of a run."""

import pytest

from itbench.cli.summary import _why
from itbench.core.documents.result import CheckResult, Result


def result(**values) -> Result:
    """A result of sre-1."""
    return Result(scenario="sre-1", seed=0, trial=1, agent="nop", **values)


def check(name: str, passed: bool) -> CheckResult:
    """One check."""
    return CheckResult(kind=name, name=name, passed=passed, answer="mitigation", seen="", wanted="", where="")


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"outcome": "pass", "cause": "checks"}, "all checks held"),
        ({"outcome": "fail", "cause": "checks", "checks": [check("slo", False), check("state", True)]}, "slo"),
        ({"outcome": "fail", "cause": "wall_limit", "checks": [check("slo", False)]}, "wall_limit, slo"),
        ({"outcome": "invalid", "cause": "stage_failed", "detail": "task 'App' x"}, "stage_failed: task 'App' x"),
    ],
)
def test_the_table_says_why(values, text):
    """What failed, or what kept the trial from counting."""
    assert _why(result(**values)) == text
