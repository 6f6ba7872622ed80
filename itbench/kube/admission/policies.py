"""ValidatingAdmissionPolicy: what policies and their bindings say about a write; the last word before webhooks and quota.

Only here are the decisions made; how expressions are evaluated is `itbench.engines.cel_rules`.
"""

from dataclasses import dataclass
from typing import Any

from itbench.core.errors import ItbenchError
from itbench.engines.cel_rules import Outcome, Rule, evaluate
from itbench.kube import versions
from itbench.kube.admission.attributes import data_of, decide
from itbench.kube.admission.matching import GROUP, match
from itbench.kube.admission.write import Write
from itbench.kube.client import ApiError, Obj
from itbench.kube.kinds.expressions import variables
from itbench.kube.kinds.policies import composed
from itbench.kube.resources import Resource
from itbench.kube.selectors import matches
from itbench.kube.status import Cause, about, failure

_CODES = {"Unauthorized": 401, "Forbidden": 403, "Invalid": 422, "RequestEntityTooLarge": 413}
_NO_PARAMS = "no params found for policy binding with `Deny` parameterNotFoundAction"
FAILURE_NOTE = "validation.policy.admission.k8s.io/validation_failure"


class Misconfigured(Exception):
    """A policy or binding cannot be applied; whether that denies is up to the failure policy."""


@dataclass(frozen=True, slots=True)
class Denial:
    """One thing that a policy holds against a write."""

    message: str
    policy: str
    binding: str
    reason: str = "Invalid"

    def text(self) -> str:
        """The words of the refusal."""
        by = f" with binding '{self.binding}'" if self.binding else ""
        return f"ValidatingAdmissionPolicy '{self.policy}'{by} denied request: {self.message}"

    def error(self, write: Write) -> ApiError:
        """The refusal."""
        text = self.text()
        message = f'{write.resource.name} "{write.name}" is forbidden: {text}'
        problem = about(write.resource, write.name)
        return failure(_CODES[self.reason], self.reason, message, problem, [Cause("", "", text)])


def _stored(write: Write, plural: str) -> list[Obj]:
    return [entry.object for entry in write.store.list(f"{plural}.{GROUP}")]


def validating_policies(write: Write) -> None:
    """Deny, warn and note for the audit what the policies in force hold against a write."""
    bindings = _stored(write, "validatingadmissionpolicybindings")
    if not bindings:
        return
    denials: list[Denial] = []
    for policy in _stored(write, "validatingadmissionpolicies"):
        name, spec = policy["metadata"]["name"], policy["spec"]
        bound = [row for row in bindings if row["spec"].get("policyName") == name]
        found = match(spec.get("matchConstraints") or {}, write) if bound else None
        if found is None:
            continue
        try:
            kind = _param_resource(write, spec)
        except Misconfigured as error:
            if spec.get("failurePolicy") != "Ignore":
                denials.append(Denial(f"failed to configure policy: {error}", name, ""))
            continue
        for binding in bound:
            if match(binding["spec"].get("matchResources") or {}, write, optional=True) is not None:
                denials += _apply(write, found.resource, policy, binding, kind)
    if denials:
        raise denials[0].error(write)


# -- parameters --------------------------------------------------------------------------------------------------------------


def _param_resource(write: Write, spec: Obj) -> Resource | None:
    kind = spec.get("paramKind")
    if kind is None:
        return None
    resource = write.table.by_kind(kind["apiVersion"], kind["kind"])
    if resource is None:
        version = kind["apiVersion"] if "/" in kind["apiVersion"] else f"/{kind['apiVersion']}"
        text = f"failed to find resource referenced by paramKind: '{version}, Kind={kind['kind']}'"
        raise Misconfigured(text)
    return resource


