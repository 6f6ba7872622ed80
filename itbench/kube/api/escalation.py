"""Nobody may grant by RBAC what he does not hold: an admission step for writes that come in by HTTP; installed by `serve`."""

from collections.abc import Iterator

from itbench.kube.admission import Write
from itbench.kube.client import Obj, Objs
from itbench.kube.rbac import GROUP, MASTERS, Access, Authorizer, User
from itbench.kube.status import forbidden, not_found

_ROLES = frozenset({"roles", "clusterroles"})
_BINDINGS = frozenset({"rolebindings", "clusterrolebindings"})
_EVERYTHING: Objs = [
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
]
_TITLES = (
    ("apiGroups", "APIGroups"),
    ("resources", "Resources"),
    ("resourceNames", "ResourceNames"),
    ("nonResourceURLs", "NonResourceURLs"),
    ("verbs", "Verbs"),
)


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
            self._check_role(write, user)
        elif resource.plural in _BINDINGS:
            ref = write.object.get("roleRef") or {}
            name, plural = str(ref.get("name", "")), f"{str(ref.get('kind', '')).lower()}s"
            if self._may(write, user, "bind", name, plural):
                return
            rules = self._authorizer.find_role(write.object)
            if rules is None:
                raise not_found(resource, name)
            self._check(write, user, rules)

    def _may(self, write: Write, user: User, verb: str, role: str, plural: str) -> bool:
        return self._authorizer.allowed(user, Access(verb, GROUP, plural, "", write.namespace, role))[0]

    def _check_role(self, write: Write, user: User) -> None:
        name = write.object["metadata"]["name"]
        if self._may(write, user, "escalate", name, write.resource.plural):
            return
        if write.object.get("aggregationRule") and not self._authorizer.covers(user, "", _EVERYTHING):
            text = "must have cluster-admin privileges to use the aggregationRule"
            raise forbidden(write.resource, name, text)
        self._check(write, user, write.object.get("rules") or [])

    def _check(self, write: Write, user: User, rules: Objs) -> None:
        missing = [part for part in _parts(rules) if not self._authorizer.covers(user, write.namespace, [part])]
        if missing:
            head = (
                f'user "{user.name}" (groups={_quoted(user.groups)}) is attempting to grant RBAC permissions '
                "not currently held:\n"
            )
            text = head + "\n".join(sorted({_show(rule) for rule in _compact(missing)}))
            raise forbidden(write.resource, write.object["metadata"]["name"], text)


def _parts(rules: Objs) -> Iterator[Obj]:
    """Rules as single permissions: one group, one resource, one name, one verb."""
    for rule in rules:
        for group in rule.get("apiGroups") or ():
            for resource in rule.get("resources") or ():
                for name in rule.get("resourceNames") or [""]:
                    for verb in rule.get("verbs") or ():
                        part = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
                        yield part | ({"resourceNames": [name]} if name else {})
        for path in rule.get("nonResourceURLs") or ():
            for verb in rule.get("verbs") or ():
                yield {"nonResourceURLs": [path], "verbs": [verb]}


def _compact(parts: Objs) -> Objs:
    """Permissions on the same thing as one rule with several verbs."""
    rows: dict[str, Obj] = {}
    for part in parts:
        what = {key: value for key, value in part.items() if key != "verbs"}
        key = str(what) if "resources" in part else str(part)
        known = rows.setdefault(key, {**what, "verbs": []})
        known["verbs"] += part["verbs"]
    return list(rows.values())


def _quoted(values: "list[str] | tuple[str, ...]") -> str:
    """A list of texts as Go prints it."""
    return "[" + " ".join(f'"{value}"' for value in values) + "]"


def _show(rule: Obj) -> str:
    """A rule as Go prints it."""
    return "{" + ", ".join(f"{title}:{_quoted(rule[key])}" for key, title in _TITLES if rule.get(key)) + "}"
