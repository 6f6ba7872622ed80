"""A `LocalClient` whose requests are recorded, as those over HTTP are. Handed out by `ControlPlane.client`."""

from collections.abc import Callable
from typing import Any, TypeVar

from itbench.kube.audit import AuditRecord, digest_of
from itbench.kube.client import ApiError, Obj, Objs, PatchKind, Propagation
from itbench.kube.local import LocalClient
from itbench.kube.registry import Registry

T = TypeVar("T")


class AuditedClient(LocalClient):
    """Requests of one user, each of which leaves a record."""

    def __init__(
        self, registry: Registry, manager: str, user: str, groups: tuple[str, ...], audit: list[AuditRecord]
    ) -> None:
        super().__init__(registry, manager, user, groups)
        self._audit = audit

    def _stored(self, resource: str, namespace: str, name: str) -> str:
        row = self.registry.table.find(resource)
        entry = self.registry.store.get(row.storage, namespace, name) if row is not None else None
        return digest_of(entry.object) if entry is not None else ""

    def _record(
        self, verb: str, place: tuple[str, str, str], call: Callable[[], T], subresource: str = "", detail: str = ""
    ) -> T:
        writes = verb not in ("get", "list")
        before = self._stored(*place) if writes else ""
        code = 200
        try:
            return call()
        except ApiError as error:
            code = error.code
            raise
        finally:
            resource, namespace, name = place
            self._audit.append(
                AuditRecord(
                    time=self.registry.now(),
                    user=self.options.user,
                    verb=verb,
                    resource=resource,
                    namespace=namespace,
                    name=name,
                    subresource=subresource,
                    code=code,
                    before=before,
                    after=self._stored(*place) if writes else "",
                    manager=self.options.manager,
                    detail=detail,
                )
            )

    def get(self, resource: str, name: str, namespace: str = "") -> Obj:
        """One object."""
        return self._record(
            "get", (resource, namespace, name), lambda: super(AuditedClient, self).get(resource, name, namespace)
        )

    def list(self, resource: str, namespace: str = "", *, labels: str = "", fields: str = "") -> Objs:
        """Objects sorted by namespace and name."""
        return self._record(
            "list",
            (resource, namespace, ""),
            lambda: super(AuditedClient, self).list(resource, namespace, labels=labels, fields=fields),
        )

    def create(self, resource: str, obj: Obj, namespace: str = "") -> Obj:
        """Create."""
        meta = obj.get("metadata") or {}
        place = (resource, namespace or meta.get("namespace", ""), meta.get("name", ""))
        return self._record("create", place, lambda: super(AuditedClient, self).create(resource, obj, namespace))

    def update(self, resource: str, obj: Obj, *, subresource: str = "") -> Obj:
        """Replace."""
        place = (resource, obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        return self._record(
            "update",
            place,
            lambda: super(AuditedClient, self).update(resource, obj, subresource=subresource),
            subresource,
        )

    def patch(
        self, resource: str, name: str, namespace: str, patch: Any, *, kind: PatchKind = "merge", subresource: str = ""
    ) -> Obj:
        """Patch."""
        return self._record(
            "patch",
            (resource, namespace, name),
            lambda: super(AuditedClient, self).patch(
                resource, name, namespace, patch, kind=kind, subresource=subresource
            ),
            subresource,
            kind,
        )

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
        self._record(
            "delete",
            (resource, namespace, name),
            lambda: super(AuditedClient, self).delete(
                resource, name, namespace, grace_s=grace_s, propagation=propagation, uid=uid
            ),
        )

    def evict(self, name: str, namespace: str) -> None:
        """policy/v1 Eviction of a pod."""
        self._record(
            "create", ("pods", namespace, name), lambda: super(AuditedClient, self).evict(name, namespace), "eviction"
        )
