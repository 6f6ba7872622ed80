"""Watches: where they begin, what they say, how they end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson

MAPS = "/api/v1/namespaces/default/configmaps"


@asynccontextmanager
async def watching(site: Any, query: str, path: str = MAPS, **headers: str) -> AsyncIterator[Any]:
    """An open watch; calling it gives the next event."""
    sent = {"Authorization": f"Bearer {site.token('admin')}", **headers}
    async with site.session.get(f"{site.server.url}{path}?watch=true&{query}", headers=sent) as response:
        assert response.status == 200

        async def take() -> dict[str, Any]:
            line = await asyncio.wait_for(response.content.readline(), 5)
            event: dict[str, Any] = orjson.loads(line) if line else {"type": "END"}
            return event

        yield take


def _map(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}, "data": {}}


async def test_a_watch_without_revision_begins_with_the_state(site: Any) -> None:
    """Synthetic ADDED events, then changes as they happen."""
    await site.http("POST", MAPS, _map("a"))
    async with watching(site, "fieldSelector=metadata.name%3Da") as take:
        assert (await take())["object"]["metadata"]["name"] == "a"
        await site.http("PUT", f"{MAPS}/a", {**_map("a"), "data": {"x": "y"}})
        assert (await take())["type"] == "MODIFIED"
        await site.http("DELETE", f"{MAPS}/a")
        assert (await take())["type"] == "DELETED"


async def test_a_watch_goes_on_from_a_revision(site: Any) -> None:
    """Only what happened after it is told; the DELETED event has a revision of its own."""
    await site.http("POST", MAPS, _map("a"))
    start = (await site.http("GET", MAPS)).json["metadata"]["resourceVersion"]
    await site.http("POST", MAPS, _map("b"))
    await site.http("DELETE", f"{MAPS}/b")
    async with watching(site, f"resourceVersion={start}") as take:
        added, deleted = await take(), await take()
        assert [added["type"], deleted["type"]] == ["ADDED", "DELETED"]
        assert int(deleted["object"]["metadata"]["resourceVersion"]) > int(
            added["object"]["metadata"]["resourceVersion"]
        )


async def test_selectors_turn_changes_into_coming_and_going(site: Any) -> None:
    """An object that begins to match is ADDED, one that ceases is DELETED, others are not told."""
    await site.http("POST", MAPS, _map("a"))
    start = (await site.http("GET", MAPS)).json["metadata"]["resourceVersion"]
    for labels in ({"on": "1"}, {"on": "1", "x": "y"}, {}):
        await site.http("PUT", f"{MAPS}/a", _map("a", **labels))
    async with watching(site, f"resourceVersion={start}&labelSelector=on%3D1") as take:
        assert [(await take())["type"] for _ in range(3)] == ["ADDED", "MODIFIED", "DELETED"]


async def test_watch_list_marks_the_end_of_the_state(site: Any) -> None:
    """sendInitialEvents: the state, then a bookmark with the annotation that clients wait for."""
    query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=0"
    async with watching(site, query) as take:
        assert (await take())["type"] == "ADDED"
        mark = await take()
        assert mark["type"] == "BOOKMARK"
        assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert mark["object"]["kind"] == "ConfigMap"


async def test_a_watch_from_too_long_ago_is_told_so(site: Any) -> None:
    """A revision before the log is an ERROR event with a 410 Status."""
    site.plane.store._log[:] = site.plane.store._log[-1:]
    async with watching(site, "resourceVersion=1") as take:
        event = await take()
        assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
        assert event["object"]["message"].startswith("too old resource version: 1 (")


async def test_a_watch_ends_quietly_at_its_timeout_in_world_time(site: Any) -> None:
    """When world time passes timeoutSeconds the stream ends without an error."""
    start = site.plane.revision
    async with watching(site, f"timeoutSeconds=30&resourceVersion={start}") as take:
        while not site.pacer.waits:
            await asyncio.sleep(0.01)
        site.plane.run(site.plane.now + 31)
        assert (await take())["type"] == "END"
    assert site.pacer.waits[0] == 30.0


async def test_table_watches_send_columns_once(site: Any) -> None:
    """`kubectl get -w`: each event is a one-row Table, column definitions only in the first."""
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
    await site.http("POST", MAPS, _map("a"))
    async with watching(site, "", Accept=accept) as take:
        first, second = await take(), await take()
        assert first["object"]["columnDefinitions"]
        assert not second["object"]["columnDefinitions"]
        assert len(second["object"]["rows"]) == 1


async def test_a_watch_of_one_object_watches_it_alone(site: Any) -> None:
    """watch=true on the path of an object is a watch by name."""
    await site.http("POST", MAPS, _map("a"))
    await site.http("POST", MAPS, _map("b"))
    async with watching(site, "timeoutSeconds=1", path=f"{MAPS}/b") as take:
        assert (await take())["object"]["metadata"]["name"] == "b"


async def test_bad_watches_are_refused(site: Any) -> None:
    """A revision or timeout that is no number is an error (500 and 400, as on a real server) before the stream begins."""
    assert (await site.http("GET", f"{MAPS}?watch=1&resourceVersion=x")).status == 500
    assert (await site.http("GET", f"{MAPS}?watch=1&timeoutSeconds=x")).status == 400


async def test_an_idle_watch_pushes_a_stepped_clock_only_so_far(site: Any) -> None:
    """A client that waits in vain costs the world minutes, not hours."""

    async def push(until: float = 0.0) -> None:
        await asyncio.sleep(0.001)
        site.plane.run(site.plane.now + 100.0)

    site.pacer.wait = push
    start = site.plane.now
    async with watching(site, f"resourceVersion={site.plane.revision}&timeoutSeconds=86400&labelSelector=no%3Done"):
        await asyncio.sleep(0.5)
    assert 900 < site.plane.now - start < 1300
