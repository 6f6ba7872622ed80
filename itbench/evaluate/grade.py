"""From evidence to a result: runs the checks, applies the cause table, computes the metrics. Pure; called by run and regrade."""

import itbench.evaluate.ciso
import itbench.evaluate.diagnosis
import itbench.evaluate.estate
import itbench.evaluate.finops
import itbench.evaluate.slo  # noqa: F401 - registers its checks
from itbench.core.causes import rule
from itbench.core.documents.result import CheckResult, Evidence, Outcome
from itbench.core.documents.scenario import Scenario
from itbench.evaluate.finops import account_metrics
from itbench.evaluate.metrics import trial_metrics
from itbench.evaluate.policies import policy_metrics
from itbench.evaluate.registry import KINDS, Case, results
from itbench.library.vocabulary import Vocabulary


def check_models() -> dict[str, type]:
    """The typed specifications of all checks, for the library's vocabulary."""
    return {name: kind.spec for name, kind in KINDS.items()}


class Graded(dict[str, object]):
    """The graded parts of a result document."""


def grade(scenario: Scenario, evidence: Evidence, answers: tuple[str, ...] = ()) -> Graded:
    """Grade one trial.

    Args:
        scenario: with its truth.
        evidence: all that was recorded.
        answers: the answers that count (`--task`); the scenario's own when empty.

    Returns:
        `outcome`, `answers`, `checks`, `metrics`.
    """
    asked = answers or scenario.task.answers
    verdict = rule(evidence.cause)
    checks = _checks(scenario, evidence, asked) if verdict.grade else ()
    by_answer = {name: _answered(name, checks) for name in asked}
    outcome: Outcome
    if verdict.outcome == "checks":
        outcome = "pass" if evidence.submission is not None and by_answer and all(by_answer.values()) else "fail"
    else:
        outcome = "fail" if verdict.outcome == "fail" else "invalid"
    metrics: dict[str, float | int | str | None] = {}
    if verdict.grade:
        metrics = trial_metrics(scenario, evidence, checks) | account_metrics(evidence) | policy_metrics(checks)
    return Graded(outcome=outcome, answers=by_answer, checks=checks, metrics=metrics)


def _checks(scenario: Scenario, evidence: Evidence, asked: tuple[str, ...]) -> tuple[CheckResult, ...]:
    case = Case(scenario, evidence, asked)
    vocabulary = Vocabulary(checks=check_models())
    found: list[CheckResult] = []
    for entry in scenario.checks:
        kind = KINDS[entry.kind]
        if kind.answer in asked:
            found += results(kind, vocabulary.check(entry), case)
    named = {entry.kind for entry in scenario.checks}
    for name in ("diagnosis", "verdict"):
        if name in asked and name not in named:
            found += results(KINDS[name], KINDS[name].spec(), case)
    return tuple(found)


def _answered(answer: str, checks: tuple[CheckResult, ...]) -> bool:
    """An answer counts as right when it has checks and all of them passed."""
    own = [check.passed for check in checks if check.answer == answer]
    return bool(own) and all(own)
