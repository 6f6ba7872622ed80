"""Controls on roles and bindings (CIS Kubernetes 5.1). What Kubernetes itself ships is left out by its rules, never by its name.

Whoever may write ClusterRoles can also name one `system:x` and label it as shipped; so a role counts as shipped only if every
rule in it is a rule of the role of that name in a fresh cluster.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from itbench.kube.controllers.bootstrap import defaults
from itbench.policy.controls.model import Check, Found, Obj, Objects, Subject, items, judged

ROLES = ("clusterroles.rbac.authorization.k8s.io", "roles.rbac.authorization.k8s.io")
BINDINGS = ("clusterrolebindings.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io")
READS = ("get", "list", "watch")
POD_MAKERS = {
    "": ("pods", "replicationcontrollers"),
    "apps": ("deployments", "daemonsets", "statefulsets", "replicasets"),
    "batch": ("jobs", "cronjobs"),
}
_AGGREGATED = {
    "view": ("system:aggregate-to-view",),
    "edit": ("system:aggregate-to-edit", "system:aggregate-to-view"),
    "admin": ("system:aggregate-to-admin", "system:aggregate-to-edit", "system:aggregate-to-view"),
}

Rule = dict[str, Any]


def _canonical(rule: Rule) -> str:
    return repr(sorted((key, sorted(value)) for key, value in rule.items() if value))


@cache
def _shipped_rules() -> dict[tuple[str, str, str], frozenset[str]]:
    fresh = {(obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]): obj for obj in defaults()}
    found = {
        key: frozenset(map(_canonical, obj.get("rules") or ()))
        for key, obj in fresh.items()
        if obj["kind"] in ("ClusterRole", "Role")
    }
    for name, parts in _AGGREGATED.items():
        found[("ClusterRole", "", name)] = frozenset().union(*(found[("ClusterRole", "", part)] for part in parts))
    return found


@cache
def _shipped_bindings() -> frozenset[str]:
    return frozenset(_binding_key(obj) for obj in defaults() if obj["kind"] in ("ClusterRoleBinding", "RoleBinding"))


def _binding_key(obj: Obj) -> str:
    subjects = sorted(
        (each.get("kind", ""), each.get("namespace", ""), each.get("name", "")) for each in obj.get("subjects") or ()
    )
    meta, role = obj["metadata"], obj["roleRef"]
    return repr((obj["kind"], meta.get("namespace", ""), meta["name"], role["kind"], role["name"], subjects))


def shipped(role: Obj) -> bool:
    """Whether a role is one of a fresh cluster, with no rule beyond those it has there."""
    meta = role["metadata"]
    known = _shipped_rules().get((role["kind"], meta.get("namespace", ""), meta["name"]))
    return known is not None and set(map(_canonical, role.get("rules") or ())) <= known


def _touches(listed: Any, *wanted: str) -> bool:
    return bool({"*", *wanted} & set(listed or ()))


def grants(rule: Rule, group: str, resources: tuple[str, ...], verbs: tuple[str, ...]) -> bool:
    """Whether a rule allows one of the verbs on one of the resources (`pods`, `nodes/proxy`) of an API group."""
    wider = tuple(f"*/{name.partition('/')[2]}" for name in resources if "/" in name)
    return (
        _touches(rule.get("apiGroups"), group)
        and _touches(rule.get("resources"), *resources, *wider)
        and _touches(rule.get("verbs"), *verbs)
    )


def _shown(rule: Rule) -> str:
    parts = []
    for key in ("apiGroups", "resources", "nonResourceURLs", "resourceNames", "verbs"):
        if rule.get(key):
            parts.append(f"{key} [{', '.join(each if each else repr(each) for each in rule[key])}]")
    return "rule: " + " ".join(parts)


def per_role(wrong: Callable[[Rule], bool], fine: str) -> Check:
    """A control from a function that says whether a rule is wrong; roles as Kubernetes ships them are no subjects."""

    def check(objects: Objects) -> Iterator[Found]:
        for role in items(objects, ROLES):
            if not shipped(role):
                yield judged(Subject.of(role), [_shown(rule) for rule in role.get("rules") or () if wrong(rule)], fine)

    return check


def wildcard(rule: Rule) -> bool:
    """A star instead of a list: also over what does not exist yet."""
    return any("*" in (rule.get(key) or ()) for key in ("apiGroups", "resources", "verbs", "nonResourceURLs"))


def reads_secrets(rule: Rule) -> bool:
    """Reads Secrets beyond some that it names."""
    return grants(rule, "", ("secrets",), READS) and not rule.get("resourceNames")


def makes_pods(rule: Rule) -> bool:
    """Makes pods, by itself or through a kind that makes them: a pod can mount any account of its namespace."""
    return any(grants(rule, group, names, ("create",)) for group, names in POD_MAKERS.items())


def climbs(rule: Rule) -> bool:
    """Gives itself, or others, rights that it does not have: bind, escalate, impersonate."""
    rbac = "rbac.authorization.k8s.io"
    return grants(rule, rbac, ("roles", "clusterroles"), ("bind", "escalate")) or any(
        grants(rule, group, names, ("impersonate",))
        for group, names in (
            ("", ("users", "groups", "serviceaccounts")),
            ("authentication.k8s.io", ("userextras", "uids")),
        )
    )


def proxies_nodes(rule: Rule) -> bool:
    """Talks to kubelets past admission and audit."""
    return grants(rule, "", ("nodes/proxy",), ("get", "create", "update", "patch", "delete"))


def changes_webhooks(rule: Rule) -> bool:
    """Redirects, or switches off, what judges or changes every write."""
    kinds = ("validatingwebhookconfigurations", "mutatingwebhookconfigurations")
    return grants(rule, "admissionregistration.k8s.io", kinds, ("create", "update", "patch", "delete"))


def makes_tokens(rule: Rule) -> bool:
    """Makes tokens of service accounts."""
    return grants(rule, "", ("serviceaccounts/token",), ("create",))


def cluster_admins(objects: Objects) -> Iterator[Found]:
    """Bindings to `cluster-admin` beyond the one that a fresh cluster has."""
    for binding in items(objects, BINDINGS):
        if _binding_key(binding) in _shipped_bindings():
            continue
        role, subjects = binding["roleRef"], binding.get("subjects") or ()
        names = [f"{each.get('kind', '')} {_full(each)}" for each in subjects]
        wrong = role["kind"] == "ClusterRole" and role["name"] == "cluster-admin" and bool(subjects)
        fault = [f"gives cluster-admin to {', '.join(names)}"] if wrong else []
        yield judged(Subject.of(binding), fault, f"gives {role['kind']} {role['name']}")


def _full(subject: Obj) -> str:
    return "/".join(part for part in (subject.get("namespace", ""), subject.get("name", "")) if part)


def default_accounts(objects: Objects) -> Iterator[Found]:
    """Service accounts named `default`: no token by themselves, no rights by a binding."""
    bound: dict[tuple[str, str], list[str]] = {}
    for binding in items(objects, BINDINGS):
        for subject in binding.get("subjects") or ():
            if subject.get("kind") == "ServiceAccount" and subject.get("name") == "default":
                place = (subject.get("namespace", ""), "default")
                bound.setdefault(place, []).append(f"bound by {Subject.of(binding)}")
    for account in items(objects, ["serviceaccounts"]):
        meta = account["metadata"]
        if meta["name"] != "default":
            continue
        faults = list(bound.get((meta["namespace"], "default"), ()))
        if account.get("automountServiceAccountToken") is not False:
            faults.append("automountServiceAccountToken is not false")
        yield judged(Subject.of(account), faults, "no token, no binding")
