"""Checks schemas of definitions: what may be said at all, whether they are structural, whether their defaults fit.

Called by `definition`. Of these three looks, the later ones happen only when the earlier are content, as on the real server.
"""

from typing import Any

import re2

from itbench.kube.custom import validation
from itbench.kube.custom.declared import check_rules
from itbench.kube.custom.defaulting import fill
from itbench.kube.custom.pruning import Pruner
from itbench.kube.custom.schemas import Schema, is_embedded, is_int_or_string, keeps_unknown
from itbench.kube.kinds.check import Check
from itbench.kube.status import Cause

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED = ("patternProperties", "definitions", "dependencies", "additionalItems", "$ref", "id")
_SCALARS = ("string", "integer", "number", "boolean")
_LOGIC = ("allOf", "anyOf", "oneOf")
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_EMPTY_INSIDE = ("description", "type", "title")
_UNDEFINED_INSIDE = ("additionalProperties", "default")
_FALSE_INSIDE = (
    "nullable",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
)


def check(part: Schema, where: str) -> list[Cause]:
    """Causes against the schema of a version, whose place in the definition is `where`."""
    found = Check()
    _vocabulary(part, where, found)
    found.causes += check_rules(part, where)
    if not found:
        _structural(part, where, "root", found)
    if not found:
        _defaults(part, where, found)
    return found.causes


# -- vocabulary ------------------------------------------------------------------------------------------------------------


def _vocabulary(part: Schema, where: str, found: Check) -> None:
    for key in _UNSUPPORTED:
        if part.get(key):
            found.forbidden(f"{where}.{key}", f"{key} is not supported")
    if part.get("uniqueItems"):
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        found.forbidden(f"{where}.uniqueItems", text)
    if isinstance(part.get("items"), list):
        found.forbidden(f"{where}.items", "items must be a schema object and not an array")
    if part.get("additionalProperties") and part.get("properties"):
        text = "additionalProperties and properties are mutual exclusive"
        found.forbidden(f"{where}.additionalProperties", text)
    for key, below in _parts(part, where):
        _vocabulary(below, key, found)
    kind = part.get("type")
    if kind and kind not in _TYPES:
        found.unsupported(f"{where}.type", kind, _TYPES)
    if kind == "array" and part.get("items") is None:
        found.required(f"{where}.items", "must be specified")
    if part.get("x-kubernetes-preserve-unknown-fields") is False:
        found.invalid(f"{where}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")
    _pattern(part, where, found)
    _map_type(part, where, found)
    _list_type(part, where, found)


def _parts(part: Schema, where: str) -> "list[tuple[str, Schema]]":
    """All schemas directly inside a schema, with their places."""
    rows: list[tuple[str, Schema]] = []
    values = part.get("additionalProperties")
    if isinstance(values, dict):
        rows.append((f"{where}.additionalProperties", values))
    properties = part.get("properties") or {}
    rows += [(f"{where}.properties[{key}]", properties[key]) for key in sorted(properties)]
    for key in _LOGIC:
        rows += [(f"{where}.{key}[{index}]", below) for index, below in enumerate(part.get(key) or ())]
    for key in ("not", "items"):
        if isinstance(part.get(key), dict):
            rows.append((f"{where}.{key}", part[key]))
    return rows


def _pattern(part: Schema, where: str, found: Check) -> None:
    pattern = part.get("pattern")
    if not pattern:
        return
    try:
        validation.pattern_of(pattern)
    except re2.error as error:
        text = f"must be a valid regular expression, but isn't: error parsing regexp: {_go_text(pattern, str(error))}"
        found.invalid(f"{where}.pattern", pattern, text)


def _go_text(pattern: str, text: str) -> str:
    """An error of the C++ library in the words of Go's."""
    text = text.removeprefix("b'").removesuffix("'")
    what, _, part = text.partition(": ")
    what = {
        "invalid perl operator": "invalid or unsupported Perl syntax",
        "missing )": "missing closing )",
        "no argument for repetition operator": "missing argument to repetition operator",
        "bad repetition operator": "invalid nested repetition operator",
    }.get(what, what)
    if what == "invalid or unsupported Perl syntax" and part in ("(?=", "(?!", "(?<"):
        return f"{what}: `{part}`"
    return f"{what}: `{part or pattern}`"


