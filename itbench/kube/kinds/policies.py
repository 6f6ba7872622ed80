"""ValidatingAdmissionPolicies and their bindings: defaults and rules."""

import re

from itbench.kube.client import Obj
from itbench.kube.kinds.admission import FAILURES, check_conditions, check_match, default_match
from itbench.kube.kinds.affinity import check_label_selector
from itbench.kube.kinds.base import Behaviour
from itbench.kube.kinds.check import Check
from itbench.kube.kinds.expressions import Expression, check_expressions, outcomes, variables
from itbench.kube.names import label1035_errors, qualified_errors, subdomain_errors

_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_ACTIONS = ("Audit", "Deny", "Warn")
_IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
_ONE = "validations or auditAnnotations must contain at least one item"


def _default_policy(obj: Obj) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("failurePolicy", "Fail")
    if spec.get("matchConstraints") is not None:
        default_match(spec["matchConstraints"])


def composed(spec: Obj) -> list[tuple[str, str]]:
    """Names and expressions of a policy's variables, in order."""
    return [(row.get("name", ""), row.get("expression", "")) for row in spec.get("variables") or ()]


def _check_policy(obj: Obj, check: Check) -> None:
    spec = obj["spec"]
    if spec.get("failurePolicy") not in (None, *FAILURES):
        check.unsupported("spec.failurePolicy", spec["failurePolicy"], FAILURES)
    if spec.get("paramKind") is not None:
        _check_param_kind(spec["paramKind"], check)
    if spec.get("matchConstraints") is None:
        check.required("spec.matchConstraints")
    else:
        check_match(spec["matchConstraints"], "spec.matchConstraints", check)
        if not spec["matchConstraints"].get("resourceRules"):
            check.required("spec.matchConstraints.resourceRules")
    known = variables(params=spec.get("paramKind") is not None)
    text = "expression is not specified"
    check_conditions(spec.get("matchConditions") or [], "spec.matchConditions", check, known, text)
    _check_variables(spec, known, check)
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        check.required("spec.validations", _ONE)
        check.required("spec.auditAnnotations", _ONE)
    for index, row in enumerate(spec.get("validations") or ()):
        _check_validation(row, f"spec.validations[{index}]", spec, known, check)
    _check_audit(obj, known, check)


def _check_param_kind(kind: Obj, check: Check) -> None:
    version = kind.get("apiVersion", "")
    if not version:
        check.required("spec.paramKind.apiVersion")
    elif version.count("/") > 1:
        check.invalid("spec.paramKind.apiVersion", version, f"unexpected GroupVersion string: {version}")
    name = kind.get("kind", "")
    if not name:
        check.required("spec.paramKind.kind")
    elif errors := label1035_errors(name.lower()):
        text = f"may have mixed case, but should otherwise match: {', '.join(errors)}"
        check.invalid("spec.paramKind.kind", name, text)


def _check_variables(spec: Obj, known: dict[str, str], check: Check) -> None:
    rows = composed(spec)
    usable = [(name, text) for name, text in rows if _IDENTIFIER.fullmatch(name)]
    found = dict(zip([name for name, _ in usable], outcomes([], known, usable)[0], strict=True)) if usable else {}
    for index, (name, text) in enumerate(rows):
        field = f"spec.variables[{index}]"
        if not name:
            check.required(f"{field}.name", "name is not specified")
        elif not _IDENTIFIER.fullmatch(name):
            check.invalid(f"{field}.name", name, "must be a valid CEL identifier")
        if not text.strip():
            check.required(f"{field}.expression", "expression is not specified")
        elif name in found and found[name].error:
            check.invalid(f"{field}.expression", text, f"compilation failed: {found[name].error}")


