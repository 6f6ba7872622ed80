"""The narrow client protocol: all that controllers, kubelets, graders and the audit may ask of a control plane.

`itbench.kube.local` implements it in process on the embedded control plane, `itbench.kube.remote` over HTTP on any real one;
that is what makes the attached environment and the audit of real clusters possible.

Resources are named by plural and group: `pods`, `deployments.apps`, `podchaos.chaos-mesh.org`.
Objects are plain JSON dictionaries. What `get`, `list` and `changes` return is shared: copy before you change it.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Obj = dict[str, Any]
Objs = list[Obj]
PatchKind = Literal["json", "merge", "strategic", "apply"]
Propagation = Literal["Background", "Foreground", "Orphan"]


class ApiError(Exception):
    """A failed request, with the `Status` object that a client of the real API would have received."""

    def __init__(self, status: Obj) -> None:
        self.status = status
        super().__init__(status.get("message", ""))

    @property
    def code(self) -> int:
        """HTTP status code."""
        return int(self.status.get("code", 500))

    @property
    def reason(self) -> str:
        """Machine-readable reason such as `NotFound`, `AlreadyExists`, `Conflict`, `Invalid`."""
        return str(self.status.get("reason", ""))


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of the change log. `object` is the state after the change (for DELETED the last state)."""

    revision: int
    type: Literal["ADDED", "MODIFIED", "DELETED"]
    resource: str
    object: Obj
    previous: Obj | None = None


Changes = list[Change]


class Client(Protocol):
    """Synchronous, in world time. Every method raises `ApiError`."""

    def get(self, resource: str, name: str, namespace: str = "") -> Obj:
        """One object."""

    def list(self, resource: str, namespace: str = "", *, labels: str = "", fields: str = "") -> Objs:
        """Objects sorted by namespace and name; an empty namespace means all of them; selectors in kubectl's syntax."""

    def changes(self, since: int, resources: Collection[str] = ()) -> "tuple[Changes, int]":
        """What changed after revision `since`, in order, and the revision now; `since=-1` gives all objects as ADDED."""

    def create(self, resource: str, obj: Obj, namespace: str = "") -> Obj:
        """Create; the namespace defaults to the object's own."""

    def update(self, resource: str, obj: Obj, *, subresource: str = "") -> Obj:
        """Replace (`subresource`: `status`, `scale`, ...). A stale resourceVersion is a 409; none means last write wins."""

    def patch(
        self, resource: str, name: str, namespace: str, patch: Any, *, kind: PatchKind = "merge", subresource: str = ""
    ) -> Obj:
        """Patch; `kind="apply"` is server-side apply, forced."""

    def delete(
        self,
        resource: str,
        name: str,
        namespace: str = "",
        *,
        grace_s: int | None = None,
        propagation: Propagation = "Background",
        uid: str = "",
    ) -> None:
        """Delete; pods with a grace period are only marked (the kubelet deletes them with `grace_s=0`)."""

    def evict(self, name: str, namespace: str) -> None:
        """policy/v1 Eviction of a pod; 429 when a disruption budget forbids it."""
