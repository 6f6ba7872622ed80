"""Rules in CEL (`x-kubernetes-validations`): evaluated over objects; called by `model`. What may be declared is in `declared`.

    check(new, old, schema, blocked=False) -> [Cause]

All rules of one object are evaluated in few questions to the engine (`itbench.engines.cel_rules`), one per kind of environment.
"""

import re
from dataclasses import dataclass, replace
from typing import Any

from itbench.engines.cel_rules import Outcome, Rule, evaluate
from itbench.kube.client import Obj
from itbench.kube.custom.schemas import Schema, child_of, is_embedded, is_int_or_string
from itbench.kube.status import Cause

RULES = "x-kubernetes-validations"
_UNCHECKED = (
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)
_RESERVED = frozenset({
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop",
    "package", "namespace", "return", "var", "void", "while",
})  # fmt: skip
_ESCAPES = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))
_OLD = re.compile(r"\boldSelf\b")
_TEXTS = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'")
_TYPES = {"string": "string", "integer": "int", "boolean": "bool", "number": "double"}
_MISSING: Any = object()


def escape(name: str) -> str:
    """A field's name as expressions write it."""
    if name in _RESERVED:
        return f"__{name}__"
    for text, instead in _ESCAPES:
        name = name.replace(text, instead)
    return name


def is_transition(expression: str) -> bool:
    """Whether an expression looks at the state before."""
    return _OLD.search(_TEXTS.sub("", expression)) is not None


def type_of(part: Schema) -> str:
    """The engine's name of a schema's type."""
    return "dyn" if is_int_or_string(part) else _TYPES.get(part.get("type", ""), "dyn")


def has_rules(part: Schema) -> bool:
    """Whether there are rules anywhere in a schema."""
    below = [*(part.get("properties") or {}).values(), part.get("items"), part.get("additionalProperties")]
    return bool(part.get(RULES)) or any(has_rules(one) for one in below if isinstance(one, dict))


def plain(value: Any, part: Schema | None) -> Any:
    """A value as expressions see it: field names escaped, nulls absent, whole numbers as doubles where the schema says so."""
    if isinstance(value, dict):
        known = (part or {}).get("properties") or {}
        fixed = bool(known) or (part is not None and is_embedded(part))
        return {
            escape(key) if fixed else key: plain(below, child_of(part, key) if part else None)
            for key, below in value.items()
            if below is not None
        }
    if isinstance(value, list):
        items = (part or {}).get("items")
        return [plain(row, items if isinstance(items, dict) else None) for row in value]
    if part is not None and part.get("type") == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


@dataclass(frozen=True, slots=True)
class _Job:
    """One rule on one value; `before` is `_MISSING` where there is nothing to compare with."""

    rule: Obj
    part: Schema
    value: Any
    before: Any
    path: str

    @property
    def unchanged(self) -> bool:
        return self.before is not _MISSING and bool(self.before == self.value)

    @property
    def optional(self) -> bool:
        return bool(self.rule.get("optionalOldSelf"))


def _jobs(value: Any, before: Any, part: Schema, path: str, root: bool) -> list[_Job]:
    """Rules below a value, those of the outer ones first."""
    if value is None:
        return []
    found = []
    for rule in part.get(RULES) or ():
        if not is_transition(rule["rule"]) or before is not _MISSING or rule.get("optionalOldSelf"):
            found.append(_Job(rule, part, _rooted(value) if root else value, _rooted(before) if root else before, path))
    if isinstance(value, dict):
        for key in sorted(value):
            below = None if root and key in ("apiVersion", "kind", "metadata") else child_of(part, key)
            if below is not None:
                old = before.get(key, _MISSING) if isinstance(before, dict) else _MISSING
                found += _jobs(value[key], _MISSING if old is None else old, below, _step(path, key, part), False)
    items = part.get("items")
    if isinstance(value, list) and isinstance(items, dict):
        for index, row in enumerate(value):
            found += _jobs(row, _old_item(before, row, part), items, f"{path}[{index}]", False)
    return found


def _step(path: str, key: str, part: Schema) -> str:
    if key not in (part.get("properties") or {}):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def _rooted(obj: Any) -> Any:
    """A whole object as its rules see it: of the metadata only the names."""
    if not isinstance(obj, dict):
        return obj
    names = {key: obj["metadata"][key] for key in ("name", "generateName") if key in obj.get("metadata", {})}
    return {**obj, "metadata": names}


def _old_item(before: Any, row: Any, part: Schema) -> Any:
    """The item of a map-like list that was there before under the same keys."""
    if part.get("x-kubernetes-list-type") != "map" or not isinstance(before, list) or not isinstance(row, dict):
        return _MISSING
    keys = part.get("x-kubernetes-list-map-keys") or ()
    same = (old for old in before if isinstance(old, dict) and all(old.get(key) == row.get(key) for key in keys))
    return next(same, _MISSING)


