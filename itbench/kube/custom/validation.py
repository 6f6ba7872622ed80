"""Checks a value against a schema and says what is wrong in the words of the real server; called by `model`.

Covers what structural schemas may contain; rules in CEL are in `rules`. Errors of one object come in the order of its fields.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import re2

from itbench.kube.custom import formats
from itbench.kube.custom.schemas import ROOT, Schema, child_of, is_embedded, is_int_or_string
from itbench.kube.kinds.check import printed
from itbench.kube.status import Cause

_INT64 = 2**63


@dataclass(frozen=True, slots=True)
class Fault:
    """One problem; `count` puts the more telling ones first where alternatives failed."""

    cause: Cause
    at: str


Faults = list[Fault]


def kind_of(value: Any) -> str:
    """The JSON type of a value, as error texts name it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer" if -_INT64 <= value < _INT64 else "number"
    if isinstance(value, float):
        return "integer" if value.is_integer() and abs(value) < _INT64 else "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _fault(reason: str, path: str, text: str) -> Fault:
    return Fault(Cause(f"FieldValue{reason}", path, text), path)


def _invalid(path: str, value: Any, text: str) -> Fault:
    return _fault("Invalid", path, f"Invalid value: {printed(value)}: {path} in body {text}")


def rebased(faults: Faults, base: str) -> Faults:
    """Faults of a part as faults of the whole: only the fields are put below `base`, the texts stay (as in the real server)."""

    def put(path: str) -> str:
        return f"{base}.{path}" if path and path[0] != "[" else base + path

    return [
        Fault(
            replace(one.cause, field=one.cause.field if one.cause.field == "<nil>" else put(one.cause.field)),
            put(one.at),
        )
        for one in faults
    ]


def _combined(path: str, text: str) -> Fault:
    return Fault(Cause("FieldValueInvalid", "<nil>", f'Invalid value: "": "{path}" {text}'), path)


@lru_cache(1024)
def pattern_of(text: str) -> Any:
    """A compiled RE2 pattern, the syntax of the real server; raises `re2.error`."""
    options = re2.Options()
    options.log_errors = False
    return re2.compile(text, options)


def validate(value: Any, part: Schema, path: str = "") -> Faults:
    """What is wrong with a value.

    Args:
        value: plain JSON, pruned and with defaults.
        part: its schema.
        path: where it is, such as `spec.list[0]`; empty for a whole object, whose metadata is not looked at.
    """
    if value is None and part.get("nullable"):
        return []
    kind = kind_of(value)
    wanted = ("integer", "string") if is_int_or_string(part) else (part["type"],) if part.get("type") else ()
    if wanted and not (kind in wanted or (kind == "integer" and "number" in wanted)):
        text = f"must be of type {','.join(wanted)}: {printed(kind)}"
        wrong = _fault("TypeInvalid", path, f"Invalid value: {printed(kind)}: {path} in body {text}")
        return [wrong, *_enum(value, part, path)]
    faults = _logic(value, part, path)
    if kind == "string":
        faults += _string(value, part, path)
    elif kind in ("integer", "number"):
        faults += _number(value, part, path)
    elif kind == "array":
        faults += _array(value, part, path)
    faults += _enum(value, part, path)
    if kind == "object":
        faults += _object(value, part, path)
    return faults


def _enum(value: Any, part: Schema, path: str) -> Faults:
    allowed = part.get("enum")
    if not allowed or any(_same(value, row) for row in allowed):
        return []
    options = ", ".join(printed(_shown(row)) for row in allowed)
    return [_fault("NotSupported", path, f"Unsupported value: {printed(value)}: supported values: {options}")]


def _same(left: Any, right: Any) -> bool:
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else printed(value)


def _string(value: str, part: Schema, path: str) -> Faults:
    faults: Faults = []
    limit, least, pattern = part.get("maxLength"), part.get("minLength"), part.get("pattern")
    if limit is not None and len(value) > limit:
        faults.append(_fault("TooLong", path, f"Too long: may not be more than {limit} bytes"))
    if least is not None and len(value) < least:
        faults.append(_invalid(path, value, f"should be at least {least} chars long"))
    if pattern and not pattern_of(pattern).search(value):
        faults.append(_invalid(path, value, f"should match '{pattern}'"))
    form = part.get("format")
    if form and not formats.matches(form, value):
        text = f"{path} in body must be of type {form}: {printed(value)}"
        faults.append(_fault("TypeInvalid", path, f"Invalid value: {printed(value)}: {text}"))
    return faults


