"""What the controllers know: all objects by resource, namespace and name, with the indexes that keep reconciling cheap.

Fed by the manager from `Client.changes`; read by controllers and scheduler. Answers are sorted by namespace and name, never by
the order in which objects came, so that a restored control plane decides as the saved one would have.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from itbench.kube.client import Change, Obj, Objs
from itbench.kube.controllers.selectors import exact_pairs, matches, pairs_match

Key = tuple[str, str]
"""(namespace, name)."""
Place = tuple[str, str, str]
"""(resource, namespace, name)."""
Places = list[Place]
Names = list[str]

ADOPTABLE = frozenset({"pods", "replicasets.apps", "controllerrevisions.apps"})
"""Resources whose objects without controller are indexed, for adoption."""

UNWATCHED = frozenset({"events", "events.events.k8s.io"})
"""Kept out of the cache: many, and nobody reconciles on them."""


def key_of(obj: Obj) -> Key:
    """(namespace, name) of an object."""
    meta = obj["metadata"]
    return meta.get("namespace", ""), meta["name"]


def labels_of(obj: Obj) -> dict[str, str]:
    """Labels, never None."""
    return obj["metadata"].get("labels") or {}


def controller_of(obj: Obj) -> Obj | None:
    """The controlling owner reference."""
    for ref in obj["metadata"].get("ownerReferences") or ():
        if ref.get("controller"):
            return dict(ref)
    return None


class Cache:
    """Objects and their indexes: by owner uid, by uid, pods by label and by node."""

    def __init__(self) -> None:
        self._objects: dict[str, dict[Key, Obj]] = {}
        self._in_namespace: dict[Key, set[str]] = {}
        self._owned: dict[str, set[Place]] = {}
        self._places: dict[str, Place] = {}
        self._pods_by_label: dict[tuple[str, str, str], set[str]] = {}
        self._pods_by_node: dict[str, set[Key]] = {}
        self._orphans: dict[Key, set[str]] = {}
        self._services: dict[tuple[str, str, str], set[str]] = {}

    def apply(self, change: Change) -> None:
        """Take over one change."""
        resource = change.resource
        if resource in UNWATCHED:
            return
        key = key_of(change.object)
        table = self._objects.setdefault(resource, {})
        old = table.pop(key, None)
        if old is not None:
            self._unindex(resource, key, old)
        if change.type != "DELETED":
            table[key] = change.object
            self._index(resource, key, change.object)

    def _index(self, resource: str, key: Key, obj: Obj) -> None:
        meta = obj["metadata"]
        place = (resource, *key)
        self._in_namespace.setdefault((resource, key[0]), set()).add(key[1])
        self._places[meta.get("uid", "")] = place
        for ref in meta.get("ownerReferences") or ():
            self._owned.setdefault(ref["uid"], set()).add(place)
        if resource == "pods":
            for pair in (meta.get("labels") or {}).items():
                self._pods_by_label.setdefault((key[0], *pair), set()).add(key[1])
            self._pods_by_node.setdefault(obj["spec"].get("nodeName", ""), set()).add(key)
        elif resource == "services" and (pair := _first_pair(obj)):
            self._services.setdefault((key[0], *pair), set()).add(key[1])
        if resource in ADOPTABLE and controller_of(obj) is None:
            self._orphans.setdefault((resource, key[0]), set()).add(key[1])

    def _unindex(self, resource: str, key: Key, obj: Obj) -> None:
        meta = obj["metadata"]
        place = (resource, *key)
        _drop(self._in_namespace, (resource, key[0]), key[1])
        if self._places.get(meta.get("uid", "")) == place:
            del self._places[meta.get("uid", "")]
        for ref in meta.get("ownerReferences") or ():
            _drop(self._owned, ref["uid"], place)
        if resource == "pods":
            for pair in (meta.get("labels") or {}).items():
                _drop(self._pods_by_label, (key[0], *pair), key[1])
            _drop(self._pods_by_node, obj["spec"].get("nodeName", ""), key)
        elif resource == "services" and (pair := _first_pair(obj)):
            _drop(self._services, (key[0], *pair), key[1])
        _drop(self._orphans, (resource, key[0]), key[1])

    def get(self, resource: str, namespace: str, name: str) -> Obj | None:
        """One object, or None."""
        return self._objects.get(resource, {}).get((namespace, name))

    def by_uid(self, uid: str) -> tuple[str, Obj] | None:
        """Resource and object of a uid."""
        place = self._places.get(uid)
        if place is None:
            return None
        return place[0], self._objects[place[0]][place[1:]]

    def resources(self) -> Names:
        """Names of all resources that have objects."""
        return sorted(name for name, table in self._objects.items() if table)

    def list(self, resource: str, namespace: str = "") -> Objs:
        """Objects of a resource, of one namespace or of all."""
        table = self._objects.get(resource, {})
        if namespace:
            return [table[namespace, name] for name in sorted(self._in_namespace.get((resource, namespace), ()))]
        return [table[key] for key in sorted(table)]

    def values(self, resource: str) -> Iterable[Obj]:
        """All objects of a resource in no useful order: for sums and counts only."""
        return self._objects.get(resource, {}).values()

    def count(self, resource: str, namespace: str) -> int:
        """How many objects of a resource a namespace has."""
        return len(self._in_namespace.get((resource, namespace), ()))

    def owned(self, uid: str, resource: str = "") -> Objs:
        """Objects with an owner reference to the uid."""
        places = sorted(p for p in self._owned.get(uid, ()) if not resource or p[0] == resource)
        return [self._objects[p[0]][p[1:]] for p in places]

    def owned_places(self, uid: str) -> Places:
        """Where the objects with an owner reference to the uid are."""
        return sorted(self._owned.get(uid, ()))

    def controlled(self, owner: Obj, resource: str) -> Objs:
        """Objects whose controlling owner is the given object."""
        uid = owner["metadata"]["uid"]
        found = self.owned(uid, resource)
        return [obj for obj in found if (controller_of(obj) or {}).get("uid") == uid]

    def orphans(self, resource: str, namespace: str) -> Objs:
        """Objects of an adoptable resource that no controller owns."""
        table = self._objects.get(resource, {})
        return [table[namespace, name] for name in sorted(self._orphans.get((resource, namespace), ()))]

    def services_selecting(self, namespace: str, labels: Mapping[str, str]) -> Objs:
        """Services whose selector the labels satisfy."""
        names = {name for pair in labels.items() for name in self._services.get((namespace, *pair), ())}
        table = self._objects.get("services", {})
        found = [table[namespace, name] for name in sorted(names)]
        return [service for service in found if pairs_match(service["spec"]["selector"], labels)]

    def pods_on(self, node: str) -> Objs:
        """Pods bound to a node (`""`: pods not bound yet)."""
        table = self._objects.get("pods", {})
        return [table[key] for key in sorted(self._pods_by_node.get(node, ()))]

    def pods_matching(self, namespace: str, selector: Obj) -> Objs:
        """Pods of a namespace that a LabelSelector matches."""
        found = self._candidates(namespace, exact_pairs(selector))
        return [pod for pod in found if matches(selector, labels_of(pod))]

    def pods_with(self, namespace: str, wanted: Mapping[str, str]) -> Objs:
        """Pods of a namespace with all the given labels."""
        return [pod for pod in self._candidates(namespace, wanted.items()) if pairs_match(wanted, labels_of(pod))]

    def _candidates(self, namespace: str, pairs: Iterable[tuple[str, Any]]) -> Iterator[Obj]:
        names: set[str] | None = None
        for pair in pairs:
            found = self._pods_by_label.get((namespace, *pair), set())
            if names is None or len(found) < len(names):
                names = found
        if names is None:
            names = self._in_namespace.get(("pods", namespace), set())
        table = self._objects.get("pods", {})
        return (table[namespace, name] for name in sorted(names))


def _first_pair(service: Obj) -> tuple[str, str] | None:
    return min((service["spec"].get("selector") or {}).items(), default=None)


def _drop(index: dict[Any, set[Any]], key: Any, value: Any) -> None:
    found = index.get(key)
    if found is not None:
        found.discard(value)
        if not found:
            del index[key]
