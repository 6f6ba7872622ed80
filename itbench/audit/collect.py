"""Collects the facts of a profile from a cluster by get and list requests only.

What is forbidden or unanswered becomes a gap, never silence.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping

from itbench.audit.facts import Facts, Sheet
from itbench.audit.redact import redacted
from itbench.core.errors import EnvironmentFault
from itbench.kube.client import ApiError, Client

Now = Callable[[], str]
"""The time of the collection, RFC 3339."""


def collect(client: Client, resources: Iterable[str], now: Now, about: Mapping[str, str]) -> Facts:
    """Ask for every list.

    Args:
        client: of the estate, with the auditor's identity.
        resources: plural and group, such as `deployments.apps`.
        now: injected clock.
        about: what the caller knows of the estate: `server`, `context`, `identity`, `server_version`.

    Raises:
        EnvironmentFault: the first request already finds nobody.
    """
    started = now()
    estate = fingerprint(client, about.get("server", ""))
    sheets = [_sheet(client, resource, now(), estate, about.get("identity", "")) for resource in sorted(resources)]
    return Facts(estate, started, now(), dict(about), tuple(sheets))


def fingerprint(client: Client, server: str = "") -> str:
    """What tells this estate from others in every run: the uid of `kube-system`, else the address.

    Raises:
        EnvironmentFault: the estate does not answer.
    """
    try:
        identity = str(client.get("namespaces", "kube-system")["metadata"]["uid"])
    except ApiError:
        identity = server
    return hashlib.sha256(identity.encode()).hexdigest()[:16]


def _sheet(client: Client, resource: str, at: str, estate: str, identity: str) -> Sheet:
    request = f"kubectl get {resource} --all-namespaces -o json"
    try:
        items = tuple(redacted(resource, obj) for obj in client.list(resource))
    except ApiError as error:
        return Sheet(resource, request, at, identity, estate, (), f"{error.code} {error.reason}: {error}")
    except EnvironmentFault as error:
        return Sheet(resource, request, at, identity, estate, (), str(error))
    return Sheet(resource, request, at, identity, estate, items)
