"""What a request asks for: URL path and method -> target and RBAC verb. Pure; called by `server`."""

from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote

from itbench.kube.rbac import Access

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "HEAD": "get", "GET": "get"}
_NAMESPACE_SUBRESOURCES = ("status", "finalize")
CONNECT = frozenset({"exec", "attach", "portforward", "proxy"})
"""Subresources that are connected to, whatever the method."""


@dataclass(frozen=True, slots=True)
class Target:
    """A parsed path. `plural` is empty for everything that is no resource; `rest` is what follows a proxy subresource.

    `watched`: the deprecated form of a watch, `/api/v1/watch/...`.
    """

    path: str
    group: str = ""
    version: str = ""
    plural: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    rest: str = ""
    watched: bool = False

    @property
    def qualified(self) -> str:
        """`deployments.apps`, `pods`, or empty."""
        return f"{self.plural}.{self.group}" if self.group and self.plural else self.plural


@lru_cache(8192)
def parse(path: str) -> Target:
    """`/apis/apps/v1/namespaces/shop/deployments/web/scale` -> Target. Paths that are no resource have no plural."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return Target(path)
    watched = rest[0] == "watch" and len(rest) > 1
    rest = [unquote(part) for part in (rest[1:] if watched else rest)]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and not (len(rest) == 3 and rest[2] in _NAMESPACE_SUBRESOURCES):
        namespace, rest = rest[1], rest[2:]
    name = rest[1] if len(rest) > 1 else ""
    sub = rest[2] if len(rest) > 2 else ""
    if rest[0] == "namespaces" and name:
        namespace = name
    return Target(path, group, version, rest[0], namespace, name, sub, "/".join(rest[3:]), watched)


def verb_of(method: str, target: Target, *, watch: bool) -> str:
    """The RBAC verb of a request; non-resource paths use the method's lower-case name."""
    if not target.plural:
        return method.lower()
    if target.subresource == "proxy":
        return {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}.get(method, "get")
    watch = watch or (target.watched and not target.subresource)
    if method in ("GET", "HEAD") and not target.name:
        return "watch" if watch else "list"
    if method in ("GET", "HEAD") and watch and not target.subresource:
        return "watch"
    if method == "DELETE" and not target.name:
        return "deletecollection"
    return _VERBS.get(method, method.lower())


def access_of(verb: str, target: Target) -> Access:
    """What RBAC is asked."""
    if not target.plural:
        return Access(verb, path=target.path)
    return Access(verb, target.group, target.plural, target.subresource, target.namespace, target.name)
