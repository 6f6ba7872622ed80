"""What a perfect agent would do to an estate, and what became of its resources. Pure; called by the account driver.

The plan comes from the estate file, never from anything that an agent can change.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from itbench.cloud.estate import Estate
from itbench.cloud.inventory import IDENTITY, Inventory
from itbench.cloud.trail import DAYS, Event
from itbench.core.clock import rfc3339
from itbench.core.ids import digest

Plan = dict[str, dict[str, Any]]


def plan(estate: Estate, names: Mapping[str, str], now: float) -> Plan:
    """For each volume of the estate: name, role, whether it must be saved, since when its data stand still, when it is needed.

    Args:
        estate: drawn.
        names: identifiers by name.
        now: world second of hand-over.
    """
    return {
        names[volume.name]: {
            "name": volume.name,
            "role": volume.role,
            "snapshot": volume.snapshot,
            "still_since": rfc3339(now - (volume.age if volume.detached is None else volume.detached)),
            "needed_at_h": volume.needed_at,
            "why": volume.why,
        }
        for volume in estate.volumes
    }


def history(estate: Estate, names: Mapping[str, str], now: float) -> list[Event]:
    """CloudTrail's memory of the estate: volumes made, attached and detached."""
    events: list[Event] = []
    attached = {volume: instance for instance in estate.instances for volume in instance.volumes}
    for volume in estate.volumes:
        identity = names[volume.name]
        events.append(Event(now - volume.age, "terraform", "ec2", "CreateVolume", identity))
        if volume.name in attached:
            events.append(Event(now - volume.age + 60, "terraform", "ec2", "AttachVolume", identity))
        if volume.detached is not None:
            asked = {"volumeId": identity, "device": "/dev/sdf"}
            if volume.detached_from:
                asked["instanceId"] = "i-" + digest("gone", volume.detached_from, volume.name).hex()[:17]
            details = json.dumps(asked)
            events.append(Event(now - volume.age + 60, "terraform", "ec2", "AttachVolume", identity))
            events.append(Event(now - volume.detached, "oncall", "ec2", "DetachVolume", identity, details))
    for snapshot in estate.snapshots:
        events.append(Event(now - snapshot.age, "backup-service", "ec2", "CreateSnapshot", names[snapshot.volume]))
    return [event for event in events if now - event.t <= DAYS * 86400]


def saved(inventory: Inventory, volume: str, still_since: str) -> bool:
    """Whether a complete snapshot has the volume's last data."""
    return any(
        snapshot["VolumeId"] == volume and snapshot["State"] == "completed" and snapshot["StartTime"] >= still_since
        for snapshot in inventory.get("Snapshots", ())
    )


def reference(inventory: Inventory, plan: Plan) -> Inventory:
    """The inventory after the reference repair: waste gone, saved first where it must be and is not yet."""
    waste = {identity for identity, entry in plan.items() if entry["role"] == "waste"}
    added = [
        {
            "SnapshotId": f"snap-of-{item['VolumeId']}",
            "VolumeSize": item["Size"],
            "Region": item["Region"],
            "StartTime": "",
        }
        for item in inventory["Volumes"]
        if item["VolumeId"] in waste
        and plan[item["VolumeId"]]["snapshot"]
        and not saved(inventory, item["VolumeId"], plan[item["VolumeId"]]["still_since"])
    ]
    left = [item for item in inventory["Volumes"] if item["VolumeId"] not in waste]
    return {**inventory, "Volumes": left, "Snapshots": [*inventory["Snapshots"], *added]}


_STATUS = (
    "State",
    "Size",
    "VolumeType",
    "Iops",
    "Throughput",
    "Attachments",
    "Tags",
    "InstanceType",
    "Groups",
    "VolumeSize",
)


def _digest(item: Mapping[str, Any]) -> dict[str, Any]:
    found = {key: item[key] for key in _STATUS if key in item}
    found["Tags"] = sorted((tag["Key"], tag["Value"]) for tag in item.get("Tags", ()))
    found["Attachments"] = sorted(one.get("InstanceId", "") for one in item.get("Attachments", ()))
    found["Groups"] = sorted(group["GroupId"] for group in item.get("Groups", ()))
    return found


def changes(before: Inventory, after: Inventory) -> Iterator[dict[str, str]]:
    """What differs between two inventories: `kind`, `id`, `how` (`gone`, `changed`, `new`)."""
    for kind, identity in IDENTITY.items():
        old = {str(item[identity]): _digest(item) for item in before.get(kind, ())}
        new = {str(item[identity]): _digest(item) for item in after.get(kind, ())}
        for key in sorted(old.keys() | new.keys()):
            how = "gone" if key not in new else "new" if key not in old else "changed" if old[key] != new[key] else ""
            if how:
                yield {"kind": kind, "id": key, "how": how}


def replay(inventory: Inventory, plan: Plan) -> list[dict[str, Any]]:
    """The hidden future: whoever needs a volume at some hour finds it free, or does not."""
    free = {item["VolumeId"] for item in inventory["Volumes"] if item["State"] == "available"}
    wanted = sorted(
        (entry["needed_at_h"], identity) for identity, entry in plan.items() if entry["needed_at_h"] is not None
    )
    return [{"at_h": hour, "volume": identity, "served": identity in free} for hour, identity in wanted]
