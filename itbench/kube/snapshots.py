"""States of a control plane to keep, go back to, branch off from and compare.

    before = plane.snapshot()                     # shares all objects with the plane: cheap
    other = ControlPlane.fork(before)             # an independent plane that goes on exactly as this one would have
    plane.restore(before)                         # the same plane, its clients and its server back in that state
    for change in diff(before, plane.snapshot()): # what differs, sorted by resource, namespace and name
        print(change.kind, change.entity, [str(path) for path in change.paths])

`compare` does the same for objects by resource, as evidence holds them. Called by the graders, by tests and by tools around a
plane. A whole estate (clock, kubelets, requests in flight) is saved by `itbench.world.estate`.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from itbench.kube.audit import AuditRecord
from itbench.kube.client import Obj
from itbench.kube.store import Entry, Snapshot

Step = str | int
Path = tuple[Step, ...]
Kind = Literal["added", "removed", "changed", "replaced"]
"""`replaced`: an object of the same name with another uid."""
Key = tuple[str, str]
"""Namespace and name."""

BOOKKEEPING: frozenset[Path] = frozenset({("metadata", "resourceVersion"), ("metadata", "managedFields")})
"""Fields that every write changes; not compared unless asked for."""
_KEYS = ("name", "type", "uid")
"""What tells the elements of a list apart, where all of them have it: containers, conditions, owners."""
_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


class _Absent:
    """No value at all, which is not null."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = _Absent()


@dataclass(frozen=True, slots=True)
class PlaneSnapshot:
    """One state of one control plane. Immutable; `rest` is the state of identifiers, controllers and scheduler as bytes."""

    name: str
    now: float
    store: Snapshot
    audit: tuple[AuditRecord, ...]
    rest: bytes

    @property
    def revision(self) -> int:
        """The store's revision at that moment."""
        return self.store.revision

    def objects(self) -> dict[str, list[Obj]]:
        """Objects by resource, sorted by namespace and name; shared, not to be changed."""
        found = {name: bucket.sorted("") for name, bucket in sorted(self.store.buckets.items())}
        return {name: [entry.object for entry in entries] for name, entries in found.items() if entries}


@dataclass(frozen=True, slots=True)
class PathChange:
    """One value that differs; `ABSENT` on the side where there is none.

    `path` holds field names, indices of lists, and `name=web` for elements of lists that have a key.
    """

    path: Path
    before: Any
    after: Any

    def __str__(self) -> str:
        """`spec.template.spec.containers[name=web].image`."""
        return render(self.path)


@dataclass(frozen=True, slots=True)
class Change:
    """One object that differs. `paths` is empty for `added` and `removed`."""

    resource: str
    namespace: str
    name: str
    kind: Kind
    paths: tuple[PathChange, ...] = ()

    @property
    def entity(self) -> str:
        """`deployments.apps/shop/web`."""
        return "/".join(part for part in (self.resource, self.namespace, self.name) if part)


Changes = list[Change]


def render(path: Path) -> str:
    """A path as people write it: plain names with dots, everything else in brackets."""
    text = ""
    for step in path:
        if isinstance(step, str) and step and _BARE.issuperset(step):
            text += f".{step}"
        else:
            text += f"[{step}]"
    return text.removeprefix(".")


def diff(before: PlaneSnapshot, after: PlaneSnapshot, *, ignore: Collection[Path] = BOOKKEEPING) -> Changes:
    """What differs between two states, of one plane or of two.

    Objects that both share are not looked into, so a comparison costs what changed.

    Args:
        ignore: paths that are not compared, with everything below them.

    Returns:
        One row per object, sorted by resource, namespace and name; paths in the order of their names.
    """
    rows: Changes = []
    for resource in sorted({*before.store.buckets, *after.store.buckets}):
        old, new = _entries(before.store, resource), _entries(after.store, resource)
        for key in sorted({*old, *new}):
            left, right = old.get(key), new.get(key)
            if left is not right:
                row = _change(resource, key, _object(left), _object(right), ignore)
                rows += [row] if row is not None else []
    return rows


def _object(entry: Entry | None) -> Obj | None:
    return None if entry is None else entry.object


def _entries(state: Snapshot, resource: str) -> dict[Key, Entry]:
    bucket = state.buckets.get(resource)
    return {} if bucket is None else {(entry.namespace, entry.name): entry for entry in bucket.sorted("")}


def compare(
    before: Mapping[str, Iterable[Obj]],
    after: Mapping[str, Iterable[Obj]],
    *,
    ignore: Collection[Path] = BOOKKEEPING,
) -> Changes:
    """`diff` of objects by resource (`deployments.apps`), as `PlaneSnapshot.objects` and evidence have them."""
    rows: Changes = []
    for resource in sorted({*before, *after}):
        old, new = _by_key(before.get(resource, ())), _by_key(after.get(resource, ()))
        for key in sorted({*old, *new}):
            row = _change(resource, key, old.get(key), new.get(key), ignore)
            rows += [row] if row is not None else []
    return rows


def _by_key(objects: Iterable[Obj]) -> dict[Key, Obj]:
    return {(obj["metadata"].get("namespace", ""), obj["metadata"]["name"]): obj for obj in objects}


def _change(resource: str, key: Key, old: Obj | None, new: Obj | None, ignore: Collection[Path]) -> Change | None:
    if old is None or new is None:
        return Change(resource, *key, "added" if old is None else "removed")
    paths = tuple(differences(old, new, ignore=ignore))
    same = old["metadata"].get("uid") == new["metadata"].get("uid")
    return Change(resource, *key, "changed" if same else "replaced", paths) if paths else None


def differences(old: Any, new: Any, path: Path = (), *, ignore: Collection[Path] = frozenset()) -> Iterator[PathChange]:
    """The smallest values that differ between two JSON values, in the order of their paths."""
    if old is new or path in ignore:
        return
    left, right = _children(old, new)
    if left is None or right is None:
        if type(old) is not type(new) or old != new:
            yield PathChange(path, old, new)
        return
    for step in sorted({*left, *right}, key=_order):
        yield from differences(left.get(step, ABSENT), right.get(step, ABSENT), (*path, step), ignore=ignore)


def _order(step: Step) -> tuple[bool, int, str]:
    return (False, step, "") if isinstance(step, int) else (True, 0, step)


def _children(old: Any, new: Any) -> tuple[dict[Step, Any] | None, dict[Step, Any] | None]:
    """What lies below two values of the same shape, by the same steps; None where there is nothing to go into."""
    if isinstance(old, dict) and isinstance(new, dict):
        return dict(old), dict(new)
    if not (isinstance(old, list) and isinstance(new, list)):
        return None, None
    for key in _KEYS:
        left, right = _keyed(old, key), _keyed(new, key)
        if left is not None and right is not None and _in_order(left, right):
            return left, right
    return dict(enumerate(old)), dict(enumerate(new))


def _in_order(left: dict[Step, Any], right: dict[Step, Any]) -> bool:
    """Whether what both have stands in the same order; otherwise the order itself is a difference."""
    return [step for step in left if step in right] == [step for step in right if step in left]


def _keyed(rows: list[Any], key: str) -> dict[Step, Any] | None:
    """Elements by a field that all of them have, each another value of it."""
    if not all(isinstance(row, dict) and isinstance(row.get(key), str) for row in rows):
        return None
    found: dict[Step, Any] = {f"{key}={row[key]}": row for row in rows}
    return found if len(found) == len(rows) else None
