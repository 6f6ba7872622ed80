"""What admission plugins may ask besides the store: the authorizer, and how webhooks are reached. Held by the registry.

The API server and the world fill it in (`itbench.kube.api.serve`); a registry alone has neither.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from cryptography.x509 import CertificateSigningRequest

from itbench.kube.client import Obj
from itbench.kube.door import Request, Response
from itbench.kube.rbac import Access, User


class Decides(Protocol):
    """`itbench.kube.rbac.Authorizer`."""

    def allowed(self, user: User, access: Access) -> tuple[bool, str]:
        """(whether, why)."""


class Reaches(Protocol):
    """Calls Services of the world: `itbench.kube.door.NodeDoor`."""

    def http(self, host: str, port: int, request: Request, *, source: str = "") -> tuple[Response | None, str]:
        """The answer, or None and why not."""


class Unreached(Exception):
    """A call outside came to nothing; the text is what a Go client says after the URL."""


class Moved(Exception):
    """While a webhook was asked, the object changed: whoever runs the verb runs it again."""


class Calls(Protocol):
    """Calls real hosts: `itbench.kube.api.outside.Outside`."""

    def allows(self, url: str) -> bool:
        """Whether the host was allowed at start."""

    def send(self, url: str, request: Request, authority: bytes, timeout_s: float) -> Response:
        """The answer; raises `Unreached`."""


@dataclass(slots=True)
class Services:
    """Filled in by whoever serves the registry.

    Attributes:
        authorizer: who may do what.
        nodes: Services and pods of the world.
        outside: real hosts that webhooks may live on; None for none.
        sign: the cluster's authority: (request, usages, seconds) -> PEM; None while nobody serves the registry.
        api: the API server as programs in the world reach it; answers None to what would have to wait.
        pod_token: (pod, audience, seconds) -> the token in a file of a pod; the audience is empty for the API server.
    """

    authorizer: Decides | None = None
    nodes: Reaches | None = None
    outside: Calls | None = None
    sign: Callable[[CertificateSigningRequest, list[str], int], bytes] | None = None
    api: Callable[[Request], Response | None] | None = None
    pod_token: Callable[[Obj, str, int], str] | None = None
