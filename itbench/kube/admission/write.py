"""The write under admission. Shared by all plugins; made by the registry."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from itbench.core.ids import Ids
from itbench.kube.admission.services import Services
from itbench.kube.client import Obj
from itbench.kube.resources import Resource, ResourceTable
from itbench.kube.store import Store

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


@dataclass(slots=True)
class Write:
    """One write on its way into the store. Plugins change `object` in place or raise `ApiError`.

    Attributes:
        object: the new state in the stored version (for DELETE the state that goes).
        old: the state before, None on create.
        uid: the user's uid; `extra`: what else is known of him.
        asked: options that the request named (`fieldManager`, ...).
        parent: name of the object whose subresource this is, where the object has none itself.
        stamp: now, as objects carry it.
        services: what plugins may ask.
        notes: what the audit log is to say of the request.
    """

    store: Store
    table: ResourceTable
    ids: Ids
    resource: Resource
    operation: Operation
    object: Obj
    old: Obj | None = None
    subresource: str = ""
    namespace: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()
    dry_run: bool = False
    warnings: list[str] = field(default_factory=list)
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()
    asked: dict[str, Any] = field(default_factory=dict)
    parent: str = ""
    stamp: str = ""
    services: Services = field(default_factory=Services)
    notes: list[str] = field(default_factory=list)

    @property
    def key(self) -> str:
        """The resource's key in the store."""
        return self.resource.storage

    @property
    def name(self) -> str:
        """The object's name, or that of the object whose subresource it is."""
        return self.parent or str(self.object["metadata"].get("name", ""))

    def resized_pod(self) -> bool:
        """Whether this changes the resources of a pod's containers."""
        return self.key == "pods" and self.subresource == "resize"

    def new_pod(self) -> bool:
        """Whether a pod is being created."""
        return self.key == "pods" and self.operation == "CREATE" and not self.subresource


Plugin = Callable[[Write], None]
