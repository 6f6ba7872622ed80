"""Who may do what: evaluates Roles, ClusterRoles and their bindings; called by `itbench.kube.api` and by graders.

`Authorizer` reads the four RBAC resources through a `Client`, indexes them once per change and answers by table look-up.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from itbench.kube.client import ApiError, Client, Obj, Objs

GROUP = "rbac.authorization.k8s.io"
RESOURCES = tuple(f"{name}.{GROUP}" for name in ("roles", "rolebindings", "clusterroles", "clusterrolebindings"))
MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"


@dataclass(frozen=True, slots=True)
class User:
    """An authenticated caller.

    Attributes:
        name: such as `oncall` or `system:serviceaccount:shop:default`.
        groups: including `system:authenticated`.
        uid: empty for most; `extra`: what `whoami` shows besides, as pairs of key and values.
    """

    name: str
    groups: tuple[str, ...] = (AUTHENTICATED,)
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def info(self) -> Obj:
        """The `UserInfo` object of the authentication API."""
        info: Obj = {"username": self.name}
        if self.uid:
            info["uid"] = self.uid
        info["groups"] = list(self.groups)
        if self.extra:
            info["extra"] = {key: list(values) for key, values in self.extra}
        return info


ANONYMOUS = User("system:anonymous", (UNAUTHENTICATED,))


@dataclass(frozen=True, slots=True)
class Access:
    """What somebody wants to do; `path` instead of a resource for non-resource URLs."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


def forbidden_message(user: User, access: Access) -> str:
    """The text of a 403, as the real API server words it."""
    if access.path:
        return f'forbidden: User "{user.name}" cannot {access.verb} path "{access.path}"'
    kind = f"{access.resource}.{access.group}" if access.group else access.resource
    subject = f'{kind} "{access.name}"' if access.name else kind
    resource = f"{access.resource}/{access.subresource}" if access.subresource else access.resource
    where = f'in the namespace "{access.namespace}"' if access.namespace else "at the cluster scope"
    return (
        f'{subject} is forbidden: User "{user.name}" cannot {access.verb} resource "{resource}" '
        f'in API group "{access.group}" {where}'
    )


def rule_allows(rule: Obj, access: Access) -> bool:
    """Whether one PolicyRule covers an access."""
    verbs = rule.get("verbs", ())
    if access.verb not in verbs and "*" not in verbs:
        return False
    if access.path:
        return any(_path_matches(pattern, access.path) for pattern in rule.get("nonResourceURLs") or ())
    groups = rule.get("apiGroups") or ()
    if access.group not in groups and "*" not in groups:
        return False
    names = rule.get("resourceNames") or ()
    if names and access.name not in names:
        return False
    wanted = f"{access.resource}/{access.subresource}" if access.subresource else access.resource
    resources = rule.get("resources") or ()
    return (
        wanted in resources or "*" in resources or (bool(access.subresource) and f"*/{access.subresource}" in resources)
    )


def _path_matches(pattern: str, path: str) -> bool:
    return pattern in ("*", path) or (pattern.endswith("*") and path.startswith(pattern[:-1]))


def _subject_keys(subject: Obj, namespace: str) -> tuple[str, str]:
    kind, name = subject.get("kind", ""), subject.get("name", "")
    if kind == "ServiceAccount":
        return "User", f"system:serviceaccount:{subject.get('namespace') or namespace}:{name}"
    return kind, name


@dataclass(slots=True)
class _Index:
    """Bindings by subject, roles by namespace and name."""

    bindings: dict[tuple[str, str], Objs] = field(default_factory=dict)
    roles: dict[tuple[str, str], Objs] = field(default_factory=dict)
    decisions: dict[tuple[User, Access], tuple[bool, str]] = field(default_factory=dict)


