"""Which flow schema and priority level a request belongs to: what API Priority and Fairness says of it in its answer.

Nothing is queued here: requests are served as they come. Called by `server` for every request, so the schemas are kept sorted.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from itbench.kube.api.paths import CONNECT, Target
from itbench.kube.client import Obj
from itbench.kube.controllers.flowcontrol import LEVELS, SCHEMAS
from itbench.kube.rbac import User
from itbench.kube.store import Entry, Store

LONG = CONNECT | {"log"}
"""Subresources whose requests last: they are not counted."""
_KEPT = 2048
_ACCOUNT = "system:serviceaccount:"


@dataclass(frozen=True, slots=True)
class Flow:
    """A flow schema and its priority level, by name and uid."""

    schema: str
    level: str
    schema_uid: str
    level_uid: str


class Flows:
    """The flow schemas of one server."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lists: tuple[list[Entry], list[Entry]] = ([], [])
        self._known: dict[tuple[User, str, Target], Flow | None] = {}
        self._sorted: list[tuple[Obj, Flow]] = []

    def of(self, user: User, verb: str, target: Target) -> Flow | None:
        """The first schema that matches, by precedence and name; None for connections, which are not counted."""
        if target.subresource in LONG:
            return None
        self._refresh()
        key = (user, verb, target)
        if key in self._known:
            return self._known[key]
        if len(self._known) >= _KEPT:
            self._known.clear()
        found = next((flow for spec, flow in self._sorted if matches(spec, user, verb, target)), None)
        self._known[key] = found
        return found

    def _refresh(self) -> None:
        """Sort again if a schema or level was written since the last request."""
        schemas, levels = self._store.list(SCHEMAS), self._store.list(LEVELS)
        if schemas is self._lists[0] and levels is self._lists[1]:  # the store makes new lists for new states
            return
        self._lists = schemas, levels
        self._known.clear()
        uids = {entry.name: str(entry.object["metadata"]["uid"]) for entry in levels}
        rows = sorted(schemas, key=lambda entry: (entry.object["spec"].get("matchingPrecedence", 1000), entry.name))
        self._sorted = []
        for entry in rows:
            spec, uid = entry.object["spec"], str(entry.object["metadata"]["uid"])
            level = str(spec["priorityLevelConfiguration"]["name"])
            if level in uids:
                self._sorted.append((spec, Flow(entry.name, level, uid, uids[level])))


def matches(spec: Obj, user: User, verb: str, target: Target) -> bool:
    """Whether a FlowSchema's spec covers a request."""
    return any(
        any(_is_subject(subject, user) for subject in rule.get("subjects") or ())
        and (_covers(rule, verb, target) if target.plural else _covers_path(rule, verb, target.path))
        for rule in spec.get("rules") or ()
    )


def _is_subject(subject: Obj, user: User) -> bool:
    if subject["kind"] == "User":
        return subject["user"]["name"] in ("*", user.name)
    if subject["kind"] == "Group":
        return subject["group"]["name"] == "*" or subject["group"]["name"] in user.groups
    account = subject["serviceAccount"]
    prefix = f"{_ACCOUNT}{account['namespace']}:"
    return user.name.startswith(prefix) if account["name"] == "*" else user.name == prefix + account["name"]


def _has(values: Sequence[str] | None, value: str) -> bool:
    return values is not None and ("*" in values or value in values)


def _covers(rule: Obj, verb: str, target: Target) -> bool:
    what = f"{target.plural}/{target.subresource}" if target.subresource else target.plural
    return any(
        _has(row.get("verbs"), verb)
        and _has(row.get("apiGroups"), target.group)
        and _has(row.get("resources"), what)
        and (_has(row.get("namespaces"), target.namespace) if target.namespace else bool(row.get("clusterScope")))
        for row in rule.get("resourceRules") or ()
    )


def _covers_path(rule: Obj, verb: str, path: str) -> bool:
    return any(
        _has(row.get("verbs"), verb)
        and any(
            url in ("*", path) or (url.endswith("/*") and path.startswith(url[:-1]))
            for url in row.get("nonResourceURLs") or ()
        )
        for row in rule.get("nonResourceRules") or ()
    )
