"""`Client` on the embedded control plane, in process: for controllers, kubelets, staging and graders.

client = LocalClient(registry, manager="deployment-controller", user="system:serviceaccount:kube-system:deployment-controller")
"""

from collections.abc import Collection
from typing import Any

from itbench.kube import status
from itbench.kube.client import Change, Changes, Obj, Objs, PatchKind, Propagation
from itbench.kube.registry import Registry
from itbench.kube.requests import DeleteOptions, ListQuery, Options, PatchBody
from itbench.kube.resources import Resource
from itbench.kube.store import Expired, Record


class LocalClient:
    """Requests of one user and field manager. Unknown fields are errors: they are mistakes of our own."""

    def __init__(
        self, registry: Registry, manager: str, user: str = "system:admin", groups: tuple[str, ...] = ()
    ) -> None:
        self.registry = registry
        self.options = Options(manager, user, groups or ("system:masters",), validation="Strict", force=True)

    def _resource(self, name: str) -> Resource:
        found = self.registry.table.find(name)
        if found is None:
            raise status.failure(
                404, "NotFound", "the server could not find the requested resource", status.Problem(kind=name)
            )
        if found.model is None:
            return found
        stored = found.model.stored_version
        return self.registry.table.lookup(found.group, stored, found.plural) or found

    def get(self, resource: str, name: str, namespace: str = "") -> Obj:
        """One object."""
        return self.registry.get(self._resource(resource), name, namespace).object

    def list(self, resource: str, namespace: str = "", *, labels: str = "", fields: str = "") -> Objs:
        """Objects sorted by namespace and name."""
        query = ListQuery(labels, fields) if labels or fields else None
        return [entry.object for entry in self.registry.list(self._resource(resource), namespace, query).entries]

    def changes(self, since: int, resources: Collection[str] = ()) -> "tuple[Changes, int]":
        """What changed after a revision; raises a 410 when the log is shorter."""
        store = self.registry.store
        wanted = {self._resource(name).storage for name in resources}
        if since < 0:
            found = [
                Change(entry.revision, "ADDED", name, entry.object)
                for name in (sorted(wanted) or store.resources())
                for entry in store.list(name)
            ]
            return found, store.revision
        try:
            records = store.since(since, wanted)
        except Expired as error:
            raise status.expired(str(error)) from None
        return [_change(record) for record in records], store.revision

    def create(self, resource: str, obj: Obj, namespace: str = "") -> Obj:
        """Create; the namespace defaults to the object's own."""
        place = namespace or (obj.get("metadata") or {}).get("namespace", "")
        return self.registry.create(self._resource(resource), obj, place, self.options).object

    def update(self, resource: str, obj: Obj, *, subresource: str = "") -> Obj:
        """Replace."""
        metadata = obj["metadata"]
        row = self._resource(resource)
        done = self.registry.update(
            row, metadata["name"], metadata.get("namespace", ""), obj, self.options, subresource
        )
        return done.object

    def patch(
        self, resource: str, name: str, namespace: str, patch: Any, *, kind: PatchKind = "merge", subresource: str = ""
    ) -> Obj:
        """Patch; `kind="apply"` is server-side apply, forced."""
        row, body = self._resource(resource), PatchBody(kind, patch)
        return self.registry.patch(row, name, namespace, body, self.options, subresource).object

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
        """Delete."""
        how = DeleteOptions(grace_s, propagation, uid)
        self.registry.delete(self._resource(resource), name, namespace, how, self.options)

    def post(self, resource: str, name: str, namespace: str, subresource: str, body: Obj) -> Obj:
        """POST to a subresource: the scheduler's `binding`."""
        return self.registry.post(self._resource(resource), name, namespace, subresource, body, self.options).object

    def evict(self, name: str, namespace: str) -> None:
        """policy/v1 Eviction of a pod."""
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace}}
        self.registry.post(self._resource("pods"), name, namespace, "eviction", body, self.options)


def _change(record: Record) -> Change:
    previous = record.previous.object if record.previous is not None else None
    return Change(record.revision, record.type, record.entry.resource, record.entry.object, previous)
