"""Acting as somebody else: the `Impersonate-*` headers and the rights to them; called by `server`."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from itbench.kube.api.identity import forbidden
from itbench.kube.api.tokens import PREFIX
from itbench.kube.rbac import ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, Access, Authorizer, User

USER, GROUP, UID, EXTRA = "Impersonate-User", "Impersonate-Group", "Impersonate-Uid", "Impersonate-Extra-"
_AUTHENTICATION = "authentication.k8s.io"


class Headless(Exception):
    """Groups, uid or extras without a user: the text of a plain 500."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Whom a request wants to act as."""

    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def accesses(self) -> list[Access]:
        """The rights that it takes, in the order in which they are asked for."""
        rows = [_name_access(self.user)] if self.user else []
        rows += [Access("impersonate", "", "groups", name=group) for group in self.groups]
        rows += [
            Access("impersonate", _AUTHENTICATION, "userextras", key, name=value)
            for key, values in self.extra
            for value in values
        ]
        return rows + ([Access("impersonate", _AUTHENTICATION, "uids", name=self.uid)] if self.uid else [])

    def printed(self) -> str:
        """As Go prints the list of references."""
        rows = [("Group", group, "", "") for group in self.groups]
        version = f"{_AUTHENTICATION}/v1"
        rows += [("UserExtra", value, version, key) for key, values in self.extra for value in values]
        rows += [("UID", self.uid, version, "")] if self.uid else []
        return "[" + " ".join(f"{{{kind}  {name}  {api}  {field}}}" for kind, name, api, field in rows) + "]"


def wanted(headers: Any) -> Wanted | None:
    """What the headers ask for; None without any."""
    extra: dict[str, list[str]] = {}
    groups: list[str] = []
    name = uid = ""
    for key, value in headers.items():
        if not key[:12].lower().startswith("impersonate-"):
            continue
        title = key.lower()
        if title == USER.lower():
            name = value
        elif title == GROUP.lower():
            groups.append(value)
        elif title == UID.lower():
            uid = value
        elif title.startswith(EXTRA.lower()):
            extra.setdefault(unquote(title.removeprefix(EXTRA.lower())), []).append(value)
    if not (name or groups or uid or extra):
        return None
    return Wanted(name, tuple(groups), uid, tuple((key, tuple(values)) for key, values in extra.items()))


def impersonate(user: User, want: Wanted, path: str, authorizer: Authorizer) -> User:
    """The user that a request acts as.

    Raises:
        ApiError: 403, the caller may not. Headless: no user is named.
    """
    if not want.user:
        raise Headless(f'Internal Server Error: "{path}": requested {want.printed()} without impersonating a user\n')
    for access in want.accesses():
        if not authorizer.allowed(user, access)[0]:
            raise forbidden(user, access)
    groups = want.groups
    parts = want.user.removeprefix(PREFIX).split(":")
    if want.user.startswith(PREFIX) and len(parts) == 2 and not groups:
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{parts[0]}")
    if want.user == ANONYMOUS.name:
        groups = groups if UNAUTHENTICATED in groups else (*groups, UNAUTHENTICATED)
    elif AUTHENTICATED not in groups:
        groups = (*groups, AUTHENTICATED)
    return User(want.user, groups, want.uid, want.extra)


def _name_access(name: str) -> Access:
    if name.startswith(PREFIX) and name.count(":") == 3:
        _, _, namespace, account = name.split(":")
        return Access("impersonate", "", "serviceaccounts", "", namespace, account)
    return Access("impersonate", "", "users", name=name)