class Authorizer:
    """Decides accesses from the RBAC objects behind a client; keeps decisions until one of these objects changes."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._revision = -1
        self._index = _Index()

    def refresh(self) -> None:
        """Read the RBAC objects again if one of them changed."""
        try:
            changes, revision = self._client.changes(self._revision, RESOURCES)
        except ApiError as error:
            if error.code != 410:
                raise
            changes, revision = self._client.changes(-1, RESOURCES)
        if changes or self._revision < 0:
            self._index = self._build()
        self._revision = revision

    def _build(self) -> _Index:
        index = _Index()
        roles, bindings, cluster_roles, cluster_bindings = (self._client.list(name) for name in RESOURCES)
        for role in cluster_roles:
            index.roles["", role["metadata"]["name"]] = _rules_of(role, cluster_roles)
        for role in roles:
            index.roles[role["metadata"]["namespace"], role["metadata"]["name"]] = role.get("rules") or []
        for binding in [*cluster_bindings, *bindings]:
            for subject in binding.get("subjects") or ():
                key = _subject_keys(subject, binding["metadata"].get("namespace", ""))
                index.bindings.setdefault(key, []).append(binding)
        return index

    def allowed(self, user: User, access: Access) -> tuple[bool, str]:
        """(whether, why) for a user and an access; `why` is the text of a SubjectAccessReview."""
        if MASTERS in user.groups:
            return True, ""
        self.refresh()
        known = self._index.decisions.get((user, access))
        if known is None:
            if len(self._index.decisions) > 4096:
                self._index.decisions.clear()
            known = self._index.decisions[user, access] = self._decide(user, access)
        return known

    def _decide(self, user: User, access: Access) -> tuple[bool, str]:
        for binding, subject in self._bindings(user):
            namespace = binding["metadata"].get("namespace", "")
            if namespace and (namespace != access.namespace or access.path):
                continue
            if any(rule_allows(rule, access) for rule in self._rules(binding)):
                return True, _reason(binding, subject)
        return False, ""

    def rules_for(self, user: User, namespace: str) -> Objs:
        """All PolicyRules that hold for a user in a namespace (SelfSubjectRulesReview)."""
        self.refresh()
        found: Objs = []
        for binding, _ in self._bindings(user):
            if binding["metadata"].get("namespace", "") in ("", namespace):
                found += self._rules(binding)
        return found

    def covers(self, user: User, namespace: str, rules: Objs) -> bool:
        """Whether a user holds all `rules` (the escalation check of writes to roles and bindings)."""
        held = self.rules_for(user, namespace)
        return all(any(rule_allows(rule, access) for rule in held) for access in _accesses(rules))

    def find_role(self, binding: Obj) -> Objs | None:
        """The rules that a binding grants (stored or not); None when its role does not exist."""
        self.refresh()
        return self._index.roles.get(_role_key(binding))

    def _bindings(self, user: User) -> Iterator[tuple[Obj, tuple[str, str]]]:
        for key in [("User", user.name), *(("Group", group) for group in user.groups)]:
            for binding in self._index.bindings.get(key, ()):
                yield binding, key

    def _rules(self, binding: Obj) -> Objs:
        return self._index.roles.get(_role_key(binding), [])


def _role_key(binding: Obj) -> tuple[str, str]:
    ref = binding["roleRef"]
    return (binding["metadata"].get("namespace", "") if ref["kind"] == "Role" else "", ref["name"])


def _rules_of(role: Obj, cluster_roles: Objs) -> Objs:
    """A ClusterRole's rules, those of the roles that it aggregates (transitively) included."""
    rules = list(role.get("rules") or ())
    selectors = [s.get("matchLabels") or {} for s in role.get("aggregationRule", {}).get("clusterRoleSelectors", ())]
    for other in cluster_roles:
        labels = other["metadata"].get("labels") or {}
        if other is not role and any(s and s.items() <= labels.items() for s in selectors):
            rules += [rule for rule in _rules_of(other, cluster_roles) if rule not in rules]
    return rules


def _reason(binding: Obj, subject: tuple[str, str]) -> str:
    ref, meta = binding["roleRef"], binding["metadata"]
    name = meta["name"] if "namespace" not in meta else f"{meta['name']}/{meta['namespace']}"
    kind = "RoleBinding" if meta.get("namespace") else "ClusterRoleBinding"
    text = f'RBAC: allowed by {kind} "{name}" of {ref["kind"]} "{ref["name"]}" to '
    if subject[1].startswith("system:serviceaccount:") and subject[0] == "User":
        _, _, namespace, account = subject[1].split(":", 3)
        return text + f'ServiceAccount "{account}/{namespace}"'
    return text + f'{subject[0]} "{subject[1]}"'


def _accesses(rules: Objs) -> Iterator[Access]:
    """The single accesses that a list of rules grants."""
    for rule in rules:
        for verb in rule.get("verbs", ()):
            for path in rule.get("nonResourceURLs") or ():
                yield Access(verb, path=path)
            for group in rule.get("apiGroups") or ():
                for resource in rule.get("resources") or ():
                    kind, _, sub = resource.partition("/")
                    for name in rule.get("resourceNames") or [""]:
                        yield Access(verb, group, kind, sub, "", name)


def access_from(attributes: dict[str, Any]) -> Access:
    """`resourceAttributes` or `nonResourceAttributes` of an access review -> Access."""
    if "path" in attributes:
        return Access(attributes.get("verb", ""), path=attributes["path"])
    keys = ("verb", "group", "resource", "subresource", "namespace", "name")
    return Access(*(attributes.get(key, "") for key in keys))
