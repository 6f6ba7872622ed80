"""The embedded control plane: store, registry, admission, controllers and scheduler as one thing that the world drives.

    plane = ControlPlane(ids=Ids(7))
    client = plane.client("kubectl")
    client.create("deployments.apps", {...}, "default")
    plane.run(12.0)                 # everything that is due up to world second 12, to quiescence
    plane.due()                     # when it wants to be run again
    ControlPlane.load(plane.save())         # through plain data
    state = plane.snapshot()                # in memory, sharing all objects: see `itbench.kube.snapshots`
    ControlPlane.fork(state); plane.restore(state)

Called by `itbench.world`, by the API server and by tests. Deterministic: equal identifiers, requests and times give equal bytes.
"""

from typing import Any

from itbench.core import codec
from itbench.core.ids import Ids
from itbench.kube.audit import AuditRecord
from itbench.kube.auditing import AuditedClient
from itbench.kube.client import Obj
from itbench.kube.controllers import certificates
from itbench.kube.controllers.base import MetricsSource
from itbench.kube.controllers.bootstrap import objects
from itbench.kube.controllers.cache import Cache
from itbench.kube.controllers.manager import Manager
from itbench.kube.controllers.table import controllers
from itbench.kube.local import LocalClient
from itbench.kube.registry import Registry
from itbench.kube.scheduler.scheduler import Scheduler
from itbench.kube.snapshots import PlaneSnapshot
from itbench.kube.store import Store

COMPONENTS = "system:"
"""Requests of users with this prefix are the cluster's own (components, kubelets, staging): they are not audited."""


class ControlPlane:
    """One control plane.

    Args:
        ids: source of names and uids; belongs to this plane from now on.
        name: which of a trial's control planes this is.
        now: world second at which it starts.
        metrics: where the horizontal autoscaler reads pod metrics; set later by the world as `metrics`.
    """

    def __init__(self, *, ids: Ids, name: str = "main", now: float = 0.0, metrics: MetricsSource | None = None) -> None:
        self._setup(ids, name, now, Store(), [], metrics)
        self._bootstrap()

    def _setup(
        self,
        ids: Ids,
        name: str,
        now: float,
        store: Store,
        audit: list[AuditRecord],
        metrics: MetricsSource | None = None,
    ) -> None:
        self.ids, self.name, self.now, self.store, self.audit = ids, name, now, store, audit
        self.metrics = metrics
        self.registry = Registry(store=store, ids=ids, now=lambda: self.now)
        self._hire()

    def _hire(self) -> None:
        """Controllers and scheduler that know nothing yet."""
        scheduler_client = LocalClient(self.registry, "kube-scheduler", "system:kube-scheduler")
        self._scheduler = Scheduler(scheduler_client, scheduler_client.post)
        client = LocalClient(self.registry, "kube-controller-manager", "system:kube-controller-manager")
        signing = certificates.controller(lambda: self.registry.services.sign)
        rows = [*controllers(self._pod_metrics), signing, self._scheduler.controller()]
        self._manager = Manager(
            client, rows, lambda: self.store.revision, cache=Cache(), listeners=[self._scheduler.nodes.apply]
        )

    def _pod_metrics(self, namespace: str) -> list[Obj] | None:
        return self.metrics(namespace) if self.metrics is not None else None

    def _bootstrap(self) -> None:
        client = self.client("kube-apiserver")
        for resource, obj in objects():
            client.create(resource, obj)
        self.run(self.now)

    @property
    def defects(self) -> list[str]:
        """Errors of controllers themselves, as text; empty in a sound control plane."""
        return self._manager.defects

    @property
    def revision(self) -> int:
        """The store's revision."""
        return self.store.revision

    def client(self, manager: str, user: str = "system:masters", groups: tuple[str, ...] = ()) -> LocalClient:
        """An in-process client; requests go through registry and admission.

        Args:
            manager: field manager.
            user: who asks; requests of users that are not `system:` ones are recorded in `audit`.
            groups: the user's groups.
        """
        if not user or user.startswith(COMPONENTS):
            return LocalClient(self.registry, manager, user or "system:masters", groups)
        return AuditedClient(self.registry, manager, user, groups, self.audit)

    def run(self, now: float) -> None:
        """Move to world second `now`, doing on the way what becomes due, each at its own time.

        Raises:
            EnvironmentFault: controllers do not come to rest.
        """
        self._manager.run(self.now)
        while (due := self._manager.due()) <= now:
            self.now = max(self.now, due)
            self._manager.run(self.now)
        if now > self.now:
            self.now = now

    def due(self) -> float:
        """World second of the next timer; `now` while changes wait for somebody to look at them; inf when idle."""
        return self.now if self._manager.is_behind() else self._manager.due()

    def save(self) -> dict[str, Any]:
        """Everything as plain data (`core.codec` makes bytes of it)."""
        manager = self._manager.save()
        return {
            "name": self.name,
            "now": self.now,
            "ids": self.ids.save(),
            "store": self.store.save(),
            "manager": manager,
            "scheduler": self._scheduler.save(),
            "audit": [record.as_data() for record in self.audit],
        }

    @classmethod
    def load(cls, data: dict[str, Any]) -> "ControlPlane":
        """The inverse of `save`; goes on exactly as the saved one would have."""
        plane = cls.__new__(cls)
        audit = [AuditRecord.from_data(record) for record in data["audit"]]
        plane._setup(Ids.load(data["ids"]), data["name"], data["now"], Store.load(data["store"]), audit)
        plane._resume(data["manager"], data["scheduler"])
        return plane

    def snapshot(self) -> PlaneSnapshot:
        """The state now. Objects are shared, so it costs their number, not their size."""
        rest = {"ids": self.ids.save(), "manager": self._manager.save(), "scheduler": self._scheduler.save()}
        return PlaneSnapshot(self.name, self.now, self.store.snapshot(), tuple(self.audit), codec.dumps(rest))

    @classmethod
    def fork(cls, snapshot: PlaneSnapshot) -> "ControlPlane":
        """A new plane in the state of a snapshot, to the last revision; neither notices what happens to the other.

        Equal requests to both give equal bytes. Where pod metrics come from (`metrics`) is the caller's to set.
        """
        plane = cls.__new__(cls)
        rest, store = codec.loads(snapshot.rest), Store()
        store.restore(snapshot.store)
        plane._setup(Ids.load(rest["ids"]), snapshot.name, snapshot.now, store, list(snapshot.audit))
        plane._resume(rest["manager"], rest["scheduler"])
        return plane

    def restore(self, snapshot: PlaneSnapshot) -> None:
        """Go back to a state of this plane; clients and a server of it go on.

        The revision goes on rising and watches are told to list again (410), as when a cluster gets its backup back. The audit
        log goes back, too.
        """
        rest = codec.loads(snapshot.rest)
        self.store.reinstate(snapshot.store)
        self.ids = self.registry.ids = Ids.load(rest["ids"])
        self.now, self.audit[:] = snapshot.now, snapshot.audit
        self._hire()
        self._resume({**rest["manager"], "position": self.store.revision}, rest["scheduler"])

    def _resume(self, manager: dict[str, Any], scheduler: dict[str, Any]) -> None:
        self._manager.restore(manager)
        self._scheduler.restore(scheduler)
