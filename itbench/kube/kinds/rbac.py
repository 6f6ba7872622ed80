"""Roles and bindings: defaults and rules."""

from itbench.kube.client import Obj
from itbench.kube.kinds.affinity import check_label_selector
from itbench.kube.kinds.base import Behaviour
from itbench.kube.kinds.check import Check
from itbench.kube.names import path_segment_errors, subdomain_errors

_GROUP = "rbac.authorization.k8s.io"


def _check_rules(rules: list[Obj], check: Check, *, namespaced: bool) -> None:
    for index, rule in enumerate(rules):
        where = f"rules[{index}]"
        if not rule.get("verbs"):
            check.required(f"{where}.verbs", "verbs must contain at least one value")
        if rule.get("nonResourceURLs"):
            if namespaced:
                urls = rule["nonResourceURLs"]
                check.invalid(f"{where}.nonResourceURLs", urls, "namespaced rules cannot apply to non-resource URLs")
            if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
                text = "rules cannot apply to both regular resources and non-resource URLs"
                check.invalid(f"{where}.nonResourceURLs", rule["nonResourceURLs"], text)
            continue
        if not rule.get("apiGroups"):
            check.required(f"{where}.apiGroups", "resource rules must supply at least one api group")
        if not rule.get("resources"):
            check.required(f"{where}.resources", "resource rules must supply at least one resource")


def _check_role(obj: Obj, check: Check) -> None:
    _check_rules(obj.get("rules") or [], check, namespaced=True)


def _check_cluster_role(obj: Obj, check: Check) -> None:
    _check_rules(obj.get("rules") or [], check, namespaced=False)
    aggregation = obj.get("aggregationRule")
    if aggregation is not None:
        field = "aggregationRule.clusterRoleSelectors"
        selectors = aggregation.get("clusterRoleSelectors") or []
        if not selectors:
            check.required(field, "at least one clusterRoleSelector required if aggregationRule is non-nil")
        for index, selector in enumerate(selectors):
            check_label_selector(selector, f"{field}[{index}]", check)


def _default_binding(obj: Obj) -> None:
    reference = obj.setdefault("roleRef", {})
    if not reference.get("apiGroup"):
        reference["apiGroup"] = _GROUP
    for subject in obj.get("subjects") or ():
        if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
            subject["apiGroup"] = _GROUP


def _check_subject(subject: Obj, field: str, check: Check, *, namespaced: bool) -> None:
    name, kind, group = subject.get("name", ""), subject.get("kind", ""), subject.get("apiGroup", "")
    if not name:
        check.required(f"{field}.name")
    if kind == "ServiceAccount":
        if name:
            check.all_invalid(f"{field}.name", name, subdomain_errors(name))
        if group:
            check.unsupported(f"{field}.apiGroup", group, ("",))
        if not namespaced and not subject.get("namespace"):
            check.required(f"{field}.namespace")
    elif kind in ("User", "Group"):
        if group != _GROUP:
            check.unsupported(f"{field}.apiGroup", group, (_GROUP,))
    else:
        check.unsupported(f"{field}.kind", kind, ("ServiceAccount", "User", "Group"))


def _check_reference(obj: Obj, kinds: tuple[str, ...], check: Check) -> None:
    reference = obj["roleRef"]
    if reference.get("apiGroup") != _GROUP:
        check.unsupported("roleRef.apiGroup", reference.get("apiGroup"), (_GROUP,))
    if reference.get("kind") not in kinds:
        check.unsupported("roleRef.kind", reference.get("kind", ""), kinds)
    name = reference.get("name", "")
    if not name:
        check.required("roleRef.name")
    else:
        check.all_invalid("roleRef.name", name, path_segment_errors(name))


def _check_binding(obj: Obj, check: Check) -> None:
    _check_reference(obj, ("Role", "ClusterRole"), check)
    for index, subject in enumerate(obj.get("subjects") or ()):
        _check_subject(subject, f"subjects[{index}]", check, namespaced=True)


def _check_cluster_binding(obj: Obj, check: Check) -> None:
    _check_reference(obj, ("ClusterRole",), check)
    for index, subject in enumerate(obj.get("subjects") or ()):
        _check_subject(subject, f"subjects[{index}]", check, namespaced=False)


def _check_binding_update(new: Obj, old: Obj, check: Check) -> None:
    if new.get("roleRef") != old.get("roleRef"):
        reference = new.get("roleRef") or {}
        names = (("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name"))
        check.invalid("roleRef", {title: reference.get(key, "") for title, key in names}, "cannot change roleRef")


ROLE = Behaviour(validate=_check_role, name_errors=path_segment_errors)
CLUSTERROLE = Behaviour(validate=_check_cluster_role, name_errors=path_segment_errors)
ROLEBINDING = Behaviour(
    default=_default_binding,
    validate=_check_binding,
    validate_update=_check_binding_update,
    name_errors=path_segment_errors,
)
CLUSTERROLEBINDING = Behaviour(
    default=_default_binding,
    validate=_check_cluster_binding,
    validate_update=_check_binding_update,
    name_errors=path_segment_errors,
)
