"""What admission plugins may ask besides the store: the authorizer, and how webhooks are reached. Held by the registry.

The API server and the world fill it in (`itbench.kube.api.serve`); a registry alone has neither.
"""

from dataclasses import dataclass
from typing import Protocol

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


@dataclass(slots=True)
class Services:
    """Filled in by whoever serves the registry.

    Attributes:
        authorizer: who may do what.
        nodes: Services and pods of the world.
    """

    authorizer: Decides | None = None
    nodes: Reaches | None = None
