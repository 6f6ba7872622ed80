"""Objects at rest: immutable entries, one revision counter, a change log.

The registry is the only writer. The API server and `LocalClient` read entries and the log, which are shared and never changed.
Every write takes the next revision, so the log is addressed by revision. Copying the dictionaries is a snapshot.

    store = Store()
    entry = store.put("pods", obj)            # new or changed; stamps metadata.resourceVersion
    store.get("pods", "default", "web-0")     # Entry | None, O(1)
    store.list("pods", "default")             # entries sorted by namespace and name
    store.remove("pods", "default", "web-0")
    store.since(17, {"pods"})                 # list of Record after revision 17; raises Expired when the log is shorter
    snap = store.snapshot(); store.restore(snap)      # as if nothing had happened; nobody may be following
    store.reinstate(snap)                             # the same under a new revision; followers list again
    Store.load(store.save())                  # plain data
"""

from collections.abc import Collection
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal

import orjson

from itbench.kube.client import Obj

LOG_LENGTH = 16384
"""Records kept; watchers that fall further behind have to list again."""
_TRIM = 4096

ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]


class Expired(Exception):
    """The change log no longer reaches back to the revision asked for."""

    def __init__(self, asked: int, oldest: int) -> None:
        self.asked, self.oldest = asked, oldest
        super().__init__(f"too old resource version: {asked} ({oldest})")


class Entry:
    """One version of one object. `cells` is free for the table renderer to keep what it computed for this version."""

    __slots__ = ("_bytes", "cells", "name", "namespace", "object", "resource", "revision")

    def __init__(self, resource: str, obj: Obj, revision: int) -> None:
        metadata = obj["metadata"]
        self.resource = resource
        self.namespace: str = metadata.get("namespace", "")
        self.name: str = metadata["name"]
        self.revision = revision
        self.object = obj
        self.cells: Any = None
        self._bytes: bytes | None = None

    @property
    def bytes(self) -> bytes:
        """The object as compact JSON, encoded once."""
        if self._bytes is None:
            self._bytes = orjson.dumps(self.object)
        return self._bytes

    def copy(self) -> Obj:
        """A private deep copy of the object."""
        copied: Obj = orjson.loads(self.bytes)
        return copied


@dataclass(frozen=True, slots=True)
class Record:
    """One line of the change log. For DELETED, `entry` is the last state with the revision of the deletion."""

    revision: int
    type: ChangeType
    entry: Entry
    previous: Entry | None


Records = list[Record]
Entries = list[Entry]
Names = list[str]
_ORDER = attrgetter("namespace", "name")


