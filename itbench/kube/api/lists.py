"""Lists as they were last served: clients that poll read the same objects again and again; called by `rest`.

What is kept holds as long as the store hands out the same list of entries, which it makes anew after every write of that
resource, and as long as the door shifts times by the same number of seconds.
"""

from collections import OrderedDict
from dataclasses import dataclass

from itbench.kube.api import answers
from itbench.kube.api.times import DoorClock
from itbench.kube.client import Obj
from itbench.kube.requests import Entries
from itbench.kube.resources import Resource
from itbench.kube.store import Store

_KEPT = 16
_LARGEST = 4 * 1024 * 1024
"""Lists with more bytes are encoded each time."""


@dataclass(frozen=True, slots=True)
class _Served:
    resource: Resource
    entries: Entries
    shift: int
    items: bytes


class Lists:
    """The lists of one door."""

    def __init__(self, store: Store, clock: DoorClock) -> None:
        self._store, self._clock = store, clock
        self._known: OrderedDict[tuple[str, str, str], _Served] = OrderedDict()

    def body(self, resource: Resource, namespace: str, entries: Entries, meta: Obj) -> bytes:
        """A list of stored objects as JSON, times translated.

        Args:
            entries: what the list shows, of one namespace or of all (empty).
        """
        if entries is not self._store.list(resource.storage, namespace):
            return self._clock.served(answers.list_around(resource, answers.list_items(resource, entries), meta))
        key, shift = (resource.storage, resource.version, namespace), self._clock.serve()
        known = self._known.get(key)
        if known is None or known.shift != shift or known.resource is not resource or known.entries is not entries:
            items = self._clock.served(answers.list_items(resource, entries))
            known = _Served(resource, entries, shift, items)
            self._keep(key, known)
        return answers.list_around(resource, known.items, meta)

    def _keep(self, key: tuple[str, str, str], made: _Served) -> None:
        self._known.pop(key, None)
        if len(made.items) <= _LARGEST:
            self._known[key] = made
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)