def number_text(value: Any) -> str:
    """A bound as Go's `%v` prints it."""
    return f"{int(value)}" if float(value).is_integer() and abs(value) < 1e21 else f"{value:g}"


def _number(value: Any, part: Schema, path: str) -> Faults:
    faults: Faults = []
    unit, most, least = part.get("multipleOf"), part.get("maximum"), part.get("minimum")
    if unit and not float(value / unit).is_integer():
        faults.append(_invalid(path, value, f"should be a multiple of {number_text(unit)}"))
    if most is not None:
        open_end = part.get("exclusiveMaximum", False)
        if value > most or (open_end and value == most):
            faults.append(
                _invalid(path, value, f"should be less than {'' if open_end else 'or equal to '}{number_text(most)}")
            )
    if least is not None:
        open_end = part.get("exclusiveMinimum", False)
        if value < least or (open_end and value == least):
            word = "" if open_end else "or equal to "
            faults.append(_invalid(path, value, f"should be greater than {word}{number_text(least)}"))
    return faults


def _too_many(path: str, size: int, limit: int) -> Fault:
    return _fault("TooMany", path, f"Too many: {size}: must have at most {limit} items")


def _array(value: list[Any], part: Schema, path: str) -> Faults:
    faults: Faults = []
    items = part.get("items")
    if isinstance(items, dict):
        for index, row in enumerate(value):
            faults += validate(row, items, f"{path}[{index}]")
    least, most = part.get("minItems"), part.get("maxItems")
    if least is not None and len(value) < least:
        faults.append(_invalid(path, len(value), f"should have at least {least} items"))
    if most is not None and len(value) > most:
        faults.append(_too_many(path, len(value), most))
    if part.get("uniqueItems") and len({printed(row) for row in value}) != len(value):
        faults.append(_invalid(path, value, "shouldn't contain duplicates"))
    return faults


def _object(value: dict[str, Any], part: Schema, path: str) -> Faults:
    faults: Faults = []
    least, most = part.get("minProperties"), part.get("maxProperties")
    if least is not None and len(value) < least:
        faults.append(_invalid(path, len(value), f"should have at least {least} properties"))
    if most is not None and len(value) > most:
        faults.append(_too_many(path, len(value), most))
    skip = ROOT if is_embedded(part) or not path else ()
    for key in sorted(value):
        below = None if key in skip else child_of(part, key)
        if below is not None:
            faults += validate(value[key], below, f"{path}.{key}" if path else key)
    for key in part.get("required") or ():
        if key not in value:
            faults.append(_fault("Required", f"{path}.{key}" if path else key, "Required value"))
    if is_embedded(part):
        for key in ("apiVersion", "kind"):
            if not value.get(key):
                faults.append(_fault("Required", f"{path}.{key}", "Required value"))
    return faults


def _logic(value: Any, part: Schema, path: str) -> Faults:
    """`anyOf`, `oneOf`, `allOf`, `not`, in the order in which the real server looks at them."""
    faults: Faults = []
    some = part.get("anyOf")
    if some:
        tried = [validate(value, row, path) for row in some]
        if all(tried):
            faults += [_combined(path, "must validate at least one schema (anyOf)"), *_best(tried)]
    one = part.get("oneOf")
    if one:
        tried = [validate(value, row, path) for row in one]
        good = sum(not row for row in tried)
        if not good:
            text = "must validate one and only one schema (oneOf). Found none valid"
            faults += [_combined(path, text), *_best(tried)]
        elif good > 1:
            text = f"must validate one and only one schema (oneOf). Found {good} valid alternatives"
            faults.append(_combined(path, text))
    faults += _all(value, part.get("allOf") or (), path)
    refused = part.get("not")
    if refused is not None and not validate(value, refused, path):
        faults.append(_combined(path, "must not validate the schema (not)"))
    return faults


def _all(value: Any, parts: Any, path: str) -> Faults:
    tried = [validate(value, row, path) for row in parts]
    faults = [fault for row in tried for fault in row]
    if faults:
        tail = ". None validated" if all(tried) else ""
        faults.append(_combined(path, f"must validate all the schemas (allOf){tail}"))
    return faults


def _best(tried: list[Faults]) -> Faults:
    """The faults of the first alternative."""
    return tried[0]
