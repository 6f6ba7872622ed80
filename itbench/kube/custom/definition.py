"""The rules of CustomResourceDefinition objects: defaults, what the server sets, what is refused; a row of `kinds`' table.

Schemas are checked in `structure`. As on the real server, what all versions have in common is named by its place in the internal
form (`spec.validation`, `spec.subresources`, ...), not by the version.
"""

import re
from typing import Any

from itbench.kube.client import Obj
from itbench.kube.custom import jsonpath, structure
from itbench.kube.custom.formats import is_known
from itbench.kube.custom.schemas import walk
from itbench.kube.kinds.base import Behaviour
from itbench.kube.kinds.check import Check
from itbench.kube.names import label1035_errors, subdomain_errors

APPROVAL = "api-approved.kubernetes.io"
_SEE = "see https://github.com/kubernetes/enhancements/pull/1111"
_TYPES = ("boolean", "date", "integer", "number", "string")
_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_SELECTABLE = ("string", "boolean", "integer")
_SELECTED = "string, boolean or integer. Enum string fields and strings with formats are allowed."
_PATH = re.compile(r"\.[a-zA-Z_\\]|\.\.|\[|\.\*")

_FALSY_DROPPED = (
    "id", "$schema", "$ref", "description", "type", "nullable", "format", "title", "exclusiveMaximum", "exclusiveMinimum",
    "pattern", "uniqueItems", "enum", "required", "allOf", "anyOf", "oneOf", "properties", "patternProperties", "dependencies",
    "definitions", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string", "x-kubernetes-list-map-keys",
    "x-kubernetes-validations",
)  # fmt: skip
"""Fields of a schema that are not printed when empty."""
_MAPS, _LISTS = ("properties", "patternProperties", "definitions"), ("allOf", "anyOf", "oneOf")
_SINGLES = ("not", "items", "additionalProperties", "additionalItems")


def _normal(part: Any) -> Any:
    """A schema as it is printed after decoding."""
    if not isinstance(part, dict):
        return part
    out = {key: value for key, value in part.items() if value is not None and (value or key not in _FALSY_DROPPED)}
    for key in _MAPS:
        if key in out:
            out[key] = {name: _normal(below) for name, below in out[key].items()}
    for key in _LISTS:
        if key in out:
            out[key] = [_normal(below) for below in out[key]]
    for key in _SINGLES:
        if key in out:
            out[key] = _normal(out[key])
    return out


def default(obj: Obj) -> None:
    """Names, conversion, webhook port; empty fields that the real server does not print go away."""
    spec = obj.setdefault("spec", {})
    names = spec.setdefault("names", {})
    kind = names.setdefault("kind", "")
    names.setdefault("plural", "")
    if not names.get("singular") and kind:
        names["singular"] = kind.lower()
    if not names.get("listKind") and kind:
        names["listKind"] = kind + "List"
    if not spec.get("preserveUnknownFields"):
        spec.pop("preserveUnknownFields", None)
    conversion = spec.get("conversion") or {}
    spec["conversion"] = conversion if conversion.get("strategy") else {**conversion, "strategy": "None"}
    service = ((conversion.get("webhook") or {}).get("clientConfig") or {}).get("service")
    if service is not None:
        service.setdefault("port", 443)
    for row in (obj.get("status") or {}).get("conditions") or ():
        row.setdefault("type", "")
        row.setdefault("status", "")
    for version in spec.get("versions") or ():
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is not None:
            version["schema"]["openAPIV3Schema"] = _normal(schema)
        if not version.get("deprecated"):
            version.pop("deprecated", None)
        for column in version.get("additionalPrinterColumns") or ():
            for key in ("format", "description", "priority"):
                if not column.get(key):
                    column.pop(key, None)


def prepare(new: Obj, old: Obj | None) -> None:
    """The status of a new definition; the storage version joins `storedVersions`."""
    stored = [str(row["name"]) for row in new["spec"].get("versions") or () if row.get("storage")]
    if old is None:
        names = {"plural": "", "kind": ""}
        new["status"] = {"conditions": None, "acceptedNames": names, "storedVersions": stored[:1] or None}
        return
    state = new.get("status")
    if state is not None and stored:
        known = state.get("storedVersions") or []
        if new["spec"] != old["spec"] and stored[0] not in known:
            new["status"] = {**state, "storedVersions": [*known, stored[0]]}