def _params(write: Write, kind: Resource | None, ref: Obj | None) -> list[Obj | None]:
    """The parameter objects of a binding; a single None where it has none."""
    if kind is None or ref is None:
        return [None]
    namespace = ref.get("namespace", "")
    if not kind.namespaced and namespace:
        raise Misconfigured("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
    if kind.namespaced and not namespace:
        namespace = write.namespace
        if not namespace:
            text = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
            raise Misconfigured(text)
    if ref.get("name"):
        entry = write.store.get(kind.storage, namespace, ref["name"])
        found = [entry] if entry is not None else []
    else:
        rows = write.store.list(kind.storage, namespace)
        found = [row for row in rows if matches(ref.get("selector"), row.object["metadata"].get("labels"))]
    if not found and ref.get("parameterNotFoundAction") != "Allow":
        raise Misconfigured(_NO_PARAMS)
    return [versions.to_served(row.object, kind) for row in found]


# -- one binding -------------------------------------------------------------------------------------------------------------


def _apply(write: Write, resource: Resource, policy: Obj, binding: Obj, kind: Resource | None) -> list[Denial]:
    """What one binding of a policy denies; warnings and notes go to the write."""
    spec, name, bound = policy["spec"], policy["metadata"]["name"], binding["metadata"]["name"]
    strict = spec.get("failurePolicy") != "Ignore"
    try:
        params = _params(write, kind, binding["spec"].get("paramRef"))
    except Misconfigured as error:
        return [Denial(f"failed to configure binding: {error}", name, bound)] if strict else []
    denials: list[Denial] = []
    for param in params:
        data = data_of(write, resource)
        known = variables(params=kind is not None)
        if kind is not None:
            data["params"] = param
        for message, reason in _failures(write, spec, data, known, strict=strict):
            denials += _enforce(write, Denial(message, name, bound, reason), binding)
    return denials


def _enforce(write: Write, denial: Denial, binding: Obj) -> list[Denial]:
    actions = binding["spec"].get("validationActions") or []
    if "Warn" in actions:
        head = f"Validation failed for ValidatingAdmissionPolicy '{denial.policy}' with binding '{denial.binding}'"
        write.warnings.append(f"{head}: {denial.message}")
    if "Audit" in actions:
        write.notes.append(f"{FAILURE_NOTE}: {denial.policy}/{denial.binding}: {denial.message}")
    return [denial] if "Deny" in actions else []


def _failures(
    write: Write, spec: Obj, data: dict[str, Any], known: dict[str, str], *, strict: bool
) -> list[tuple[str, str]]:
    """(message, reason) of each validation that does not hold."""
    conditions = [row["expression"] for row in spec.get("matchConditions") or ()]
    try:
        found = _ask(write, conditions, data, known, [])
        if any(row.value is False for row in found):
            return []
        faults = [
            (_faulty(text, row.fault or row.error), "Invalid")
            for text, row in zip(conditions, found, strict=True)
            if row.fault or row.error
        ]
        if faults:
            return faults[:1] if strict else []
        return _validate(write, spec, data, known, strict=strict)
    except ItbenchError as error:  # an expression that makes the engine give up
        return [(f"expression evaluation failed: {error}", "Invalid")] if strict else []


def _validate(
    write: Write, spec: Obj, data: dict[str, Any], known: dict[str, str], *, strict: bool
) -> list[tuple[str, str]]:
    rows = spec.get("validations") or []
    texts = [row["expression"] for row in rows]
    outcomes = _ask(write, texts, data, known, composed(spec))
    failures: list[tuple[str, str]] = []
    for row, outcome in zip(rows, outcomes, strict=True):
        fault = outcome.fault or outcome.error
        if fault:
            failures += [(_faulty(row["expression"], fault), "Invalid")] if strict else []
        elif outcome.value is not True:
            message = _message(write, row, data, known, composed(spec))
            failures.append((message, row.get("reason", "Invalid")))
    for row in spec.get("auditAnnotations") or ():
        value = _ask(write, [row["valueExpression"]], data, known, composed(spec))[0].value
        if isinstance(value, str) and value.strip():
            write.notes.append(f"{row['key']}: {value}")
    return failures


def _faulty(expression: str, fault: str) -> str:
    return f"expression '{expression}' resulted in error: {fault}"


def _message(write: Write, row: Obj, data: dict[str, Any], known: dict[str, str], named: list[tuple[str, str]]) -> str:
    """What the author says about a failed validation, else the expression."""
    if row.get("messageExpression"):
        said = _ask(write, [row["messageExpression"]], data, known, named)[0].value
        if isinstance(said, str) and said.strip() and "\n" not in said:
            return said.strip()
    message = str(row.get("message", "")).strip()
    return message or f"failed expression: {row['expression'].strip()}"


def _ask(
    write: Write, texts: list[str], data: dict[str, Any], known: dict[str, str], named: list[tuple[str, str]]
) -> list[Outcome]:
    if not texts:
        return []
    return evaluate([Rule(text) for text in texts], known, data, named, lambda question: decide(write, question))
