"""Time at the door: wire now is wall now, what was served comes back unchanged."""

from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from itbench.core.clock import EPOCH, from_unix, rfc3339, unix
from itbench.kube.api.times import DoorClock

MAPS = "/api/v1/namespaces/default/configmaps"
DAY = 86_400


class Shifting:
    """A pacer whose wire is ahead by `shift` seconds."""

    def __init__(self, shift: float) -> None:
        self.shift = shift

    def now(self) -> float:
        return 0.0

    def to_wire(self, world: float) -> float:
        return unix(world) + self.shift

    def from_wire(self, wire: float) -> float:
        return from_unix(wire) - self.shift


seconds = st.integers(min_value=-10 * DAY, max_value=1000 * DAY)
shifts = st.integers(min_value=-1000 * DAY, max_value=1000 * DAY)


@given(st.lists(seconds, min_size=1, max_size=4), st.lists(shifts, min_size=1, max_size=4), st.booleans())
def test_what_was_served_once_comes_back_as_it_is_stored(moments: list[int], offsets: list[int], micro: bool) -> None:
    """However often the offset changed since, a time sent back as served is the stored one."""
    stored = {"times": [rfc3339(m, micro=micro) for m in moments]}
    pacer: Any = Shifting(offsets[0])
    clock = DoorClock(pacer)
    served = orjson.loads(clock.served(orjson.dumps(stored)))
    for offset in offsets[1:]:
        pacer.shift = offset
        clock.served(b"{}")
    assert clock.received(served, stored)["times"][0] in stored["times"]
    if len(set(offsets)) == 1:
        assert clock.received(served, stored) == stored


@given(seconds, shifts)
def test_new_times_are_translated_back(moment: int, offset: int) -> None:
    """A time that nobody served is world time at its wire time."""
    pacer: Any = Shifting(offset)
    clock = DoorClock(pacer)
    wire = orjson.loads(clock.served(orjson.dumps({"at": rfc3339(moment)})))
    assert clock.received(wire, {}) == {"at": rfc3339(moment)}
    assert clock.world(wire["at"]) == moment


@given(st.text())
def test_nothing_else_is_touched(text: str) -> None:
    """Strings that are no RFC 3339 time go through both ways."""
    clock = DoorClock(Shifting(DAY))  # type: ignore[arg-type]
    body = {"a": text, "b": [text], text: 1}
    assert orjson.loads(clock.served(orjson.dumps(body))) == body
    assert clock.received(body, body) == body


def test_without_an_offset_bytes_stay_the_same_object() -> None:
    """No copy and no scan when the wire shows the world's own calendar."""
    body = b'{"at":"2026-01-12T08:00:00Z"}'
    assert DoorClock(Shifting(0)).served(body) is body  # type: ignore[arg-type]


async def test_a_client_sees_wall_times_and_stores_world_times(make_site: Any) -> None:
    """creationTimestamp is served in wall time; an annotation with a wall time is stored in world time; reads agree."""
    site = await make_site(offset_s=100 * DAY)
    made = await site.http("POST", MAPS, {"metadata": {"name": "a", "annotations": {"at": "2026-05-01T00:00:00Z"}}})
    assert made.json["metadata"]["creationTimestamp"] == rfc3339(100 * DAY)
    stored = site.plane.store.get("configmaps", "default", "a").object
    assert stored["metadata"]["creationTimestamp"] == EPOCH.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert stored["metadata"]["annotations"]["at"] == "2026-01-21T00:00:00Z"
    before = site.plane.revision
    again = await site.http("PUT", f"{MAPS}/a", made.json)
    assert again.json == made.json
    assert site.plane.revision == before


async def test_lists_and_watches_are_translated_too(make_site: Any) -> None:
    """All bytes of objects that leave the door carry wall times."""
    site = await make_site(offset_s=100 * DAY)
    await site.http("POST", MAPS, {"metadata": {"name": "a"}})
    assert b"2026-01-12" not in (await site.http("GET", MAPS)).body
    watch = await site.http("GET", f"{MAPS}?watch=1&timeoutSeconds=1")
    assert watch.body.count(b"2026-04-22") > 0
    assert b"2026-01-12" not in watch.body
    assert b"2026-01-12" not in (await site.http("GET", f"{MAPS}/a", headers={"Accept": "application/yaml"})).body


async def test_steps_are_paid_for_resources_only(site: Any) -> None:
    """Discovery, OpenAPI, version and health are free; each request for resources costs one step."""
    for path in ("/api", "/apis", "/apis/apps/v1", "/version", "/healthz", "/openapi/v3"):
        await site.http("GET", path)
    assert site.pacer.steps == 0
    await site.http("GET", MAPS)
    assert site.pacer.steps == 1


class Stepping(Shifting):
    """A pacer of a stepped clock: a client's time close to `wall` means world now, which is second 1000."""

    wall = 0.0

    def now(self) -> float:
        return 1000.0

    def from_wire(self, wire: float) -> float:
        return self.now() if abs(wire - self.wall) <= 5.0 else super().from_wire(wire)


@given(st.lists(st.integers(0, 999), min_size=1, max_size=4), st.lists(st.integers(0, 2000), max_size=8))
def test_a_clients_now_is_now_whatever_old_times_and_shifts_it_resembles(
    moments: list[int], offsets: list[int]
) -> None:
    """`rollout restart` stamps the same world second however often the object was served before."""
    pacer: Any = Stepping(0)
    clock = DoorClock(pacer)
    pacer.wall = unix(moments[0]) + 500
    for offset in [*offsets, 500]:  # under a shift of 500 the client's now is exactly what moments[0] was served as
        pacer.shift = offset
        clock.served(b"{}")
    stored = {"created": rfc3339(moments[0]), "more": [rfc3339(moment) for moment in moments]}
    sent = {"restartedAt": rfc3339(moments[0] + 500)}
    assert clock.received(sent, stored) == {"restartedAt": rfc3339(1000)}
    assert clock.received({"created": rfc3339(moments[0] + 500)}, stored) == {"created": rfc3339(moments[0])}
