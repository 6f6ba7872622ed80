"""What is wrong with the rules that a schema declares; called by `structure` when a definition is written."""

import re
from dataclasses import replace
from typing import Any

from itbench.engines.cel_rules import Outcome, Rule
from itbench.engines.cel_rules import check as compile_rules
from itbench.kube.client import Obj
from itbench.kube.custom import jsonpath
from itbench.kube.custom.rules import RULES, escape, is_transition, type_of, wrapped
from itbench.kube.custom.schemas import Schema, child_of, is_embedded, keeps_unknown, values_of
from itbench.kube.kinds.check import Check
from itbench.kube.status import Cause

_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_CHAIN = re.compile(r"(?<![\w.])(self|oldSelf)((?:\s*\.\s*[A-Za-z_]\w*(?!\s*\())+)")
_TEST = re.compile(r"has\((?:self|oldSelf)(?:\.[A-Za-z_]\w*)+\)")
_NAME = re.compile(r"\.\s*([A-Za-z_]\w*)")
_TEXTS = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'")
_NAMES = {"name": {"type": "string"}, "generateName": {"type": "string"}}
_META = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"type": "object", "properties": _NAMES},
}
_DEPTH = 4


def check_rules(part: Schema, where: str, *, root: bool = True, stray: str = "") -> list[Cause]:
    """Causes against all rules of a schema.

    Args:
        part: the schema, `where` its place in the definition.
        root: it is that of whole objects.
        stray: the place of the list around it whose items cannot be told apart, where oldSelf means nothing.
    """
    found = Check()
    _own(part, where, root, stray, found)
    for key in sorted(part.get("properties") or {}):
        found.causes += check_rules(part["properties"][key], f"{where}.properties[{key}]", root=False, stray=stray)
    values, items = values_of(part), part.get("items")
    if values:
        found.causes += check_rules(values, f"{where}.additionalProperties", root=False, stray=stray)
    if isinstance(items, dict):
        inside = stray if part.get("x-kubernetes-list-type") == "map" else stray or where
        found.causes += check_rules(items, f"{where}.items", root=False, stray=inside)
    return found.causes


def _own(part: Schema, where: str, root: bool, stray: str, found: Check) -> None:
    rules = part.get(RULES) or []
    if not rules:
        return
    for index, rule in enumerate(rules):
        _form(rule, part, f"{where}.{RULES}[{index}]", found)
    if found:
        return
    seen = {**part, "properties": {**(part.get("properties") or {}), **_META}} if root or is_embedded(part) else part
    outcomes = _compiled(rules, seen)
    for index, rule in enumerate(rules):
        _judge(rule, outcomes[index], seen, f"{where}.{RULES}[{index}]", found)
        if stray and is_transition(rule["rule"]):
            text = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {stray}"
            found.invalid(f"{where}.{RULES}[{index}].rule", rule["rule"], text)


def _form(rule: Obj, part: Schema, where: str, found: Check) -> None:
    text, message = rule.get("rule") or "", rule.get("message")
    if not text.strip():
        found.required(f"{where}.rule", "rule is not specified")
    if message and not message.strip():
        found.invalid(f"{where}.message", message, "must be non-empty if specified")
    elif message and "\n" in message.strip():
        found.invalid(f"{where}.message", message, "must not contain line breaks")
    elif not message and "\n" in text.strip() and not rule.get("messageExpression"):
        found.required(f"{where}.message", "message must be specified if rule contains line breaks")
    expression = rule.get("messageExpression")
    if expression and not expression.strip():
        found.required(f"{where}.messageExpression", "messageExpression must be non-empty if specified")
    if rule.get("reason") and rule["reason"] not in _REASONS:
        found.unsupported(f"{where}.reason", rule["reason"], _REASONS)
    if rule.get("fieldPath") and not _leads_somewhere(rule["fieldPath"], part):
        found.invalid(f"{where}.fieldPath", rule["fieldPath"], "must be a valid path")


def _leads_somewhere(path: str, part: Schema | None) -> bool:
    try:
        names = jsonpath.parse_plain(path)
    except jsonpath.BadPath:
        return False
    for name in names if path[0] in ".[" else ("",):
        part = child_of(part, name) if part is not None else None
    return part is not None


# -- compilation -----------------------------------------------------------------------------------------------------------


def _typed(part: Schema, name: str, depth: int = 0) -> dict[str, str]:
    """Types of all that can be named from a value: qualified names are variables of their own to the engine."""
    found = {name: type_of(part)}
    if depth < _DEPTH and part.get("type") == "object":
        for key, below in (part.get("properties") or {}).items():
            if not below.get("format") or below.get("type") != "string":
                found |= _typed(below, f"{name}.{escape(key)}", depth + 1)
    return found


