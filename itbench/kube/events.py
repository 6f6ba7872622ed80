"""Event recorders: what the components of a cluster say about objects, with the correlation real clients apply.

Used by the controllers, by the scheduler (`SeriesRecorder`, the newer API) and by the simulated kubelets. Equal events are
counted up, from the tenth distinct message within ten minutes they are combined, and a source may write only a burst of 25
per object and then one per five minutes. Source: client-go `tools/record` and `tools/events` behaviour, Kubernetes 1.34.
"""

from math import floor
from typing import Any

from itbench.core.clock import rfc3339, unix
from itbench.core.ids import digest
from itbench.kube.client import ApiError, Client, Obj

AGGREGATE_AT = 10
AGGREGATE_WINDOW_S = 600.0
SPAM_BURST = 25.0
SPAM_REFILL_S = 300.0
SERIES_END_S = 360.0
SLOTS, PER_SLOT = 99_991, 10_000
KEPT = 4096
"""Keys remembered per table; the oldest is forgotten first, as in the real cache."""

COMBINED = "(combined from similar events): "


def reference(obj: Obj, field_path: str = "") -> Obj:
    """An ObjectReference to an object, as events and endpoints carry it."""
    meta = obj["metadata"]
    found = {
        "apiVersion": obj.get("apiVersion", ""),
        "kind": obj.get("kind", ""),
        "name": meta.get("name", ""),
        "namespace": meta.get("namespace", ""),
        "resourceVersion": meta.get("resourceVersion", ""),
        "uid": meta.get("uid", ""),
        "fieldPath": field_path,
    }
    return {key: value for key, value in found.items() if value}


def _subject(ref: Obj) -> str:
    return "/".join(ref.get(k, "") for k in ("kind", "namespace", "name", "uid", "apiVersion", "fieldPath"))


def _event_name(ref: Obj, now: float, source: str, serial: int) -> str:
    """Object and hexadecimal nanoseconds; the part below a second belongs to the source, so that no two share a name."""
    slot = int.from_bytes(digest("event", source)[:4], "big") % SLOTS
    return f"{ref.get('name', '')}.{floor(unix(now)) * 10**9 + slot * PER_SLOT + serial % PER_SLOT:x}"


def _remember(table: dict[str, Any], key: str, value: Any) -> None:
    table.pop(key, None)
    table[key] = value
    if len(table) > KEPT:
        del table[next(iter(table))]