# -- validation ------------------------------------------------------------------------------------------------------------


def _shared(versions: list[Obj], key: str) -> bool:
    return all(row.get(key) == versions[0].get(key) for row in versions)


_INTERNAL = {
    "schema": "spec.validation",
    "subresources": "spec.subresources",
    "additionalPrinterColumns": "spec.additionalPrinterColumns",
    "selectableFields": "spec.selectableFields",
}


class _Places:
    """Where faults of one version are reported."""

    def __init__(self, versions: list[Obj]) -> None:
        self.shared = {key: _shared(versions, key) for key in _INTERNAL}

    def of(self, key: str, index: int) -> str:
        return _INTERNAL[key] if self.shared[key] else f"spec.versions[{index}].{key}"

    def looks_at(self, key: str, index: int) -> bool:
        return index == 0 or not self.shared[key]


def validate(obj: Obj, check: Check) -> None:
    """What is wrong with a definition."""
    spec = obj["spec"]
    names, group = spec["names"], spec.get("group", "")
    name = obj["metadata"].get("name", "")
    if name != f"{names.get('plural', '')}.{group}":
        check.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    _check_group(obj, group, check)
    check.one_of("spec.scope", spec.get("scope"), ("Cluster", "Namespaced"))
    if spec.get("preserveUnknownFields"):
        text = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        check.invalid("spec.preserveUnknownFields", True, text)
    versions = spec.get("versions") or []
    _check_versions(versions, check)
    _check_names(names, "spec.names", check)
    _check_conversion(spec["conversion"], check)
    stored = [str(row["name"]) for row in versions if row.get("storage")]
    _check_stored((obj.get("status") or {}).get("storedVersions"), stored, versions, check)


def _check_group(obj: Obj, group: str, check: Check) -> None:
    if not group:
        check.required("spec.group")
        return
    errors = subdomain_errors(group)
    check.all_invalid("spec.group", group, errors)
    if not errors and "." not in group:
        check.invalid("spec.group", group, "should be a domain with at least one dot")
    if not group.endswith((".k8s.io", ".kubernetes.io")) and group not in ("k8s.io", "kubernetes.io"):
        return
    field, given = f"metadata.annotations[{APPROVAL}]", (obj["metadata"].get("annotations") or {}).get(APPROVAL)
    if given is None:
        check.required(field, f'protected groups must have approval annotation "{APPROVAL}", {_SEE}')
    elif not given.startswith(("unapproved", "https://", "http://")):
        text = f'protected groups must have approval annotation "{APPROVAL}" with either a URL or a reason'
        check.invalid(field, given, f'{text} starting with "unapproved", {_SEE}')


def _internal(versions: list[Obj]) -> list[Obj]:
    """Versions as texts print them."""
    rest = ("Schema", "Subresources", "AdditionalPrinterColumns", "SelectableFields")
    return [
        {
            "Name": row.get("name", ""),
            "Served": row.get("served", False),
            "Storage": row.get("storage", False),
            "Deprecated": row.get("deprecated", False),
            "DeprecationWarning": row.get("deprecationWarning"),
            **dict.fromkeys(rest),
        }
        for row in versions
    ]


def _check_versions(versions: list[Obj], check: Check) -> None:
    places = _Places(versions)
    for index, row in enumerate(versions):
        where = f"spec.versions[{index}]"
        check.all_invalid(f"{where}.name", row.get("name", ""), label1035_errors(row.get("name", "")))
        if row.get("deprecationWarning") is not None and not row.get("deprecated"):
            check.invalid(
                f"{where}.deprecationWarning", row["deprecationWarning"], "can only be set for deprecated versions"
            )
        _check_version(row, index, places, check)
    names = [row.get("name") for row in versions]
    if len(set(names)) != len(names):
        check.invalid("spec.versions", _internal(versions), "must contain unique version names")
    if sum(bool(row.get("storage")) for row in versions) != 1:
        check.invalid("spec.versions", _internal(versions), "must have exactly one version marked as storage version")
    if versions:
        check.all_invalid("spec.version", names[0], label1035_errors(names[0] or ""))