def _map_type(part: Schema, where: str, found: Check) -> None:
    kind = part.get("x-kubernetes-map-type")
    if kind is None:
        return
    if part.get("type") != "object":
        if part.get("type"):
            found.invalid(f"{where}.type", part["type"], "must be object if x-kubernetes-map-type is specified")
        else:
            found.required(f"{where}.type", "must be object if x-kubernetes-map-type is specified")
    if kind not in ("atomic", "granular"):
        found.unsupported(f"{where}.x-kubernetes-map-type", kind, ("atomic", "granular"))


def _list_type(part: Schema, where: str, found: Check) -> None:
    kind, keys = part.get("x-kubernetes-list-type"), part.get("x-kubernetes-list-map-keys") or []
    field = f"{where}.x-kubernetes-list-type"
    if kind is not None and part.get("type") != "array":
        text = "must be array if x-kubernetes-list-type is specified"
        if part.get("type"):
            found.invalid(f"{where}.type", part["type"], text)
        else:
            found.required(f"{where}.type", text)
        return
    if kind is not None and kind not in ("atomic", "set", "map"):
        found.unsupported(field, kind, ("atomic", "set", "map"))
    if keys and kind != "map":
        text = "must be map if x-kubernetes-list-map-keys is non-empty"
        if kind is None:
            found.required(field, text)
        else:
            found.invalid(field, kind, text)
    items = part.get("items")
    if not isinstance(items, dict) or kind not in ("set", "map"):
        return
    if items.get("nullable"):
        found.forbidden(f"{where}.items.nullable", "cannot be nullable when x-kubernetes-list-type is set")
    if kind == "map":
        _map_keys(keys, items, where, found)
    else:
        _set_items(items, f"{where}.items", found)


def _set_items(items: Schema, where: str, found: Check) -> None:
    for key, word, default in (("object", "map", "granular"), ("array", "list", "atomic")):
        name = f"x-kubernetes-{word}-type"
        if items.get("type") == key and items.get(name, default) != "atomic":
            found.invalid(
                f"{where}.{name}", items.get(name), "must be atomic as item of a list with x-kubernetes-list-type=set"
            )


def _map_keys(keys: list[str], items: Schema, where: str, found: Check) -> None:
    field = f"{where}.x-kubernetes-list-map-keys"
    if not keys:
        found.required(field, "must not be empty if x-kubernetes-list-type is map")
    if items.get("type") != "object":
        text = "must be object if parent array's x-kubernetes-list-type is map"
        found.invalid(f"{where}.items.type", items.get("type", ""), text)
        return
    properties, required = items.get("properties") or {}, items.get("required") or ()
    for key in dict.fromkeys(keys):
        below, at = properties.get(key), f"{where}.items.properties[{key}]"
        if below is None:
            found.invalid(field, keys, "entries must all be names of item properties")
            continue
        if below.get("type") not in _SCALARS:
            text = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            found.invalid(f"{at}.type", below.get("type", ""), text)
        if below.get("nullable"):
            found.forbidden(
                f"{at}.nullable", "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
            )
        if "default" not in below and key not in required:
            text = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            found.required(f"{at}.default", text)
    if len(set(keys)) != len(keys):
        found.invalid(field, keys, "must not contain duplicate entries")


# -- structural ------------------------------------------------------------------------------------------------------------

_LEVELS = {
    "root": "must not be empty at the root",
    "field": "must not be empty for specified object fields",
    "item": "must not be empty for specified array items",
}