class Recorder:
    """Writes core/v1 events of one source.

    Args:
        client: where the events go.
        component: the source component, such as `kubelet` or `deployment-controller`.
        host: the source host; nodes have one, controllers have none.
    """

    def __init__(self, client: Client, component: str, host: str = "") -> None:
        self._client, self._component, self._host = client, component, host
        self._seen: dict[str, list[Any]] = {}
        self._similar: dict[str, list[Any]] = {}
        self._spam: dict[str, list[float]] = {}
        self._serial = 0

    def event(self, now: float, obj: Obj, kind: str, reason: str, message: str, *, field_path: str = "") -> None:
        """Say something about an object.

        Args:
            now: world second.
            obj: the object, or an ObjectReference made by `reference`.
            kind: `Normal` or `Warning`.
            reason: CamelCase reason.
            message: the sentence.
            field_path: part of the object, such as `spec.containers{web}`.
        """
        ref = reference(obj, field_path) if "metadata" in obj else {**obj}
        subject = _subject(ref)
        group = f"{subject}|{kind}|{reason}"
        combined = self._combine(group, message, now)
        key = group if combined else f"{group}|{message}"
        text = COMBINED + message if combined else message
        entry = self._seen.get(key)
        count = 1 + (entry[1] if entry else 0)
        allowed = self._allow(subject, now)
        if entry is not None:
            _remember(self._seen, key, [entry[0], count, entry[2]])
            if allowed and self._recount(ref, entry[0], count, text, now):
                return
        else:
            self._serial += 1
            name = _event_name(ref, now, f"{self._component}/{self._host}", self._serial)
            _remember(self._seen, key, [name, count, now])
        if allowed:
            self._write(ref, self._seen[key], kind, reason, text, now)

    def _combine(self, group: str, message: str, now: float) -> bool:
        last, messages = self._similar.get(group, [now, []])
        if now - last > AGGREGATE_WINDOW_S:
            messages = []
        if message not in messages:
            messages = [*messages, message]
        full = len(messages) >= AGGREGATE_AT
        _remember(self._similar, group, [now, messages[1:] if full else messages])
        return full

    def _allow(self, subject: str, now: float) -> bool:
        tokens, last = self._spam.get(subject, [SPAM_BURST, now])
        tokens = min(SPAM_BURST, tokens + (now - last) / SPAM_REFILL_S)
        allowed = tokens >= 1.0
        _remember(self._spam, subject, [tokens - 1.0 if allowed else tokens, now])
        return allowed

    def _recount(self, ref: Obj, name: str, count: int, message: str, now: float) -> bool:
        patch = {"count": count, "lastTimestamp": rfc3339(now), "message": message}
        try:
            self._client.patch("events", name, ref.get("namespace") or "default", patch, kind="merge")
        except ApiError as error:
            return error.code != 404
        return True

    def _write(self, ref: Obj, entry: list[Any], kind: str, reason: str, message: str, now: float) -> None:
        source = {"component": self._component}
        if self._host:
            source["host"] = self._host
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": entry[0], "namespace": ref.get("namespace") or "default"},
            "involvedObject": ref,
            "reason": reason,
            "message": message,
            "source": source,
            "firstTimestamp": rfc3339(entry[2]),
            "lastTimestamp": rfc3339(now),
            "count": entry[1],
            "type": kind,
            "eventTime": None,
            "reportingComponent": self._component,
            "reportingInstance": self._host,
        }
        _create(self._client, event)

    def save(self) -> dict[str, Any]:
        """State as plain data."""
        return {"seen": self._seen, "similar": self._similar, "spam": self._spam, "serial": self._serial}

    def restore(self, data: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self._seen = {k: list(v) for k, v in data["seen"].items()}
        self._similar = {k: [v[0], list(v[1])] for k, v in data["similar"].items()}
        self._spam = {k: list(v) for k, v in data["spam"].items()}
        self._serial = data["serial"]


class SeriesRecorder:
    """Writes events as the newer events API does (the scheduler): equal ones become a series instead of a count."""

    def __init__(self, client: Client, controller: str, instance: str) -> None:
        self._client, self._controller, self._instance = client, controller, instance
        self._series: dict[str, list[Any]] = {}
        self._serial = 0

    def event(
        self, now: float, obj: Obj, kind: str, reason: str, action: str, message: str, *, related: Obj | None = None
    ) -> None:
        """Say something about an object; repetitions within six minutes only mark the first one as a series."""
        ref = reference(obj)
        # The resource version belongs to the key: after a status write the same sentence is a new event, as on a real cluster.
        version = ref.get("resourceVersion", "")
        key = f"{_subject(ref)}|{version}|{kind}|{reason}|{action}|{related and _subject(reference(related))}"
        entry = self._series.get(key)
        if entry is not None and now - entry[2] <= SERIES_END_S:
            _remember(self._series, key, [entry[0], entry[1] + 1, now])
            if entry[1] == 1:
                self._mark(ref, entry[0], now)
            return
        self._serial += 1
        name = _event_name(ref, now, self._controller, self._serial)
        _remember(self._series, key, [name, 1, now])
        self._write(ref, name, now, {"type": kind, "reason": reason, "action": action, "message": message}, related)

    def _mark(self, ref: Obj, name: str, now: float) -> None:
        series = {"count": 2, "lastObservedTime": rfc3339(now, micro=True)}
        try:
            self._client.patch("events", name, ref.get("namespace") or "default", {"series": series}, kind="merge")
        except ApiError:
            return

    def _write(self, ref: Obj, name: str, now: float, what: Obj, related: Obj | None) -> None:
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": ref.get("namespace") or "default"},
            "involvedObject": ref,
            **what,
            "source": {},
            "firstTimestamp": None,
            "lastTimestamp": None,
            "eventTime": rfc3339(now, micro=True),
            "reportingComponent": self._controller,
            "reportingInstance": self._instance,
        }
        if related is not None:
            event["related"] = reference(related)
        _create(self._client, event)

    def save(self) -> dict[str, Any]:
        """State as plain data."""
        return {"series": self._series, "serial": self._serial}

    def restore(self, data: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self._series = {k: list(v) for k, v in data["series"].items()}
        self._serial = data["serial"]


def _create(client: Client, event: Obj) -> None:
    try:
        client.create("events", event, event["metadata"]["namespace"])
    except ApiError:
        # Real recorders drop what the server refuses (a namespace that is going away, for one).
        return