def _compiled(rules: list[Obj], part: Schema) -> list[tuple[Outcome, Outcome | None]]:
    """Rule and message expression of each rule, compiled."""
    special = bool(part.get("format")) and part.get("type") == "string"
    mine = {"self": "dyn"} if special else _typed(part, "self")
    theirs = {"oldSelf": "dyn"} if special else _typed(part, "oldSelf")
    answers: list[tuple[Outcome, Outcome | None]] = []
    for rule in rules:
        optional = bool(rule.get("optionalOldSelf"))
        variables = mine | ({"oldSelf": "dyn"} if optional else theirs)
        texts = [rule["rule"], *([rule["messageExpression"]] if rule.get("messageExpression") else [])]
        rows = [Rule(wrapped(_without_tests(text), part, optional=optional)) for text in texts]
        _, found = compile_rules(rows, variables)
        outcomes = [_reworded(outcome, text) for outcome, text in zip(found, texts, strict=True)]
        answers.append((outcomes[0], outcomes[1] if len(outcomes) > 1 else None))
    return answers


def _without_tests(expression: str) -> str:
    """The expression with `has(self.a)` as plain truth, at equal length: the engine knows qualified names only as variables."""
    return _TEST.sub(lambda test: "true".ljust(len(test[0])), expression)


def _reworded(outcome: Outcome, expression: str) -> Outcome:
    """An outcome whose error shows the expression as it was written."""
    error = outcome.error
    for line, shown in zip(expression.split("\n"), _without_tests(expression).split("\n"), strict=True):
        error = error.replace(f" | {shown}\n", f" | {line}\n")
    return replace(outcome, error=error)


def _internal(rule: Obj) -> dict[str, Any]:
    """A rule as texts print it."""
    return {
        "Rule": rule.get("rule", ""),
        "Message": rule.get("message", ""),
        "MessageExpression": rule.get("messageExpression", ""),
        "Reason": rule.get("reason"),
        "FieldPath": rule.get("fieldPath", ""),
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }


def _judge(rule: Obj, outcome: tuple[Outcome, Outcome | None], part: Schema, where: str, found: Check) -> None:
    main, message = outcome
    error = _unknown_fields(rule["rule"], part) or main.error
    if error:
        found.invalid(f"{where}.rule", _internal(rule), f"compilation failed: {error}")
    elif main.type not in ("bool", "dyn"):
        found.invalid(f"{where}.rule", _internal(rule), "cel expression must evaluate to a bool")
    if rule.get("optionalOldSelf") and not is_transition(rule["rule"]):
        found.invalid(f"{where}.optionalOldSelf", True, "may not be set if oldSelf is not used in rule")
    if message is None:
        return
    error = _unknown_fields(rule["messageExpression"], part) or message.error
    if error:
        text = f"messageExpression compilation failed: {error}"
        found.invalid(f"{where}.messageExpression", _internal(rule), text)
    elif message.type not in ("string", "dyn"):
        found.invalid(f"{where}.messageExpression", _internal(rule), "messageExpression must evaluate to a string")


def _unknown_fields(expression: str, part: Schema) -> str:
    """Fields that the schema does not have, in the compiler's words; empty when all are known."""
    bare = _TEXTS.sub(lambda text: '"' + " " * (len(text[0]) - 2) + '"', expression)
    rows = []
    for chain in _CHAIN.finditer(bare):
        at = _first_unknown(chain[2], part)
        if at is not None:
            place, name = at
            offset = chain.start(2) + place
            if bare[: chain.start()].rstrip().endswith("has(") and chain[2].count(".") == 1:
                offset = bare[: chain.start()].rstrip().rindex("(")
            rows.append(_located(expression, offset, f"undefined field '{name}'"))
    return "\n".join(rows)


def _first_unknown(chain: str, part: Schema) -> tuple[int, str] | None:
    current: Schema | None = part
    for step in _NAME.finditer(chain):
        if (
            current is None
            or current.get("type") != "object"
            or keeps_unknown(current)
            or not current.get("properties")
        ):
            return None
        fields = {escape(key): below for key, below in current["properties"].items()}
        if is_embedded(current):
            fields |= _META
        if step[1] not in fields:
            return step.start(), step[1]
        current = fields[step[1]]
    return None


def _located(expression: str, offset: int, text: str) -> str:
    line = expression.count("\n", 0, offset)
    column = offset - (expression.rfind("\n", 0, offset) + 1)
    shown = expression.split("\n")[line]
    return f"ERROR: <input>:{line + 1}:{column + 1}: {text}\n | {shown}\n | {'.' * column}^"