def _structural(part: Schema, where: str, level: str, found: Check) -> None:
    items, values = part.get("items"), part.get("additionalProperties")
    if isinstance(items, dict):
        _structural(items, f"{where}.items", "item", found)
    properties = part.get("properties") or {}
    for key in sorted(properties):
        if key != "metadata" or level != "root":
            _structural(properties[key], f"{where}.properties[{key}]", "field", found)
    if isinstance(values, dict):
        _structural(values, f"{where}.additionalProperties", "field", found)
    _nested(part, where, found)
    if is_embedded(part) and not keeps_unknown(part) and not properties:
        text = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        found.required(f"{where}.properties", text)
    kind = part.get("type", "")
    if is_embedded(part) and kind != "object":
        found.invalid(f"{where}.type", kind, "must be object if x-kubernetes-embedded-resource is true")
    elif not kind and not is_int_or_string(part) and (not keeps_unknown(part) or level == "root"):
        found.required(f"{where}.type", _LEVELS[level])
    elif level == "root" and kind != "object":
        found.invalid(f"{where}.type", kind, "must be object at the root")
    if level == "root" or is_embedded(part):
        _type_meta(properties, where, found)


def _type_meta(properties: Schema, where: str, found: Check) -> None:
    for key in ("kind", "apiVersion"):
        if key in properties and properties[key].get("type") != "string":
            found.invalid(f"{where}.properties[{key}].type", properties[key].get("type", ""), "must be string")
    metadata = properties.get("metadata")
    if metadata is None:
        return
    if metadata.get("type") != "object":
        found.invalid(f"{where}.properties[metadata].type", metadata.get("type", ""), "must be object")
    extra = set(metadata.get("properties") or ()) - {"name", "generateName"}
    if extra or metadata.get("required") or metadata.get("additionalProperties"):
        text = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        found.forbidden(f"{where}.properties[metadata]", text)


def _nested(part: Schema, where: str, found: Check) -> None:
    """What stands inside `anyOf` and its like may only restrict values."""
    for key in _LOGIC:
        rows = part.get(key) or ()
        if is_int_or_string(part) and _is_marker(key, rows):
            rows = rows[1:] if key == "allOf" else ()
        for index, below in enumerate(rows):
            _inside(below, f"{where}.{key}[{index}]", found)
    if isinstance(part.get("not"), dict):
        _inside(part["not"], f"{where}.not", found)


def _is_marker(key: str, rows: Any) -> bool:
    """The one place where types may stand inside: the usual spelling of int-or-string."""
    if key == "anyOf":
        return list(rows) == _INT_OR_STRING
    return key == "allOf" and bool(rows) and list(rows[0].get("anyOf") or ()) == _INT_OR_STRING


def _inside(part: Schema, where: str, found: Check) -> None:
    for key in sorted(part.get("properties") or {}):
        _inside(part["properties"][key], f"{where}.properties[{key}]", found)
    if isinstance(part.get("items"), dict):
        _inside(part["items"], f"{where}.items", found)
    for key in _LOGIC:
        for index, below in enumerate(part.get(key) or ()):
            _inside(below, f"{where}.{key}[{index}]", found)
    if isinstance(part.get("not"), dict):
        _inside(part["not"], f"{where}.not", found)
    for keys, text in (
        (_UNDEFINED_INSIDE, "must be undefined to be structural"),
        (_EMPTY_INSIDE, "must be empty to be structural"),
        (_FALSE_INSIDE, "must be false to be structural"),
    ):
        for key in sorted(keys):
            if part.get(key) not in (None, False, ""):
                found.forbidden(f"{where}.{key}", text)


# -- defaults --------------------------------------------------------------------------------------------------------------


def _defaults(part: Schema, where: str, found: Check) -> None:
    if "default" in part:
        _default(part, f"{where}.default", found)
    for key, below in _parts(part, where):
        _defaults(below, key, found)


def _default(part: Schema, where: str, found: Check) -> None:
    value = part["default"]
    pruner = Pruner()
    pruner.value(value, part, "")
    if pruner.unknown:
        found.invalid(where, value, "must not have unknown fields")
        return
    whole = fill({"value": value}, {"properties": {"value": part}})["value"]
    faults = validation.rebased(validation.validate(whole, part), where)
    found.causes += [fault.cause for fault in faults]
