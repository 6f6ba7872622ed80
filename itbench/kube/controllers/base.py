"""What a controller is, and what it is given while it reconciles. Every module of this package builds on it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from itbench.core.clock import parse_rfc3339, rfc3339
from itbench.core.ids import ALPHABET, digest
from itbench.kube.client import Change, Client, Obj, Objs
from itbench.kube.controllers.cache import Cache, Key
from itbench.kube.controllers.selectors import matches, selector_of
from itbench.kube.events import Recorder

MetricsSource = Callable[[str], Objs | None]
"""Namespace -> metrics.k8s.io PodMetrics objects (None: no such API); what the horizontal autoscaler asks."""


@dataclass(slots=True)
class Context:
    """One reconciliation: the client to write with, the cache to read from, the time, and a way to come back later."""

    client: Client
    cache: Cache
    now: float
    recorder: Recorder
    state: dict[str, Any]
    """The controller's own memory: plain data, saved with the control plane."""
    requeue: Callable[[Key, float], None]
    """Reconcile the key again at a world second."""

    def stamp(self) -> str:
        """Now as objects carry it."""
        return rfc3339(self.now)

    def event(self, obj: Obj, reason: str, message: str, kind: str = "Normal") -> None:
        """Record an event about an object."""
        self.recorder.event(self.now, obj, kind, reason, message)


KeysOf = Callable[[Change, Cache], Iterable[Key]]
Reconcile = Callable[[Context, str, str], None]


@dataclass(frozen=True, slots=True)
class Controller:
    """A controller as a table row.

    Args:
        name: key in queue and state; also the event source unless `component` is given.
        watches: resource -> which keys a change of it concerns (`"*"`: every resource).
        reconcile: makes the world right for one key (context, namespace, name); called again on any error.
        component: event source component.
        queueing: its keys are items of a queue of its own, so that one key may come up any number of times at one second.
    """

    name: str
    watches: Mapping[str, KeysOf]
    reconcile: Reconcile
    component: str = ""
    queueing: bool = False


def own_key(change: Change, cache: Cache) -> Iterable[Key]:
    """The changed object itself."""
    meta = change.object["metadata"]
    return [(meta.get("namespace", ""), meta["name"])]


def owner_key(kind: str) -> KeysOf:
    """The controlling owner of a kind, before and after the change."""

    def keys(change: Change, cache: Cache) -> Iterable[Key]:
        found: dict[Key, None] = {}
        for obj in (change.previous, change.object):
            for ref in (obj or {}).get("metadata", {}).get("ownerReferences") or ():
                if ref.get("controller") and ref["kind"] == kind:
                    found[change.object["metadata"].get("namespace", ""), ref["name"]] = None
        return found

    return keys


def controls(kind: str, resource: str) -> Callable[[Change, Cache], list[Key]]:
    """For a pod change: its controller of that kind, before and after; for an orphan every owner whose selector matches."""
    owner = owner_key(kind)

    def keys(change: Change, cache: Cache) -> list[Key]:
        found = list(owner(change, cache))
        if change.type == "DELETED" or any(r.get("controller") for r in _owners(change.object)):
            return found
        labels = change.object["metadata"].get("labels") or {}
        for candidate in cache.list(resource, change.object["metadata"].get("namespace", "")):
            if matches(selector_of(candidate), labels):
                found.append((candidate["metadata"]["namespace"], candidate["metadata"]["name"]))
        return found

    return keys


def _owners(obj: Obj) -> Objs:
    return obj["metadata"].get("ownerReferences") or []


def owner_reference(owner: Obj) -> Obj:
    """A controlling, blocking owner reference."""
    meta = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def stable_hash(*parts: object) -> str:
    """A 32-bit hash as real controllers write it: decimal digits mapped to the alphabet of names, so only `4-9bcdf` occur."""
    number = int.from_bytes(digest(*parts)[:4], "big")
    return "".join(ALPHABET[ord(digit) % len(ALPHABET)] for digit in str(number))


def seconds(text: str | None, default: float = 0.0) -> float:
    """World seconds of an object's timestamp."""
    return parse_rfc3339(text) if text else default


def age_order(obj: Obj) -> tuple[str, int, str]:
    """Oldest first; within a second by revision of creation as far as it is known, then by name."""
    meta = obj["metadata"]
    return meta.get("creationTimestamp", ""), 0, meta["name"]


def is_deleting(obj: Obj) -> bool:
    """Marked for deletion."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def with_meta(obj: Obj, **changes: Any) -> Obj:
    """A copy of an object with some metadata fields replaced (None removes)."""
    meta = {**obj["metadata"], **changes}
    return {**obj, "metadata": {k: v for k, v in meta.items() if v is not None}}


def put_status(context: Context, resource: str, obj: Obj, status: Obj) -> bool:
    """Write a status when it differs; says whether it did."""
    if (obj.get("status") or {}) == status:
        return False
    context.client.update(resource, {**obj, "status": status}, subresource="status")
    return True


def percent(value: Any, total: int, *, up: bool) -> int:
    """An IntOrString of `total`: `25%` rounded up or down, numbers as they are."""
    if isinstance(value, str) and value.endswith("%"):
        scaled = int(value[:-1]) * total
        return -(-scaled // 100) if up else scaled // 100
    return int(value)


def whole(text: object, default: int = 0) -> int:
    """The whole number in an annotation; people write anything there, so nonsense is the default."""
    try:
        return int(str(text))
    except ValueError:
        return default
