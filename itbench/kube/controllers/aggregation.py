"""ClusterRole aggregation: a role with an aggregation rule carries the rules of all roles that its selectors match."""

from itbench.kube.client import Change, Obj
from itbench.kube.controllers.base import Context, Controller
from itbench.kube.controllers.cache import Cache, Key, labels_of
from itbench.kube.controllers.selectors import matches

ROLES = "clusterroles.rbac.authorization.k8s.io"


def _keys(change: Change, cache: Cache) -> list[Key]:
    return [("", role["metadata"]["name"]) for role in cache.list(ROLES) if role.get("aggregationRule")]


def reconcile(context: Context, _: str, name: str) -> None:
    """Collect the rules of one aggregating role."""
    role = context.cache.get(ROLES, "", name)
    if role is None or not role.get("aggregationRule"):
        return
    rules: list[Obj] = []
    for selector in role["aggregationRule"].get("clusterRoleSelectors") or ():
        for other in context.cache.list(ROLES):
            if other["metadata"]["name"] != name and matches(selector, labels_of(other)):
                rules.extend(rule for rule in other.get("rules") or () if rule not in rules)
    if (role.get("rules") or []) != rules:
        context.client.update(ROLES, {**role, "rules": rules})


CONTROLLER = Controller("clusterrole-aggregation-controller", {ROLES: _keys}, reconcile)
