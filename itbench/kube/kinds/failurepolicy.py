"""Rules of a Job's pod failure policy. Called by `jobs`."""

from itbench.kube.client import Obj
from itbench.kube.kinds.check import Check

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")


def check_failure_policy(policy: Obj, field: str, check: Check) -> None:
    """Actions, exit codes and pod conditions of every rule."""
    for index, rule in enumerate(policy.get("rules") or ()):
        where = f"{field}.rules[{index}]"
        check.one_of(f"{where}.action", rule.get("action"), _ACTIONS)
        codes = rule.get("onExitCodes")
        if codes is not None:
            _check_codes(codes, f"{where}.onExitCodes", check)


def _check_codes(codes: Obj, field: str, check: Check) -> None:
    operator, values = codes.get("operator"), codes.get("values") or []
    check.one_of(f"{field}.operator", operator, _OPERATORS)
    if not values:
        check.invalid(f"{field}.values", values, "at least one value is required")
    for index, value in enumerate(values):
        if value == 0 and operator == "In":
            check.invalid(f"{field}.values[{index}]", 0, "must not be 0 for the In operator")
