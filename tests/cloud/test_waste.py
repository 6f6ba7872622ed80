"""The plan of an estate: the reference repair, what changed, who is served in the hidden future, CloudTrail's memory."""

import json

from itbench.cloud.estate import Estate, drawn
from itbench.cloud.trail import Event, lookup, world_day
from itbench.cloud.waste import changes, history, plan, reference, replay
from itbench.core.clock import EPOCH, unix

NOW = world_day("2026-03-31")
ESTATE = drawn(
    Estate.model_validate(
        {
            "schema": "itbench/estate/v1",
            "id": "t",
            "about": "t",
            "volumes": [
                {"name": "old", "size": 100, "type": "gp2", "age": "300d", "detached": "60d", "role": "waste"},
                {"name": "saved", "size": 50, "age": "300d", "detached": "60d", "role": "waste"},
                {"name": "scratch", "size": 10, "age": "300d", "detached": "60d", "role": "waste", "snapshot": False},
                {"name": "later", "size": 10, "age": "300d", "needed_at": 9},
                {"name": "twin-only", "size": 10, "in": ["twin"]},
            ],
        }
    ),
    seed=0,
)
NAMES = {volume.name: f"vol-{volume.name}" for volume in ESTATE.volumes}
PLAN = plan(ESTATE, NAMES, NOW)


def inventory(*gone, snapshots=()):
    volumes = [
        {"VolumeId": NAMES[v.name], "Size": v.size, "State": "available", "Region": "us-east-1", "Tags": []}
        for v in ESTATE.volumes
        if v.name not in gone
    ]
    made = [
        {
            "SnapshotId": f"snap-{name}",
            "VolumeId": NAMES[name],
            "State": "completed",
            "StartTime": start,
            "VolumeSize": 1,
        }
        for name, start in snapshots
    ]
    return {"Volumes": volumes, "Snapshots": made}


def test_entries_of_other_variants_are_left_out():
    assert "twin-only" not in NAMES


def test_the_reference_saves_only_what_is_neither_scratch_nor_saved_since_it_stands_still():
    late, early = "2026-02-15T00:00:00Z", "2026-01-01T00:00:00Z"
    best = reference(inventory(snapshots=[("saved", late), ("old", early)]), PLAN)
    assert [volume["VolumeId"] for volume in best["Volumes"]] == ["vol-later"]
    assert [item["SnapshotId"] for item in best["Snapshots"]] == ["snap-saved", "snap-old", "snap-of-vol-old"]


def test_changes_tell_what_is_gone_new_or_different():
    after = inventory("old", snapshots=[("old", "2026-03-31T10:00:00Z")])
    after["Volumes"][0]["Tags"] = [{"Key": "a", "Value": "b"}]
    found = {(item["id"], item["how"]) for item in changes(inventory(), after)}
    assert found == {("vol-old", "gone"), ("vol-saved", "changed"), ("snap-old", "new")}
    assert list(changes(after, after)) == []


def test_the_hidden_future_misses_what_was_deleted():
    assert replay(inventory(), PLAN) == [{"at_h": 9.0, "volume": "vol-later", "served": True}]
    assert replay(inventory("later"), PLAN) == [{"at_h": 9.0, "volume": "vol-later", "served": False}]


def test_cloudtrail_remembers_ninety_days_and_finds_by_resource():
    events = history(ESTATE, NAMES, NOW)
    assert {event.action for event in events} == {"DetachVolume"}
    asked = {"LookupAttributes": [{"AttributeKey": "ResourceName", "AttributeValue": "vol-old"}]}
    (found,) = lookup(json.dumps(asked).encode(), events)["Events"]
    assert (found["EventName"], found["EventTime"]) == ("DetachVolume", unix(NOW - 60 * 86400))


def test_cloudtrail_answers_in_pages_newest_first():
    events = [Event(float(second), "u", "ec2", "RunInstances", f"i-{second}") for second in range(120)]
    seen, token = [], None
    while True:
        page = lookup(json.dumps({"NextToken": token} if token else {}).encode(), events)
        seen += [item["Resources"][0]["ResourceName"] for item in page["Events"]]
        token = page.get("NextToken")
        if token is None:
            break
    assert seen == [f"i-{second}" for second in range(119, -1, -1)]


def test_a_day_begins_for_the_agent_at_nine_of_that_day():
    assert unix(NOW) == EPOCH.replace(month=3, day=31, hour=9).timestamp()
