"""Watches of a real cluster, gathered into the change log of the client protocol; called by `remote` only.

One daemon thread per resource reads a watch and appends to one queue; a lost watch lists again and reports the differences.
"""

import json
import socket
import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from itbench.core.errors import EnvironmentFault
from itbench.kube.client import ApiError, Change, Changes, Obj

if TYPE_CHECKING:
    from itbench.kube.remote import Connection, RemoteClient

_WATCH_S = 300
_PAUSE_S = 1.0
_JOIN_S = 2.0


def _key(obj: Obj) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


class Follower:
    """Everything that happens to some resources, from a first list on.

    Args:
        names: resources, sorted.
    """

    def __init__(self, client: "RemoteClient", http: "Connection", names: tuple[str, ...]) -> None:
        self.names = names
        self._client, self._http = client, http
        self._state: dict[str, dict[tuple[str, str], Obj]] = {name: {} for name in names}
        self._queue: deque[Change] = deque()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._open: set[Any] = set()
        self.revision = 0
        starts = {name: self._list(name) for name in names}
        self._threads = [
            threading.Thread(target=self._follow, args=(name, start), name=f"watch-{name}", daemon=True)
            for name, start in starts.items()
        ]
        for thread in self._threads:
            thread.start()

    def take(self, since: int) -> tuple[Changes, int]:
        """Changes after a revision, in order of arrival, and the highest revision seen."""
        with self._lock:
            found = [change for change in self._queue if change.revision > since]
            self._queue.clear()
            return found, self.revision

    def close(self) -> None:
        """End all watches and their threads. A response may not be closed under its reader, but its socket may be."""
        self._closed.set()
        with self._lock:
            sockets = [getattr(response.connection, "sock", None) for response in self._open]
        for sock in sockets:
            if sock is not None:
                with suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(_JOIN_S)

    def _add(self, kind: Any, name: str, obj: Obj) -> None:
        with self._lock:
            state, key = self._state[name], _key(obj)
            previous = state.pop(key, None) if kind == "DELETED" else state.get(key)
            if kind != "DELETED":
                state[key] = obj
            revision = int(obj["metadata"].get("resourceVersion", 0))
            self.revision = max(self.revision, revision)
            self._queue.append(Change(revision, kind, name, obj, previous))

    def _list(self, name: str) -> str:
        items, revision = self._client.page(name)
        gone = dict(self._state[name])
        for obj in items:
            old = gone.pop(_key(obj), None)
            if old is None:
                self._add("ADDED", name, obj)
            elif old["metadata"].get("resourceVersion") != obj["metadata"].get("resourceVersion"):
                self._add("MODIFIED", name, obj)
        for obj in gone.values():
            meta = {**obj["metadata"], "resourceVersion": revision}
            self._add("DELETED", name, {**obj, "metadata": meta})
        self.revision = max(self.revision, int(revision))
        return revision

    def _follow(self, name: str, revision: str) -> None:
        while not self._closed.is_set():
            try:
                revision = self._watch(name, revision) or self._list(name)
            except (ApiError, EnvironmentFault, OSError, ValueError):
                self._closed.wait(_PAUSE_S)
                revision = ""
            except Exception:  # urllib3 raises its own tree when a read breaks off or the pool is closed
                self._closed.wait(_PAUSE_S)

    def _watch(self, name: str, revision: str) -> str:
        """Read one watch to its end -> the last revision, empty when it has to be listed again."""
        if not revision:
            return ""
        query = {
            "watch": "1",
            "resourceVersion": revision,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_WATCH_S),
        }
        response = self._http.open("GET", self._client.path(name, **query), timeout_s=_WATCH_S + 10)
        with self._lock:
            self._open.add(response)
        try:
            for line in _lines(response):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return ""
                obj = event["object"]
                revision = obj["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    self._add(event["type"], name, obj)
        finally:
            with self._lock:
                self._open.discard(response)
            response.close()
        return revision


def _lines(response: Any) -> Any:
    rest = b""
    for chunk in response.stream(65536, decode_content=True):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line for line in lines if line)