def _check_validation(row: Obj, field: str, spec: Obj, known: dict[str, str], check: Check) -> None:
    message = row.get("message", "")
    text = Expression(f"{field}.expression", row.get("expression", ""), missing="expression is not specified")
    check_expressions([text], check, known, composed(spec))
    said = row.get("messageExpression", "")
    if said and not said.strip():
        check.invalid(f"{field}.messageExpression", said, "must be non-empty if specified")
    elif said:
        quiet = {name: kind for name, kind in known.items() if not name.startswith("authorizer")}
        expression = Expression(f"{field}.messageExpression", said, ("string",))
        check_expressions([expression], check, quiet, composed(spec))
    if message and not message.strip():
        check.invalid(f"{field}.message", message, "must be non-empty if specified")
    elif "\n" in message.strip():
        check.invalid(f"{field}.message", message, "must not contain line breaks")
    elif "\n" in row.get("expression", "") and not message:
        check.required(f"{field}.message", "must be specified if expression contains line breaks")
    if row.get("reason") not in (None, *_REASONS):
        check.unsupported(f"{field}.reason", row["reason"], _REASONS)


def _check_audit(obj: Obj, known: dict[str, str], check: Check) -> None:
    spec, name = obj["spec"], obj["metadata"].get("name", "")
    keys: list[str] = []
    for index, row in enumerate(spec.get("auditAnnotations") or ()):
        field, key = f"spec.auditAnnotations[{index}]", row.get("key", "")
        if not key:
            check.required(f"{field}.key", "key is not specified")
        else:
            full = f"{name}/{key}"
            check.all_invalid(f"{field}.key", full, qualified_errors(full))
        text = Expression(
            f"{field}.valueExpression",
            row.get("valueExpression", ""),
            ("string", "null_type"),
            "valueExpression is not specified",
        )
        check_expressions([text], check, known, composed(spec))
        if key in keys:
            check.duplicate(f"{field}.key", key)
        keys.append(key)


# -- bindings ----------------------------------------------------------------------------------------------------------------


def _default_binding(obj: Obj) -> None:
    spec = obj.setdefault("spec", {})
    if spec.get("matchResources") is not None:
        default_match(spec["matchResources"])


def _check_binding(obj: Obj, check: Check) -> None:
    spec = obj["spec"]
    name = spec.get("policyName", "")
    if not name:
        check.required("spec.policyName")
    else:
        check.all_invalid("spec.policyName", name, subdomain_errors(name))
    if spec.get("paramRef") is not None:
        _check_param_ref(spec["paramRef"], check)
    if spec.get("matchResources") is not None:
        check_match(spec["matchResources"], "spec.matchResources", check)
    _check_actions(spec.get("validationActions") or [], check)


def _check_param_ref(ref: Obj, check: Check) -> None:
    if ref.get("name") and ref.get("selector") is not None:
        for key in ("name", "selector"):
            check.forbidden(f"spec.paramRef.{key}", "name and selector are mutually exclusive")
    elif not ref.get("name") and ref.get("selector") is None:
        check.required("spec.paramRef", "one of name or selector must be specified")
    elif ref.get("selector") is not None:
        check_label_selector(ref["selector"], "spec.paramRef.selector", check)
    action = ref.get("parameterNotFoundAction")
    if not action:
        check.required("spec.paramRef.parameterNotFoundAction")
    elif action not in ("Deny", "Allow"):
        check.unsupported("spec.paramRef.parameterNotFoundAction", action, ("Deny", "Allow"))


def _check_actions(actions: list[str], check: Check) -> None:
    field = "spec.validationActions"
    if not actions:
        check.required(field, "at least one validation action is required")
    for index, action in enumerate(actions):
        if action not in _ACTIONS:
            check.unsupported(f"{field}[{index}]", action, _ACTIONS)
        if action in actions[:index]:
            check.duplicate(f"{field}[{index}]", action)
    if "Deny" in actions and "Warn" in actions:
        why = "repeating the same validation failure information in the API response and headers serves no purpose"
        check.invalid(field, actions, f"must not contain both Deny and Warn ({why})")


POLICY = Behaviour(default=_default_policy, validate=_check_policy, generation=True)
BINDING = Behaviour(default=_default_binding, validate=_check_binding, generation=True)
