"""Rules for CEL expressions inside objects: that they are there, compile, and have the type asked for; used by kinds."""

from collections.abc import Sequence
from dataclasses import dataclass

from itbench.core.errors import ItbenchError
from itbench.engines.cel_rules import Outcome, Rule
from itbench.engines.cel_rules import check as compile_rules
from itbench.kube.kinds.check import Check

BASE = {"object": "dyn", "oldObject": "dyn", "request": "dyn", "namespaceObject": "dyn"}
"""Variables of every admission expression."""
AUTHORIZER = {"authorizer": "map", "authorizer.requestResource": "map"}


@dataclass(frozen=True, slots=True)
class Expression:
    """One expression of an object.

    Attributes:
        field: where it stands; `text`: the expression.
        types: the types it may have; none for any.
        missing: what is said of an empty one.
    """

    field: str
    text: str
    types: tuple[str, ...] = ("bool",)
    missing: str = ""


def variables(*, params: bool = False, authorizer: bool = True) -> dict[str, str]:
    """The variables that an admission expression may use."""
    return BASE | ({"params": "dyn"} if params else {}) | (AUTHORIZER if authorizer else {})


def outcomes(
    rows: Sequence[Expression], known: dict[str, str], composed: Sequence[tuple[str, str]] = ()
) -> tuple[list[Outcome], list[Outcome]]:
    """What composed variables and expressions compile to; an engine that gives up is an error of each."""
    try:
        return compile_rules([Rule(row.text) for row in rows], known, composed)
    except ItbenchError as error:
        failed = Outcome(error=str(error))
        return [failed] * len(composed), [failed] * len(rows)


def check_expression(row: Expression, outcome: Outcome, check: Check) -> None:
    """Required, compiles, right type."""
    if not row.text.strip():
        check.required(row.field, row.missing)
    elif outcome.error:
        check.invalid(row.field, row.text, f"compilation failed: {outcome.error}")
    elif row.types and outcome.type not in row.types:
        wanted = row.types[0] if len(row.types) == 1 else f"one of [{' '.join(row.types)}]"
        check.invalid(row.field, row.text, f"must evaluate to {wanted} but got {outcome.type}")


def check_expressions(
    rows: Sequence[Expression], check: Check, known: dict[str, str], composed: Sequence[tuple[str, str]] = ()
) -> None:
    """Several at once (one question to the engine)."""
    if rows:
        for row, outcome in zip(rows, outcomes(rows, known, composed)[1], strict=True):
            check_expression(row, outcome, check)