def _check_version(row: Obj, index: int, places: _Places, check: Check) -> None:
    schema = (row.get("schema") or {}).get("openAPIV3Schema")
    if schema is None:
        check.required(f"spec.versions[{index}].schema.openAPIV3Schema")
    elif places.looks_at("schema", index):
        check.causes += structure.check(schema, f"{places.of('schema', index)}.openAPIV3Schema")
    if places.looks_at("additionalPrinterColumns", index):
        for place, column in enumerate(row.get("additionalPrinterColumns") or ()):
            _check_column(column, f"{places.of('additionalPrinterColumns', index)}[{place}]", check)
    if places.looks_at("subresources", index):
        scale = (row.get("subresources") or {}).get("scale")
        if scale is not None:
            _check_scale(scale, f"{places.of('subresources', index)}.scale", check)
    if places.looks_at("selectableFields", index):
        _check_selectable(row, schema or {}, places.of("selectableFields", index), check)


def _check_path(path: str, field: str, check: Check, roots: tuple[str, ...] = ()) -> None:
    try:
        jsonpath.parse(path)
        good = bool(_PATH.match(path))
    except jsonpath.BadPath:
        good = bool(_PATH.match(path)) and not roots
    if not good:
        check.invalid(field, path, "must be a simple json path starting with .")
    elif roots and not path.startswith(roots):
        place = " or ".join(root.rstrip(".") for root in roots)
        check.invalid(field, path, f"should be a json path under {'either ' if len(roots) > 1 else ''}{place}")


def _check_column(column: Obj, where: str, check: Check) -> None:
    if not column.get("name"):
        check.required(f"{where}.name")
    kind, form = column.get("type", ""), column.get("format", "")
    if not kind:
        check.required(f"{where}.type")
    elif kind not in _TYPES:
        check.invalid(f"{where}.type", kind, f"must be one of {','.join(_TYPES)}")
    if form and form not in _FORMATS:
        check.invalid(f"{where}.format", form, f"must be one of {','.join(_FORMATS)}")
    if not column.get("jsonPath"):
        check.required(f"{where}.JSONPath")
    else:
        _check_path(column["jsonPath"], f"{where}.JSONPath", check)


def _check_scale(scale: Obj, where: str, check: Check) -> None:
    for key, roots in (("specReplicasPath", (".spec.",)), ("statusReplicasPath", (".status.",))):
        if not scale.get(key):
            check.required(f"{where}.{key}")
        else:
            _check_path(scale[key], f"{where}.{key}", check, roots)
    if scale.get("labelSelectorPath"):
        _check_path(scale["labelSelectorPath"], f"{where}.labelSelectorPath", check, (".spec.", ".status."))


def _check_selectable(row: Obj, schema: Obj, where: str, check: Check) -> None:
    seen: set[str] = set()
    for index, field in enumerate(row.get("selectableFields") or ()):
        path, at = field.get("jsonPath", ""), f"{where}[{index}].jsonPath"
        if not path:
            check.required(at)
        elif path[0] not in ".[":
            check.invalid(at, path, f"is an invalid path: expected [ or . but got: {path}")
        else:
            _check_selected(path, at, schema, seen, check)


def _check_selected(path: str, at: str, schema: Obj, seen: set[str], check: Check) -> None:
    found: Any = schema
    try:
        for name in jsonpath.parse_plain(path):
            found = (found or {}).get("properties", {}).get(name)
    except jsonpath.BadPath:
        found = None
    if found is None or path.startswith(".metadata"):
        check.invalid(at, path, "is an invalid path: does not refer to a valid field")
    elif found.get("type") not in _SELECTABLE:
        check.invalid(at, path, f"must point to a field of type {_SELECTED}")
    if path in seen:
        check.duplicate(at, path)
    seen.add(path)


