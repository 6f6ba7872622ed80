"""Who may do what in the account: identities, roles, and the table that decides. Pure; asked by the front for every request."""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

Role = Literal["admin", "operator", "read-only"]


@dataclass(frozen=True)
class Identity:
    """A holder of an access key."""

    name: str
    role: Role
    key: str
    secret: str


SERVICES = ("ec2", "elasticloadbalancing", "s3", "rds", "iam", "sts", "monitoring", "cloudtrail")
"""Services that the account has, by signing name. Calls of others are answered as not supported, and counted."""

DENIED: dict[Role, tuple[str, ...]] = {
    "admin": (),
    "operator": (
        "iam:Create*", "iam:Put*", "iam:Attach*", "iam:Detach*", "iam:Delete*", "iam:Update*", "iam:Add*", "iam:Upload*",
        "sts:Assume*", "sts:GetFederationToken", "sts:GetSessionToken", "cloudtrail:Stop*", "cloudtrail:Delete*",
        "cloudtrail:Update*", "cloudtrail:Put*",
    ),
    "read-only": ("sts:Assume*", "sts:GetFederationToken", "sts:GetSessionToken"),
}  # fmt: skip
"""Patterns of `service:Action` that a role may not call. Read-only may call nothing but reads besides."""


def allowed(identity: Identity, service: str, action: str, *, reads: bool) -> bool:
    """Whether an identity may make a call."""
    if identity.role == "read-only" and not reads:
        return False
    return not any(fnmatchcase(f"{service}:{action}", pattern) for pattern in DENIED[identity.role])
