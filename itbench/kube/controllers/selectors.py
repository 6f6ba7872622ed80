"""Label selectors as objects carry them (`matchLabels`, `matchExpressions`, plain maps). Called by controllers and scheduler."""

from collections.abc import Iterable, Mapping
from typing import Any

from itbench.kube.client import Obj


def pairs_match(wanted: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """True when every wanted pair is among the labels (selectors of Services, node selectors)."""
    return all(labels.get(key) == value for key, value in wanted.items())


def matches(selector: Obj | None, labels: Mapping[str, str]) -> bool:
    """A LabelSelector against labels: none matches nothing, an empty one everything."""
    if selector is None:
        return False
    if not pairs_match(selector.get("matchLabels") or {}, labels):
        return False
    return all(requirement_matches(r, labels) for r in selector.get("matchExpressions") or ())


def selector_of(owner: Obj) -> Obj | None:
    """A workload's selector as a LabelSelector (ReplicationControllers carry a plain map)."""
    selector: Obj | None = owner["spec"].get("selector")
    if owner.get("kind") == "ReplicationController":
        return {"matchLabels": selector or {}}
    return selector


def requirement_matches(requirement: Obj, labels: Mapping[str, str]) -> bool:
    """One `{key, operator, values}` requirement, with the node operators Gt and Lt."""
    key, operator, values = requirement["key"], requirement["operator"], requirement.get("values") or []
    if operator == "Exists":
        return key in labels
    if operator == "DoesNotExist":
        return key not in labels
    if operator == "In":
        return labels.get(key) in values if key in labels else False
    if operator == "NotIn":
        return key not in labels or labels[key] not in values
    return _compare(operator, labels.get(key), values)


def _compare(operator: str, value: str | None, values: list[str]) -> bool:
    try:
        seen, bound = int(value or "x"), int(values[0])
    except (ValueError, IndexError):
        return False
    return seen > bound if operator == "Gt" else seen < bound if operator == "Lt" else False


def is_empty(selector: Obj | None) -> bool:
    """True for a selector without any requirement."""
    return not selector or not (selector.get("matchLabels") or selector.get("matchExpressions"))


def exact_pairs(selector: Obj | None) -> Iterable[tuple[str, Any]]:
    """The pairs that any match must carry: what an index can be asked for."""
    return ((selector or {}).get("matchLabels") or {}).items()
