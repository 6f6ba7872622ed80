"""Where a pod may run: affinity, tolerations, spread; and label selectors in specs. Called by the kinds that have them."""

from collections.abc import Iterable

from itbench.kube.client import Obj
from itbench.kube.kinds.check import Check
from itbench.kube.names import label_value_errors, labels_errors, qualified_errors

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NODE_OPS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_LABEL_OPS = ("In", "NotIn", "Exists", "DoesNotExist")
_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def check_node_selector(selector: Obj, field: str, check: Check) -> None:
    """A label map."""
    for value, text in labels_errors(selector):
        check.invalid(field, value, text)


def check_label_selector(selector: Obj | None, field: str, check: Check) -> None:
    """matchLabels and matchExpressions."""
    if selector is None:
        return
    for value, text in labels_errors(selector.get("matchLabels") or {}):
        check.invalid(f"{field}.matchLabels", value, text)
    for index, row in enumerate(selector.get("matchExpressions") or ()):
        where = f"{field}.matchExpressions[{index}]"
        operator, values = row.get("operator", ""), row.get("values") or []
        if operator in ("In", "NotIn") and not values:
            check.required(f"{where}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in ("Exists", "DoesNotExist") and values:
            check.forbidden(f"{where}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
        elif operator not in _LABEL_OPS:
            check.invalid(f"{where}.operator", operator, "not a valid selector operator")
        check.all_invalid(f"{where}.key", row.get("key", ""), qualified_errors(row.get("key", "")))
        for at, value in enumerate(values):
            check.all_invalid(f"{where}.values[{at}]", value, label_value_errors(value))


def _check_node_term(term: Obj, field: str, check: Check) -> None:
    for index, row in enumerate(term.get("matchExpressions") or ()):
        where = f"{field}.matchExpressions[{index}]"
        operator, values = row.get("operator", ""), row.get("values") or []
        if operator in ("In", "NotIn") and not values:
            check.required(f"{where}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in ("Exists", "DoesNotExist") and values:
            check.forbidden(f"{where}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
        elif operator in ("Gt", "Lt") and len(values) != 1:
            check.required(f"{where}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
        elif operator not in _NODE_OPS:
            check.invalid(f"{where}.operator", operator, "not a valid selector operator")
        check.all_invalid(f"{where}.key", row.get("key", ""), qualified_errors(row.get("key", "")))


def _check_node(affinity: Obj, field: str, check: Check) -> None:
    required = affinity.get(_REQUIRED)
    if required is not None:
        terms = required.get("nodeSelectorTerms") or []
        if not terms:
            check.required(f"{field}.{_REQUIRED}.nodeSelectorTerms", "must have at least one node selector term")
        for index, term in enumerate(terms):
            _check_node_term(term, f"{field}.{_REQUIRED}.nodeSelectorTerms[{index}]", check)
    for index, row in enumerate(affinity.get(_PREFERRED) or ()):
        where = f"{field}.{_PREFERRED}[{index}]"
        if not 1 <= row.get("weight", 0) <= 100:
            check.invalid(f"{where}.weight", row.get("weight", 0), "must be in the range 1-100")
        _check_node_term(row.get("preference") or {}, f"{where}.preference", check)


def _check_pod_term(term: Obj, field: str, check: Check) -> None:
    check_label_selector(term.get("labelSelector"), f"{field}.labelSelector", check)
    if not term.get("topologyKey"):
        check.required(f"{field}.topologyKey", "can not be empty")
    check.all_invalid(
        f"{field}.topologyKey", term.get("topologyKey", ""), qualified_errors(term.get("topologyKey", ""))
    )


def _check_pods(affinity: Obj, field: str, check: Check) -> None:
    for index, term in enumerate(affinity.get(_REQUIRED) or ()):
        _check_pod_term(term, f"{field}.{_REQUIRED}[{index}]", check)
    for index, row in enumerate(affinity.get(_PREFERRED) or ()):
        where = f"{field}.{_PREFERRED}[{index}]"
        if not 1 <= row.get("weight", 0) <= 100:
            check.invalid(f"{where}.weight", row.get("weight", 0), "must be in the range 1-100")
        _check_pod_term(row.get("podAffinityTerm") or {}, f"{where}.podAffinityTerm", check)


def check_affinity(affinity: Obj, field: str, check: Check) -> None:
    """Node affinity, pod affinity and anti-affinity."""
    _check_node(affinity.get("nodeAffinity") or {}, f"{field}.nodeAffinity", check)
    _check_pods(affinity.get("podAffinity") or {}, f"{field}.podAffinity", check)
    _check_pods(affinity.get("podAntiAffinity") or {}, f"{field}.podAntiAffinity", check)


def check_tolerations(rows: Iterable[Obj], field: str, check: Check) -> None:
    """Operators, effects, seconds."""
    for index, row in enumerate(rows):
        where = f"{field}[{index}]"
        key, operator, effect = row.get("key", ""), row.get("operator", ""), row.get("effect", "")
        if key:
            check.all_invalid(f"{where}.key", key, qualified_errors(key))
        elif operator != "Exists":
            text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            check.invalid(f"{where}.operator", operator, text)
        if row.get("tolerationSeconds") is not None and effect != "NoExecute":
            check.invalid(f"{where}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
        if operator in ("", "Equal"):
            value = row.get("value", "")
            check.all_invalid(f"{where}.operator", value, label_value_errors(value)[:1])
        elif operator == "Exists":
            if row.get("value"):
                check.invalid(f"{where}.operator", row["value"], "value must be empty when `operator` is 'Exists'")
        else:
            check.unsupported(f"{where}.operator", operator, ("Equal", "Exists"))
        if effect and effect not in _EFFECTS:
            check.unsupported(f"{where}.effect", effect, _EFFECTS)


def check_spread(rows: Iterable[Obj], field: str, check: Check) -> None:
    """topologySpreadConstraints."""
    for index, row in enumerate(rows):
        where = f"{field}[{index}]"
        if row.get("maxSkew", 0) <= 0:
            check.invalid(f"{where}.maxSkew", row.get("maxSkew", 0), "must be greater than zero")
        if not row.get("topologyKey"):
            check.required(f"{where}.topologyKey", "can not be empty")
        check.one_of(f"{where}.whenUnsatisfiable", row.get("whenUnsatisfiable"), ("DoNotSchedule", "ScheduleAnyway"))
        check_label_selector(row.get("labelSelector"), f"{where}.labelSelector", check)
