"""Nobody may grant by RBAC what he does not hold: an admission step for writes that come in by HTTP; installed by `serve`."""

from itbench.kube.admission import Write
from itbench.kube.client import Obj, Objs
from itbench.kube.rbac import GROUP, MASTERS, Access, Authorizer, User
from itbench.kube.status import forbidden

_ROLES = frozenset({"roles", "clusterroles"})
_BINDINGS = frozenset({"rolebindings", "clusterrolebindings"})


class EscalationGuard:
    """Checks writes to roles and bindings against the writer's own rules; `escalate` and `bind` are the ways around."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def __call__(self, write: Write) -> None:
        """Raises a 403 that names the rules in excess."""
        resource = write.resource
        if (
            resource.group != GROUP
            or write.operation == "DELETE"
            or MASTERS in write.groups
            or write.object == write.old
        ):
            return
        user = User(write.user, tuple(write.groups))
        if resource.plural in _ROLES:
            self._check(write, user, write.object.get("rules") or [], "escalate", write.object["metadata"]["name"])
        elif resource.plural in _BINDINGS:
            ref = write.object.get("roleRef") or {}
            plural = f"{str(ref.get('kind', '')).lower()}s"
            rules = self._authorizer.role_rules(write.object)
            self._check(write, user, rules, "bind", str(ref.get("name", "")), plural)

    def _check(self, write: Write, user: User, rules: Objs, verb: str, role: str, plural: str = "") -> None:
        namespace = write.namespace
        access = Access(verb, GROUP, plural or write.resource.plural, "", namespace, role)
        if self._authorizer.allowed(user, access)[0]:
            return
        missing = [rule for rule in rules if not self._authorizer.covers(user, namespace, [rule])]
        if missing:
            groups = ", ".join(f'"{group}"' for group in user.groups)
            text = (
                f'user "{user.name}" (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:\n'
            )
            raise forbidden(write.resource, write.object["metadata"]["name"], text + "\n".join(map(_show, missing)))


def _show(rule: Obj) -> str:
    """A rule as Go prints it."""
    names = (
        ("apiGroups", "APIGroups"),
        ("resources", "Resources"),
        ("resourceNames", "ResourceNames"),
        ("nonResourceURLs", "NonResourceURLs"),
        ("verbs", "Verbs"),
    )
    parts = []
    for key, title in names:
        if rule.get(key):
            values = ", ".join(f'"{value}"' for value in rule[key])
            parts.append(f"{title}:[{values}]")
    return "{" + ", ".join(parts) + "}"
