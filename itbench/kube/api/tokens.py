"""Bearer tokens of one server: static ones, and those of service accounts with their audiences, objects and expiry."""

import hashlib
import secrets
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from itbench.kube.rbac import AUTHENTICATED, User
from itbench.kube.tls import Signer

Obj = dict[str, Any]
PREFIX = "system:serviceaccount:"
_EXTRA = "authentication.kubernetes.io/"
_BOUND = {"pod": "pods", "secret": "secrets", "node": "nodes"}
"""What a token may be bound to: claim -> resource."""
MOUNTED_S, EXTENDED_S = 3607, 365 * 86400
"""The lifetime that pods' own tokens are asked for, and the one that they get: old clients never read the file again."""
UidOf = Callable[[str, str, str], str]
"""(resource, namespace, name) -> uid of an object, empty when there is none."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a token is worth: a user and the audiences that hold, or why not."""

    user: User | None = None
    audiences: tuple[str, ...] = ()
    error: str = "invalid bearer token"


def _quoted(values: "list[str] | tuple[str, ...]") -> str:
    return "[" + " ".join(f'"{value}"' for value in values) + "]"


class _Invalidated(Exception):
    """What a token was bound to is gone."""


class Tokens:
    """Bearer tokens of one server. Static ones live as long as it does, service-account tokens carry their own expiry."""

    def __init__(self, signer: Signer, issuer: str, now: Callable[[], float], uid_of: UidOf) -> None:
        """Tokens of one server.

        Args:
            now: Unix seconds on the wire, by which expiry is judged.
            uid_of: looks up ServiceAccounts and bound objects: tokens die with them.
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

    def key(self) -> dict[str, str]:
        """The public key of service-account tokens, as a JSON Web Key."""
        return self._signer.public()

    def issue_service_account(
        self, account: Obj, lifetime_s: int, audiences: list[str], bound: Obj | None = None
    ) -> tuple[str, float]:
        """A token for a ServiceAccount object: (JWT, expiry in Unix seconds on the wire).

        Args:
            bound: claims about the objects that it dies with, such as `{"pod": {"name": ..., "uid": ...}}`.
        """
        meta, now = account["metadata"], int(self._now())
        who: Obj = {"namespace": meta["namespace"], **(bound or {})}
        who["serviceaccount"] = {"name": meta["name"], "uid": meta.get("uid", "")}
        if "pod" in who and lifetime_s == MOUNTED_S and audiences in ([], [self.issuer]):
            who["warnafter"], lifetime_s = now + lifetime_s, EXTENDED_S
        claims = {
            "aud": audiences or [self.issuer],
            "exp": now + lifetime_s,
            "iat": now,
            "iss": self.issuer,
            "jti": str(uuid.UUID(bytes=secrets.token_bytes(16), version=4)),
            "kubernetes.io": who,
            "nbf": now,
            "sub": f"{PREFIX}{meta['namespace']}:{meta['name']}",
        }
        return self._signer.sign(claims), float(now + lifetime_s)

    def review(self, token: str, audiences: tuple[str, ...] = ()) -> Verdict:
        """What a token is worth for some audiences (those of the API server when none are given)."""
        wanted = audiences or (self.issuer,)
        known = self._static.get(hashlib.sha256(token.encode()).digest())
        if known is not None:
            return Verdict(known, wanted)
        claims = self._signer.claims(token) if token.count(".") == 2 else None
        if claims is None or claims.get("exp", 0) < self._now():
            return Verdict()
        issued = claims.get("aud") or []
        held = tuple(row for row in wanted if row in issued)
        if not held:
            why = f"token audiences {_quoted(issued)} is invalid for the target audiences {_quoted(wanted)}"
            return Verdict(error=f"[invalid bearer token, {why}]")
        try:
            user = self._account(claims)
        except _Invalidated:
            return Verdict(error="[invalid bearer token, service account token has been invalidated]")
        return Verdict(user, held) if user is not None else Verdict()

    def _account(self, claims: Obj) -> User | None:
        """The service account of good claims; None when it is gone; raises when a bound object is."""
        who = claims.get("kubernetes.io", {})
        namespace, account = who.get("namespace", ""), who.get("serviceaccount", {})
        uid = account.get("uid", "")
        if not uid or self._uid_of("serviceaccounts", namespace, account.get("name", "")) != uid:
            return None
        extra = [(_EXTRA + "credential-id", (f"JTI={claims.get('jti', '')}",))]
        for kind, resource in _BOUND.items():
            row = who.get(kind)
            if row is None:
                continue
            place = "" if kind == "node" else namespace
            if kind != "node" and self._uid_of(resource, place, row.get("name", "")) != row.get("uid"):
                raise _Invalidated
            if kind != "secret":
                extra.append((f"{_EXTRA}{kind}-name", (row.get("name", ""),)))
                extra += [(f"{_EXTRA}{kind}-uid", (row["uid"],))] if row.get("uid") else []
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
        return User(str(claims.get("sub", "")), groups, uid, tuple(sorted(extra)))

    def user(self, token: str) -> User | None:
        """The owner of a token that is valid here."""
        return self.review(token).user

    def of_header(self, authorization: str) -> User | None:
        """The user of an Authorization header."""
        known = self._headers.get(authorization)
        if known is not None:
            return known
        kind, _, token = authorization.partition(" ")
        user = self.user(token.strip()) if kind.lower() == "bearer" else None
        if user is not None and "." not in token:  # static: no expiry to judge at each request
            self._headers[authorization] = user
        return user
