"""Who is asking: client certificates, bearer tokens, nobody; called by `server`. Impersonation is in `impersonation`."""

import hashlib
from typing import Any

from itbench.kube.api.tokens import Tokens
from itbench.kube.client import ApiError
from itbench.kube.rbac import ANONYMOUS, AUTHENTICATED, Access, User, forbidden_message
from itbench.kube.status import Problem, failure

CREDENTIAL = "authentication.kubernetes.io/credential-id"


def unauthorized() -> ApiError:
    """401, as the real server words it."""
    return failure(401, "Unauthorized", "Unauthorized")


def forbidden(user: User, access: Access, why: str = "") -> ApiError:
    """403 by the authorizer; `why` is what it says besides, which RBAC does not."""
    problem = Problem(access.name, access.group, access.resource) if access.resource else Problem()
    text = forbidden_message(user, access) + (f": {why}" if why else "")
    return failure(403, "Forbidden", text, problem)


def authenticate(tokens: Tokens, authorization: str, transport: Any) -> User:
    """The user of a request: his certificate, else his token, else anonymous.

    Args:
        transport: of the connection; its TLS layer has checked the certificate against the cluster's authority.

    Raises:
        ApiError: 401, the header is there and wrong.
    """
    user = certified(transport)
    if user is not None:
        return user
    if not authorization:
        return ANONYMOUS
    found = tokens.of_header(authorization)
    if found is None:
        raise unauthorized()
    return found


def certified(transport: Any) -> User | None:
    """The user that a connection's client certificate names (CN, and O for groups)."""
    shown = transport.get_extra_info("peercert") if transport is not None else None
    if not shown:
        return None
    names = [pair for part in shown.get("subject", ()) for pair in part]
    common = [value for key, value in names if key == "commonName"]
    if not common:
        return None
    groups = tuple(value for key, value in names if key == "organizationName")
    secure = transport.get_extra_info("ssl_object")
    digest = hashlib.sha256(secure.getpeercert(binary_form=True)).hexdigest()
    return User(common[0], (*groups, AUTHENTICATED), "", ((CREDENTIAL, (f"X509SHA256={digest}",)),))