class _Bucket:
    """Entries of one resource, by namespace and name, with the sorted lists that were asked for."""

    __slots__ = ("_sorted", "spaces")

    def __init__(self, spaces: dict[str, dict[str, Entry]] | None = None) -> None:
        self.spaces: dict[str, dict[str, Entry]] = spaces or {}
        self._sorted: dict[str, list[Entry]] = {}

    def set(self, entry: Entry) -> Entry | None:
        space = self.spaces.setdefault(entry.namespace, {})
        old = space.get(entry.name)
        space[entry.name] = entry
        self._forget(entry.namespace)
        return old

    def drop(self, namespace: str, name: str) -> Entry:
        space = self.spaces[namespace]
        entry = space.pop(name)
        if not space:
            del self.spaces[namespace]
        self._forget(namespace)
        return entry

    def _forget(self, namespace: str) -> None:
        self._sorted.pop(namespace, None)
        self._sorted.pop("", None)

    def sorted(self, namespace: str) -> list[Entry]:
        found = self._sorted.get(namespace)
        if found is None:
            if namespace:
                found = sorted(self.spaces.get(namespace, {}).values(), key=_ORDER)
            else:
                found = sorted((entry for space in self.spaces.values() for entry in space.values()), key=_ORDER)
            self._sorted[namespace] = found
        return found

    def copy(self) -> "_Bucket":
        return _Bucket({namespace: dict(space) for namespace, space in self.spaces.items()})


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A state of the store to go back to; shares all entries with it."""

    revision: int
    buckets: dict[str, _Bucket]
    log: list[Record]


class Store:
    """All objects of one control plane."""

    def __init__(self) -> None:
        self.revision = 0
        self._buckets: dict[str, _Bucket] = {}
        self._log: list[Record] = []

    def get(self, resource: str, namespace: str, name: str) -> Entry | None:
        """The entry, or None."""
        bucket = self._buckets.get(resource)
        if bucket is None:
            return None
        space = bucket.spaces.get(namespace)
        return None if space is None else space.get(name)

    def list(self, resource: str, namespace: str = "") -> list[Entry]:
        """Entries sorted by namespace and name (shared list: do not change it); an empty namespace means all."""
        bucket = self._buckets.get(resource)
        return [] if bucket is None else bucket.sorted(namespace)

    def resources(self) -> Names:
        """Resources of which there are objects, sorted."""
        return sorted(name for name, bucket in self._buckets.items() if bucket.spaces)

    def put(self, resource: str, obj: Obj) -> Entry:
        """Store an object under the next revision; the store owns `obj` from now on."""
        self.revision += 1
        obj["metadata"]["resourceVersion"] = str(self.revision)
        entry = Entry(resource, obj, self.revision)
        bucket = self._buckets.get(resource)
        if bucket is None:
            bucket = self._buckets[resource] = _Bucket()
        old = bucket.set(entry)
        self._record(Record(self.revision, "ADDED" if old is None else "MODIFIED", entry, old))
        return entry

    def remove(self, resource: str, namespace: str, name: str) -> Entry:
        """Remove an object; raises KeyError when there is none. Returns its last state at the new revision."""
        old = self._buckets[resource].drop(namespace, name)
        self.revision += 1
        obj = {**old.object, "metadata": {**old.object["metadata"], "resourceVersion": str(self.revision)}}
        entry = Entry(resource, obj, self.revision)
        self._record(Record(self.revision, "DELETED", entry, old))
        return entry

    def _record(self, record: Record) -> None:
        self._log.append(record)
        if len(self._log) > LOG_LENGTH + _TRIM:
            del self._log[: len(self._log) - LOG_LENGTH]

    @property
    def oldest(self) -> int:
        """The lowest revision from which `since` still works."""
        return self._log[0].revision - 1 if self._log else self.revision

    def since(self, revision: int, resources: Collection[str] = ()) -> Records:
        """Changes after a revision, in order, of the resources named (all when none is).

        Raises:
            Expired: the log does not reach back that far.
        """
        if revision >= self.revision:
            return []
        oldest = self.oldest
        if revision < oldest:
            raise Expired(revision, oldest)
        tail = self._log[revision - oldest :]
        if not resources:
            return tail
        return [record for record in tail if record.entry.resource in resources]

    def list_at(self, resource: str, namespace: str, revision: int) -> Entries:
        """Entries as they were at a revision, sorted by namespace and name.

        Raises:
            Expired: the log does not reach back that far.
        """
        if revision >= self.revision:
            return self.list(resource, namespace)
        found = {(entry.namespace, entry.name): entry for entry in self.list(resource, namespace)}
        for record in reversed(self.since(revision, {resource})):
            key = (record.entry.namespace, record.entry.name)
            if namespace and key[0] != namespace:
                continue
            if record.previous is not None:
                found[key] = record.previous
            else:
                found.pop(key, None)
        return [found[key] for key in sorted(found)]

    def snapshot(self) -> Snapshot:
        """The state now, in a time that depends on the number of namespaces, not on the size of objects."""
        return Snapshot(self.revision, {name: bucket.copy() for name, bucket in self._buckets.items()}, list(self._log))

    def restore(self, snapshot: Snapshot) -> None:
        """Go back; the snapshot can be used again."""
        self.revision = snapshot.revision
        self._buckets = {name: bucket.copy() for name, bucket in snapshot.buckets.items()}
        self._log = list(snapshot.log)

    def reinstate(self, snapshot: Snapshot) -> None:
        """Put an old state in force under a new revision, as a backup that is restored into a cluster in use.

        Revisions go on rising; whoever follows the log or a list in chunks is told that his position has expired.
        """
        revision = max(self.revision, snapshot.revision) + 1
        self.restore(snapshot)
        self.revision, self._log = revision, []

    def save(self) -> dict[str, Any]:
        """Plain data. The log is not kept: watchers list again after a load."""
        objects = {name: [entry.bytes for entry in self.list(name)] for name in self.resources()}
        return {"revision": self.revision, "objects": objects}

    @classmethod
    def load(cls, data: dict[str, Any]) -> "Store":
        """The inverse of `save`."""
        store = cls()
        store.revision = data["revision"]
        for name, rows in data["objects"].items():
            bucket = store._buckets[name] = _Bucket()
            for raw in rows:
                obj = orjson.loads(raw)
                bucket.set(Entry(name, obj, int(obj["metadata"]["resourceVersion"])))
        return store
