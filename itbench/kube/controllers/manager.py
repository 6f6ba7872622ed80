"""The loop: changes wake controllers, controllers write changes, until nothing is left to do at this second.

`kube.plane` owns one manager. The order of work depends only on the order of changes and on time, and all state is plain data.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from itbench.core.errors import EnvironmentFault
from itbench.kube.client import ApiError, Change, Client
from itbench.kube.controllers.base import Context, Controller, KeysOf
from itbench.kube.controllers.cache import UNWATCHED, Cache, Key, key_of
from itbench.kube.events import Recorder
from itbench.kube.queue import Item, WorkQueue

FIGHT = 1000
"""Reconciliations of one key within one second of world time after which somebody must be fighting."""

DEFECTS = 100
"""Distinct errors remembered."""

RETRIED = "Conflict"
"""Writes that lost a race are retried at once; the cache is fresh by then."""

Listener = Callable[[Change], None]


class Manager:
    """Runs controllers to quiescence.

    Args:
        client: what controllers write with and changes come from.
        controllers: in order; the order decides who is woken first by a change.
        revision: tells cheaply whether anything changed since.
        listeners: see every change right after the cache has taken it over (the scheduler's node sums).
    """

    def __init__(
        self,
        client: Client,
        controllers: Iterable[Controller],
        revision: Callable[[], int],
        *,
        cache: Cache,
        listeners: Iterable[Listener] = (),
    ) -> None:
        self.cache = cache
        self.queue = WorkQueue()
        self._client, self._revision = client, revision
        self._controllers = {c.name: c for c in controllers}
        self._listeners = list(listeners)
        self._watchers: dict[str, list[tuple[str, KeysOf]]] = {}
        for controller in self._controllers.values():
            for resource, keys in controller.watches.items():
                self._watchers.setdefault(resource, []).append((controller.name, keys))
        self._state: dict[str, dict[str, Any]] = {name: {} for name in self._controllers}
        self._recorders = {name: Recorder(client, c.component or name) for name, c in self._controllers.items()}
        self._position = 0
        self.defects: list[str] = []
        """Errors of controllers themselves: none in a sound control plane."""

    def pull(self) -> None:
        """Take over what changed, and queue whoever it concerns."""
        if self._revision() == self._position:
            return
        try:
            changes, self._position = self._client.changes(self._position)
        except ApiError as error:
            if error.code != 410:
                raise
            changes, self._position = self._resync()
        for change in changes:
            if change.resource not in UNWATCHED:
                self.cache.apply(change)
                for listener in self._listeners:
                    listener(change)
            self._wake(change)

    def _resync(self) -> tuple[list[Change], int]:
        """The change log is too short: compare everything with what is known."""
        listing, revision = self._client.changes(-1)
        found: dict[tuple[str, Key], None] = {}
        changes: list[Change] = []
        for change in listing:
            key = key_of(change.object)
            found[change.resource, key] = None
            old = self.cache.get(change.resource, *key)
            if old is None:
                changes.append(change)
            elif old["metadata"]["resourceVersion"] != change.object["metadata"]["resourceVersion"]:
                changes.append(Change(change.revision, "MODIFIED", change.resource, change.object, old))
        for resource in self.cache.resources():
            for obj in self.cache.list(resource):
                if (resource, key_of(obj)) not in found:
                    changes.append(Change(revision, "DELETED", resource, obj, obj))
        return changes, revision

    def _wake(self, change: Change) -> None:
        for watched in (change.resource, "*"):
            for name, keys in self._watchers.get(watched, ()):
                try:
                    found = list(keys(change, self.cache))
                except Exception as error:
                    self._note(f"{name} on {change.type} of {change.resource} {key_of(change.object)}", error)
                    continue
                for namespace, key in found:
                    self.queue.add((name, namespace, key))

    def run(self, now: float) -> None:
        """Reconcile until nothing is left to do at world second `now`.

        Raises:
            EnvironmentFault: the same key came up thousands of times (two controllers undo each other's work).
        """
        self.pull()
        self.queue.release(now)
        rounds: Counter[Item] = Counter()
        while len(self.queue):
            item = self.queue.pop()
            rounds[item] += 1
            if rounds[item] > FIGHT and not self._controllers[item[0]].queueing:
                raise self._fight(item, now)
            self._reconcile(item, now)
            self.pull()
            if not len(self.queue):
                self.queue.release(now)

    def _fight(self, item: Item, now: float) -> EnvironmentFault:
        return EnvironmentFault(
            "controllers do not come to rest",
            seen=f"{item[0]} reconciled {item[1]}/{item[2]} {FIGHT} times at world second {now:g}",
            expected="a fixed point",
            hint="look for two controllers, or a controller and a webhook, that undo each other's changes",
        )

    def _reconcile(self, item: Item, now: float) -> None:
        name, namespace, key = item
        controller = self._controllers[name]
        context = Context(
            client=self._client,
            cache=self.cache,
            now=now,
            recorder=self._recorders[name],
            state=self._state[name],
            requeue=lambda key, at: self.queue.add_at((name, *key), at),
        )
        try:
            controller.reconcile(context, namespace, key)
        except ApiError as error:
            if error.reason == RETRIED:
                self.queue.add(item)
            else:
                self.queue.fail(item, now)
        except Exception as error:
            # What people write into objects must not stop the whole cluster: note it and go on, as a real process would.
            self.queue.fail(item, now)
            self._note(f"{name} {namespace}/{key}", error)
        else:
            self.queue.succeed(item)

    def _note(self, place: str, error: Exception) -> None:
        text = f"{place}: {type(error).__name__}: {error}"
        if text not in self.defects and len(self.defects) < DEFECTS:
            self.defects.append(text)

    def is_behind(self) -> bool:
        """Whether there are changes that nobody looked at, or work that nobody did."""
        return len(self.queue) > 0 or self._revision() != self._position

    def due(self) -> float:
        """World second of the next timer."""
        return self.queue.due()

    def save(self) -> dict[str, Any]:
        """State as plain data; changes that nobody saw yet are turned into work first."""
        self.pull()
        return {
            "position": self._position,
            "defects": self.defects,
            "queue": self.queue.save(),
            "state": self._state,
            "recorders": {name: recorder.save() for name, recorder in self._recorders.items()},
        }

    def restore(self, data: dict[str, Any]) -> None:
        """Go on from what `save` gave; the client must already hold the objects of that moment."""
        listing, _ = self._client.changes(-1)
        for change in listing:
            if change.resource not in UNWATCHED:
                self.cache.apply(change)
                for listener in self._listeners:
                    listener(change)
        self._position = data["position"]
        self.defects = list(data["defects"])
        self.queue = WorkQueue.load(data["queue"])
        for name, state in data["state"].items():
            self._state[name] = state
        for name, recorder in data["recorders"].items():
            self._recorders[name].restore(recorder)
