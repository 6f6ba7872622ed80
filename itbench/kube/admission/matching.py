"""Which requests a webhook or policy wants to see: rules, scope, namespace and object selectors. Used by both."""

from dataclasses import dataclass

from itbench.kube.admission.write import Write
from itbench.kube.client import Obj
from itbench.kube.resources import Resource
from itbench.kube.selectors import matches

GROUP = "admissionregistration.k8s.io"
_EXEMPT = frozenset(
    f"{name}.{GROUP}"
    for name in (
        "validatingwebhookconfigurations",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
    )
)
"""What nobody may intercept: it would be the way to lock everybody out."""


@dataclass(frozen=True, slots=True)
class Match:
    """A request that is wanted, and the resource as which it is shown."""

    resource: Resource


def _wanted(values: list[str], value: str) -> bool:
    return "*" in values or value in values


def _resource_matches(rule: Obj, plural: str, subresource: str) -> bool:
    rows = (wanted.partition("/")[::2] for wanted in rule.get("resources") or ())
    return any(name in ("*", plural) and sub in ("*", subresource) for name, sub in rows)


def _rule_matches(rule: Obj, write: Write, resource: Resource) -> bool:
    scope = rule.get("scope", "*")
    namespaced = bool(write.namespace) and write.key != "namespaces"
    if scope != "*" and (scope == "Namespaced") is not namespaced:
        return False
    names = rule.get("resourceNames") or []
    return (
        _wanted(rule.get("operations") or [], write.operation)
        and _wanted(rule.get("apiGroups") or [], resource.group)
        and _wanted(rule.get("apiVersions") or [], resource.version)
        and _resource_matches(rule, resource.plural, write.subresource)
        and (not names or write.name in names)
    )


def _candidates(write: Write, policy: str) -> list[Resource]:
    """The resource of the request, then others that show the same objects."""
    own = write.resource
    if policy == "Exact":
        return [own]
    return [own, *(row for row in write.table if row.storage == own.storage and row is not own)]


def find(rules: list[Obj], write: Write, policy: str) -> Match | None:
    """The first way in which rules want a request."""
    for resource in _candidates(write, policy):
        if any(_rule_matches(rule, write, resource) for rule in rules):
            return Match(resource)
    return None


def _labels(obj: Obj | None) -> dict[str, str]:
    return ((obj or {}).get("metadata") or {}).get("labels") or {}


def _empty(selector: Obj | None) -> bool:
    return not selector or not (selector.get("matchLabels") or selector.get("matchExpressions"))


def _namespace_matches(selector: Obj | None, write: Write) -> bool:
    if _empty(selector):
        return True
    if write.key == "namespaces":
        return matches(selector, _labels(write.object))
    if not write.namespace:
        return True
    entry = write.store.get("namespaces", "", write.namespace)
    return entry is not None and matches(selector, _labels(entry.object))


def _object_matches(selector: Obj | None, write: Write) -> bool:
    if _empty(selector):
        return True
    states = [write.object] if write.old is None else [write.object, write.old]
    return any(matches(selector, _labels(state)) for state in states)


def match(selection: Obj, write: Write, rules: str = "resourceRules", *, optional: bool = False) -> Match | None:
    """Whether a webhook, `matchConstraints` or `matchResources` wants a request.

    Args:
        rules: the field that holds the rules.
        optional: no rules at all match everything (bindings).
    """
    if write.key in _EXEMPT or not _namespace_matches(selection.get("namespaceSelector"), write):
        return None
    if not _object_matches(selection.get("objectSelector"), write):
        return None
    policy = selection.get("matchPolicy", "Equivalent")
    if find(selection.get("excludeResourceRules") or [], write, policy) is not None:
        return None
    wanted = selection.get(rules) or []
    if optional and not wanted:
        return Match(write.resource)
    return find(wanted, write, policy)
