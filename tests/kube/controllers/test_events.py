"""Recorders count, combine and throttle as real ones do."""

from fake_kubelet import Obj

from itbench.core.ids import Ids
from itbench.kube.events import Recorder, SeriesRecorder
from itbench.kube.plane import ControlPlane

POD: Obj = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "default", "uid": "u", "resourceVersion": "7"},
}


def written(plane: ControlPlane) -> list[tuple[str, int]]:
    found = plane.client("t").list("events", "default")
    return [(e["message"], e.get("count", 0)) for e in found if e["involvedObject"]["name"] == "p"]


def test_equal_events_are_one_that_counts() -> None:
    plane = ControlPlane(ids=Ids(1))
    recorder = Recorder(plane.client("kubelet"), "kubelet", "n1")
    for now in (0.0, 5.0, 9.0):
        recorder.event(now, POD, "Warning", "BackOff", "Back-off", field_path="spec.containers{c}")
    (event,) = [e for e in plane.client("t").list("events", "default") if e["reason"] == "BackOff"]
    assert event["count"] == 3 and event["source"] == {"component": "kubelet", "host": "n1"}
    assert (event["firstTimestamp"], event["lastTimestamp"]) == ("2026-01-12T08:00:00Z", "2026-01-12T08:00:09Z")
    assert event["involvedObject"]["fieldPath"] == "spec.containers{c}"
    name, _, stamp = event["metadata"]["name"].rpartition(".")
    assert name == "p" and int(stamp, 16) > 10**18


def test_the_tenth_distinct_message_starts_a_combined_event() -> None:
    plane = ControlPlane(ids=Ids(1))
    recorder = Recorder(plane.client("x"), "x")
    for index in range(12):
        recorder.event(float(index), POD, "Warning", "Failed", f"reason {index}")
    found = dict(written(plane))
    assert len(found) == 10
    assert found["(combined from similar events): reason 11"] == 3


def test_a_source_may_write_twenty_five_events_per_object_and_then_one_per_five_minutes() -> None:
    plane = ControlPlane(ids=Ids(1))
    recorder = Recorder(plane.client("x"), "x")
    for index in range(60):
        recorder.event(0.0, POD, "Normal", f"Reason{index}", "text")
    assert len(written(plane)) == 25
    recorder.event(301.0, POD, "Normal", "Later", "text")
    recorder.event(302.0, POD, "Normal", "TooSoon", "text")
    assert len(written(plane)) == 26


def test_an_event_that_somebody_deleted_is_written_anew() -> None:
    plane = ControlPlane(ids=Ids(1))
    client = plane.client("x")
    recorder = Recorder(client, "x")
    recorder.event(0.0, POD, "Normal", "A", "text")
    client.delete("events", client.list("events", "default")[0]["metadata"]["name"], "default")
    recorder.event(1.0, POD, "Normal", "A", "text")
    assert written(plane) == [("text", 2)]


def test_a_recorder_goes_on_after_a_restore_where_it_was() -> None:
    plane = ControlPlane(ids=Ids(1))
    first, second = (Recorder(plane.client("x"), "x") for _ in range(2))
    first.event(0.0, POD, "Normal", "A", "text")
    second.restore(first.save())
    second.event(1.0, POD, "Normal", "A", "text")
    assert written(plane) == [("text", 2)]


def test_series_of_the_newer_api_start_with_the_second_equal_event_of_the_same_version() -> None:
    plane = ControlPlane(ids=Ids(1))
    recorder = SeriesRecorder(plane.client("s"), "default-scheduler", "default-scheduler")
    for now in (0.0, 1.0, 2.0):
        recorder.event(now, POD, "Warning", "FailedScheduling", "Scheduling", "no")
    changed = {**POD, "metadata": {**POD["metadata"], "resourceVersion": "8"}}
    recorder.event(3.0, changed, "Warning", "FailedScheduling", "Scheduling", "no")
    found = [e.get("series", {}).get("count") for e in plane.client("t").list("events", "default")]
    assert found == [2, None]


def test_events_are_forgotten_an_hour_after_they_were_last_written() -> None:
    plane = ControlPlane(ids=Ids(1))
    recorder = Recorder(plane.client("x"), "x")
    plane.run(10.0)
    recorder.event(10.0, POD, "Normal", "A", "text")
    plane.run(100.0)
    recorder.event(100.0, POD, "Normal", "A", "text")
    plane.run(3611.0)
    assert written(plane) == [("text", 2)]
    plane.run(3701.0)
    assert written(plane) == []
