"""Who is asking: bearer tokens, service-account tokens and impersonation; called by `server` and the review kinds."""

import hashlib
import secrets
from collections.abc import Callable
from typing import Any

from itbench.kube.client import ApiError
from itbench.kube.rbac import ANONYMOUS, AUTHENTICATED, Access, Authorizer, User, forbidden_message
from itbench.kube.status import Problem, failure
from itbench.kube.tls import Signer

Obj = dict[str, Any]
_PREFIX = "system:serviceaccount:"


def unauthorized() -> ApiError:
    """401, as the real server words it."""
    return failure(401, "Unauthorized", "Unauthorized")


def forbidden(user: User, access: Access) -> ApiError:
    """403 by RBAC."""
    problem = Problem(access.name, access.group, access.resource) if access.resource else Problem()
    return failure(403, "Forbidden", forbidden_message(user, access), problem)


class Tokens:
    """Bearer tokens of one server. Static ones live as long as it does, service-account tokens carry their own expiry."""

    def __init__(
        self, signer: Signer, issuer: str, now: Callable[[], float], uid_of: Callable[[str, str], str]
    ) -> None:
        """Tokens of one server.

        Args:
            now: Unix seconds on the wire, by which expiry is judged.
            uid_of: (namespace, name) -> uid of a ServiceAccount, empty when there is none: its tokens die with it.
        """
        self._uid_of = uid_of
        self._signer, self.issuer, self._now = signer, issuer, now
        self._static: dict[bytes, User] = {}
        self._headers: dict[str, User] = {}

    def issue(self, user: str, groups: tuple[str, ...] = ()) -> str:
        """A new token for a user."""
        token = secrets.token_urlsafe(32)
        self._static[hashlib.sha256(token.encode()).digest()] = User(user, (*groups, AUTHENTICATED))
        return token

    def revoke(self, user: str) -> None:
        """End all static tokens of a user."""
        self._static = {key: owner for key, owner in self._static.items() if owner.name != user}
        self._headers.clear()

    def issue_service_account(
        self, account: Obj, lifetime_s: int, audiences: list[str], bound: Obj | None = None
    ) -> tuple[str, float]:
        """A token for a ServiceAccount object: (JWT, expiry in Unix seconds on the wire)."""
        meta, now = account["metadata"], int(self._now())
        who: Obj = {"namespace": meta["namespace"]}
        if bound:
            key = bound.get("kind", "").lower()
            who[key] = {"name": bound.get("name", ""), "uid": bound.get("uid", "")}
        who["serviceaccount"] = {"name": meta["name"], "uid": meta.get("uid", "")}
        claims = {
            "aud": audiences or [self.issuer],
            "exp": now + lifetime_s,
            "iat": now,
            "iss": self.issuer,
            "jti": secrets.token_hex(16),
            "kubernetes.io": who,
            "nbf": now,
            "sub": f"{_PREFIX}{meta['namespace']}:{meta['name']}",
        }
        return self._signer.sign(claims), float(now + lifetime_s)

    def user(self, token: str) -> User | None:
        """The owner of a valid token."""
        known = self._static.get(hashlib.sha256(token.encode()).digest())
        if known is not None or token.count(".") != 2:
            return known
        claims = self._signer.claims(token)
        if claims is None or claims.get("exp", 0) < self._now():
            return None
        who = claims.get("kubernetes.io", {})
        namespace, account = who.get("namespace", ""), who.get("serviceaccount", {})
        if not account.get("uid") or self._uid_of(namespace, account.get("name", "")) != account["uid"]:
            return None
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
        extra = ((("authentication.kubernetes.io/credential-id"), (f"JTI={claims.get('jti', '')}",)),)
        return User(str(claims.get("sub", "")), groups, str(account.get("uid", "")), extra)

    def authenticate(self, authorization: str) -> User:
        """The user of an Authorization header; anonymous without one.

        Raises:
            ApiError: 401, the header is there and wrong.
        """
        if not authorization:
            return ANONYMOUS
        known = self._headers.get(authorization)
        if known is not None:
            return known
        kind, _, token = authorization.partition(" ")
        user = self.user(token.strip()) if kind.lower() == "bearer" else None
        if user is None:
            raise unauthorized()
        if "." not in token:  # static: no expiry to judge at each request
            self._headers[authorization] = user
        return user


def impersonated(user: User, headers: Any, authorizer: Authorizer) -> User:
    """The user that a request wants to act as (`Impersonate-*`); the same user without such headers.

    Raises:
        ApiError: 403, the caller may not impersonate.
    """
    name = headers.get("Impersonate-User", "")
    groups = tuple(headers.getall("Impersonate-Group", []))
    if not name:
        if groups:
            raise failure(500, "InternalError", "requested groups without impersonating a user")
        return user
    wanted = [_name_access(name)] + [Access("impersonate", "", "groups", name=g) for g in groups]
    for access in wanted:
        if not authorizer.allowed(user, access)[0]:
            raise forbidden(user, access)
    if name.startswith(_PREFIX) and not groups:
        namespace = name.split(":")[2]
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    if name != ANONYMOUS.name and AUTHENTICATED not in groups:
        groups = (*groups, AUTHENTICATED)
    return User(name, groups)


def _name_access(name: str) -> Access:
    if name.startswith(_PREFIX) and name.count(":") == 3:
        _, _, namespace, account = name.split(":")
        return Access("impersonate", "", "serviceaccounts", "", namespace, account)
    return Access("impersonate", "", "users", name=name)