def wrapped(expression: str, part: Schema, *, optional: bool) -> str:
    """An expression with what the engine's data cannot hold made from what it can: optional old values, times, durations."""
    kind = {"date-time": "timestamp", "date": "timestamp", "duration": "duration"}.get(part.get("format", ""))
    if kind is not None and part.get("type") == "string":
        midnight = ' + "T00:00:00Z"' if part["format"] == "date" else ""
        expression = f"cel.bind(self, {kind}(self{midnight}), {expression})"
        if is_transition(expression) and not optional:
            expression = f"cel.bind(oldSelf, {kind}(oldSelf{midnight}), {expression})"
    if optional:
        made = "(size(oldSelf) > 0 ? optional.of(oldSelf[0]) : optional.none())"
        expression = f"cel.bind(oldSelf, {made}, {expression})"
    return expression


def _evaluated(jobs: list[_Job], key: str) -> list[Outcome]:
    """Outcomes of one expression (`rule` or `messageExpression`) of each job."""
    outcomes: list[Outcome] = [Outcome()] * len(jobs)
    groups: dict[tuple[str, bool], list[int]] = {}
    for index, job in enumerate(jobs):
        groups.setdefault((type_of(job.part), job.optional), []).append(index)
    for (kind, optional), members in groups.items():
        plain_type = kind if not any(jobs[index].part.get("format") for index in members) else "dyn"
        variables = {"self": plain_type, "oldSelf": "dyn" if optional else plain_type}
        rows = [Rule(wrapped(jobs[i].rule[key], jobs[i].part, optional=optional), _data(jobs[i])) for i in members]
        for index, outcome in zip(members, evaluate(rows, variables), strict=True):
            outcomes[index] = outcome
    return outcomes


def _data(job: _Job) -> dict[str, Any]:
    before = None if job.before is _MISSING else plain(job.before, job.part)
    if job.optional:
        before = [] if job.before is _MISSING else [before]
    return {"self": plain(job.value, job.part)} | ({"oldSelf": before} if before is not None else {})


def check(new: Obj, old: Obj | None, part: Schema, *, blocked: bool) -> list[Cause]:
    """Causes of all rules that fail.

    Args:
        new: the object with defaults; old: the state before, None for a new object.
        part: its schema.
        blocked: the object has other faults: rules are not looked at, which is said.
    """
    if not has_rules(part):
        return []
    if blocked:
        return [Cause("FieldValueInvalid", "<nil>", _UNCHECKED)]
    jobs = _jobs(new, _MISSING if old is None else old, part, "", True)
    outcomes = _evaluated(jobs, "rule")
    failed = [
        (job, outcome)
        for job, outcome in zip(jobs, outcomes, strict=True)
        if outcome.value is not True and not (job.unchanged and not is_transition(job.rule["rule"]))
    ]
    with_text = [job for job, outcome in failed if job.rule.get("messageExpression") and not _broken(outcome)]
    texts = dict(zip(map(id, with_text), _evaluated(with_text, "messageExpression"), strict=True))
    return [_cause(job, outcome, texts.get(id(job))) for job, outcome in failed]


def _broken(outcome: Outcome) -> bool:
    return bool(outcome.fault or outcome.error)


def _cause(job: _Job, outcome: Outcome, text: Outcome | None) -> Cause:
    rule, path = job.rule, job.path or "<nil>"
    kind = "" if is_int_or_string(job.part) else job.part.get("type", "")
    spoken = rule.get("message") or ""
    if _broken(outcome):
        why = f"{outcome.fault or outcome.error} evaluating rule: {spoken or rule['rule'].strip()}"
        return Cause("FieldValueInvalid", path, f'Invalid value: "{kind}": {why}')
    if text is not None and isinstance(text.value, str) and text.value.strip() and "\n" not in text.value.strip():
        spoken = text.value.strip()
    said = Cause(rule.get("reason") or "FieldValueInvalid", path, spoken or f"failed rule: {rule['rule'].strip()}")
    if rule.get("fieldPath"):
        said = replace(said, field=_joined(job.path, rule["fieldPath"]))
    return replace(said, text=_worded(said, kind))


def _worded(cause: Cause, kind: str) -> str:
    if cause.reason == "FieldValueRequired":
        return f"Required value: {cause.text}"
    if cause.reason == "FieldValueForbidden":
        return f"Forbidden: {cause.text}"
    if cause.reason == "FieldValueDuplicate":
        return f'Duplicate value: "{kind}"'
    return f'Invalid value: "{kind}": {cause.text}'


def _joined(path: str, below: str) -> str:
    """A fieldPath behind a path: `.y` and `['some-key']` both name fields."""
    names = re.sub(r"\['((?:\\.|[^'\\])*)'\]", r".\1", below)
    return path + names if path else names.removeprefix(".")