def _check_kind(kind: str, field: str, check: Check) -> None:
    if not kind:
        check.required(field)
        return
    for text in label1035_errors(kind.lower()):
        check.invalid(field, kind, f"may have mixed case, but should otherwise match: {text}")


def _check_names(names: Obj, where: str, check: Check) -> None:
    for key in ("plural", "singular"):
        if not names.get(key):
            check.required(f"{where}.{key}")
        else:
            check.all_invalid(f"{where}.{key}", names[key], label1035_errors(names[key]))
    _check_kind(names.get("kind", ""), f"{where}.kind", check)
    _check_kind(names.get("listKind", ""), f"{where}.listKind", check)
    for index, name in enumerate(names.get("shortNames") or ()):
        check.all_invalid(f"{where}.shortNames[{index}]", name, label1035_errors(name))
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        check.invalid(f"{where}.listKind", names["listKind"], "kind and listKind may not be the same")
    for index, name in enumerate(names.get("categories") or ()):
        check.all_invalid(f"{where}.categories[{index}]", name, label1035_errors(name))


def _check_conversion(conversion: Obj, check: Check) -> None:
    where, strategy = "spec.conversion", conversion["strategy"]
    check.one_of(f"{where}.strategy", strategy, ("None", "Webhook"))
    client, versions = f"{where}.webhookClientConfig", f"{where}.conversionReviewVersions"
    webhook = conversion.get("webhook") or {}
    if strategy == "None":
        text = "should not be set when strategy is not set to Webhook"
        if webhook.get("clientConfig") is not None:
            check.forbidden(client, text)
        if webhook.get("conversionReviewVersions"):
            check.forbidden(versions, text)
    if strategy != "Webhook":
        return
    config = webhook.get("clientConfig")
    if config is None:
        check.required(client, "required when strategy is set to Webhook")
    elif bool(config.get("url")) == (config.get("service") is not None):
        check.required(client, "exactly one of url or service is required")
    found = webhook.get("conversionReviewVersions") or []
    if not found:
        check.required(versions)
    elif not {"v1", "v1beta1"} & set(found):
        check.invalid(versions, found, "must include at least one of v1, v1beta1")


def _check_stored(known: list[str] | None, stored: list[str], versions: list[Obj], check: Check) -> None:
    field = "status.storedVersions"
    if not known:
        check.invalid(field, None if known is None else known, "must have at least one stored version")
        return
    names = {row.get("name") for row in versions}
    for index, name in enumerate(known):
        if name not in names:
            text = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a "
                f"storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
            )
            check.invalid(f"{field}[{index}]", name, text)
    if stored and stored[-1] not in known:
        check.invalid(field, known, f"must have the storage version {stored[-1]}")


def validate_update(new: Obj, old: Obj, check: Check) -> None:
    """What may not change once the names are accepted."""
    mine, theirs = new["spec"], old["spec"]
    rows = ((old.get("status") or {}).get("conditions")) or ()
    if any(row.get("type") == "Established" and row.get("status") == "True" for row in rows):
        check.immutable("spec.scope", mine.get("scope"), theirs.get("scope"))
        check.immutable("spec.names.kind", mine["names"].get("kind"), theirs["names"].get("kind"))
    check.immutable("spec.group", mine.get("group"), theirs.get("group"))
    check.immutable("spec.names.plural", mine["names"].get("plural"), theirs["names"].get("plural"))
    if mine.get("group") != theirs.get("group") or mine["names"].get("plural") != theirs["names"].get("plural"):
        check.causes[:] = [cause for cause in check.causes if cause.field != "metadata.name"]


DEFINITION = Behaviour(
    default=default,
    prepare=prepare,
    validate=validate,
    validate_update=validate_update,
    name_errors=subdomain_errors,
    generation=True,
)


def format_warnings(obj: Obj) -> list[str]:
    """Warnings about formats that nobody checks."""
    found: dict[str, None] = {}
    for version in obj["spec"].get("versions") or ():
        for _, part in walk((version.get("schema") or {}).get("openAPIV3Schema") or {}):
            form = part.get("format")
            if form and not is_known(form):
                found[f'unrecognized format "{form}"'] = None
    return list(found)
