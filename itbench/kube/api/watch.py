"""Watches: newline-delimited events from the store's change log, in all the dialects of clients; called by `server`.

A blocked watch lets the world go on (`Pacer.wait`); it ends quietly at its timeout, which counts in world time (and in wall
time too, for worlds that stand still).
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from aiohttp import web

from itbench.kube import versions
from itbench.kube.api import answers, views
from itbench.kube.api.door import Call, Patience
from itbench.kube.api.rest import deprecation
from itbench.kube.client import ApiError, Obj
from itbench.kube.kinds.check import Check
from itbench.kube.resources import Resource
from itbench.kube.status import bad_request, expired, failure, invalid
from itbench.kube.store import Entry, Expired, Record

DEFAULT_TIMEOUT_S = 3600.0
BOOKMARK_S = 60.0


_MATCH = "resourceVersionMatch"


@dataclass(frozen=True, slots=True)
class Plan:
    """What a watch was asked for.

    Attributes:
        since: revision to start after; None begins with the present state.
        bookmarks: whether BOOKMARK events are wanted; `initial`: WatchList, whose first part ends with a marked bookmark.
    """

    since: int | None
    timeout_s: float
    bookmarks: bool
    initial: bool


def plan_of(call: Call) -> Plan:
    """The plan from the query; raises 400 on a bad one."""
    query = call.query
    text = query.get("resourceVersion", "")
    if text and not text.isdigit():
        # the real server answers 500, too
        raise failure(
            500, "", f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        )
    initial = call.flag("sendInitialEvents")
    _check_match(query)
    since = None if text in ("", "0") or initial else int(text)
    if query.get("sendInitialEvents") == "false" and since is None:
        since = call.door.store.revision
    timeout = query.get("timeoutSeconds", "")
    if timeout and not timeout.isdigit():
        raise bad_request(f'strconv.ParseInt: parsing "{timeout}": invalid syntax')
    return Plan(since, float(timeout or 0) or DEFAULT_TIMEOUT_S, call.flag("allowWatchBookmarks"), initial)


def _check_match(query: Mapping[str, str]) -> None:
    """422: resourceVersionMatch is for watches with initial events only, and of one value."""
    check, match, events = Check(), query.get(_MATCH, ""), "sendInitialEvents" in query
    if events and match != "NotOlderThan":
        check.forbidden(_MATCH, f"sendInitialEvents requires setting {_MATCH} to NotOlderThan")
    if match and not events:
        check.forbidden(_MATCH, f"{_MATCH} is forbidden for watch unless sendInitialEvents is provided")
    if match not in ("", "NotOlderThan"):
        check.unsupported(_MATCH, match, ("NotOlderThan",))
    if query.get("continue"):
        check.forbidden(_MATCH, f"{_MATCH} is forbidden when continue is provided")
    if check:
        raise invalid("ListOptions", "meta.k8s.io", "", check.causes)


class Encoder:
    """Turns log records into the lines of one watch."""

    def __init__(self, call: Call, resource: Resource, test: Callable[[Obj], bool] | None, namespace: str) -> None:
        self._call, self._resource, self._test, self._namespace = call, resource, test, namespace
        self._columns_sent = False

    def _selected(self, entry: Entry | None) -> bool:
        if entry is None or (self._namespace and entry.namespace != self._namespace):
            return False
        return self._test is None or self._test(entry.object)

    def record(self, record: Record) -> bytes:
        """The line of one record, empty when the selectors keep it out: what leaves them is DELETED, what enters ADDED."""
        now, before = self._selected(record.entry), self._selected(record.previous)
        if record.type == "DELETED":
            return self.line("DELETED", record.entry) if now or before else b""
        if now:
            return self.line("MODIFIED" if before else "ADDED", record.entry)
        if before and record.previous is not None:
            meta = {**record.previous.object["metadata"], "resourceVersion": str(record.revision)}
            gone = Entry(record.entry.resource, {**record.previous.object, "metadata": meta}, record.revision)
            return self.line("DELETED", gone)
        return b""

    def state(self) -> Iterator[bytes]:
        """ADDED for everything that is there now."""
        for entry in self._call.door.store.list(self._resource.storage, self._namespace):
            if self._selected(entry):
                yield self.line("ADDED", entry)

    def line(self, kind: str, entry: Entry) -> bytes:
        """One event."""
        form = self._call.form
        if form.kind == "table":
            body = orjson.dumps(views.event_table(self._call, self._resource, entry, columns=not self._columns_sent))
            self._columns_sent = True
        elif form.kind == "partial":
            body = orjson.dumps(answers.partial(versions.to_served(entry.object, self._resource), form.version))
        else:
            body = answers.object_bytes(self._resource, entry)
        return self._call.door.clock.served(b'{"type":"' + kind.encode() + b'","object":' + body + b"}\n")

    def bookmark(self, revision: int, *, initial_end: bool = False) -> bytes:
        """A BOOKMARK at a revision."""
        meta: Obj = {"resourceVersion": str(revision)}
        if initial_end:
            meta["annotations"] = {"k8s.io/initial-events-end": "true"}
        form, resource = self._call.form, self._resource
        obj: Obj = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta}
        if form.kind == "table":
            version = f"meta.k8s.io/{form.version}"
            row = {"cells": [], "object": {"kind": "PartialObjectMetadata", "apiVersion": version, "metadata": meta}}
            obj = {
                "kind": "Table",
                "apiVersion": version,
                "metadata": {"resourceVersion": str(revision)},
                "rows": [row],
            }
            obj["columnDefinitions"] = []
        elif form.kind == "partial":
            obj |= {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{form.version}"}
        return orjson.dumps({"type": "BOOKMARK", "object": obj}) + b"\n"


async def watch(call: Call) -> web.StreamResponse:
    """GET with `watch=true` on a collection or on one object."""
    resource, target, door = call.resource, call.target, call.door
    plan = plan_of(call)
    fields = call.query.get("fieldSelector", "")
    if target.name:
        fields = f"{fields},metadata.name={target.name}".lstrip(",")
    test = door.registry.matcher(resource, call.query.get("labelSelector", ""), fields)
    encoder = Encoder(call, resource, test, target.namespace if resource.namespaced else "")
    _ = call.form  # a form that we do not serve is an error before the stream begins
    response = web.StreamResponse(headers=answers.headers(deprecation(resource)))
    response.content_type = answers.JSON
    response.enable_chunked_encoding()
    await response.prepare(call.request)
    try:
        await _run(call, encoder, plan, response)
        await response.write_eof()
    except ApiError as error:  # objects that cannot be converted to the version asked for
        await response.write(_error(error.status))
        await response.write_eof()
    except (ConnectionResetError, asyncio.CancelledError):
        pass
    return response


async def _run(call: Call, encoder: Encoder, plan: Plan, response: web.StreamResponse) -> None:
    door, storage = call.door, {call.resource.storage}
    start = door.pacer.now()
    end, wall_end = start + plan.timeout_s, time.monotonic() + plan.timeout_s
    revision = await _begin(call, encoder, plan, response)
    marked, patience = start, Patience(door.pacer)
    while True:
        event = door.changed()
        try:
            records = door.store.since(revision, storage)
        except Expired as error:
            await response.write(_error(expired(str(error)).status))
            return
        revision = max(revision, door.store.revision)
        lines = [line for record in records if (line := encoder.record(record))]
        if lines:
            await response.write(b"".join(lines))
            patience.told()
        now = door.pacer.now()
        if now >= end or time.monotonic() >= wall_end or door.closing.is_set():
            return
        if plan.bookmarks and now - marked >= BOOKMARK_S:
            marked = now
            await response.write(encoder.bookmark(revision))
        if door.store.revision == revision:
            await door.wait(end, event, patience)


async def _begin(call: Call, encoder: Encoder, plan: Plan, response: web.StreamResponse) -> int:
    """Send what a watch starts with -> the revision that it goes on from."""
    if plan.since is not None:
        return plan.since
    revision = call.door.store.revision
    lines = list(encoder.state())
    if plan.initial and plan.bookmarks:
        lines.append(encoder.bookmark(revision, initial_end=True))
    if lines:
        await response.write(b"".join(lines))
    return revision


def _error(status: dict[str, Any]) -> bytes:
    return orjson.dumps({"type": "ERROR", "object": status}) + b"\n"
