"""What an account has, as plain describe results of all regions in use. Called by the account driver; grading reads it.

Keys: SecurityGroups, PrefixLists (with Entries), NetworkInterfaces, Instances, Volumes, Snapshots, LoadBalancers. Every item has
`Region` besides what AWS answers; times are texts.
"""

import datetime
from typing import Any

from itbench.cloud.client import Clients
from itbench.core.documents.result import Snapshot

KEYS = (
    "SecurityGroups",
    "PrefixLists",
    "NetworkInterfaces",
    "Instances",
    "Volumes",
    "Snapshots",
    "LoadBalancers",
)
_IDS = ("GroupId", "PrefixListId", "NetworkInterfaceId", "InstanceId", "VolumeId", "SnapshotId", "LoadBalancerArn")
IDENTITY = dict(zip(KEYS, _IDS, strict=True))
"""The field of an item that identifies it."""

Inventory = dict[str, list[dict[str, Any]]]


def plain(value: Any) -> Any:
    """Answers of AWS as plain data: times become texts; the client's own random tokens say nothing and are left out."""
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if key != "ClientToken"}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def collect(clients: Clients, regions: tuple[str, ...]) -> Inventory:
    """Describe the account; blocks, so it is run in a thread.

    Args:
        clients: with keys that may read everything.
        regions: where to look.
    """
    found: Inventory = {key: [] for key in KEYS}
    for region in regions:
        for key, items in _region(clients, region).items():
            found[key] += [{**plain(item), "Region": region} for item in items]
    return {key: sorted(items, key=lambda item: str(item[IDENTITY[key]])) for key, items in found.items()}


def _region(clients: Clients, region: str) -> Inventory:
    ec2 = clients.get("ec2", region)

    def every(operation: str, key: str, **params: Any) -> list[dict[str, Any]]:
        pages = ec2.get_paginator(operation).paginate(**params)
        return [item for page in pages for item in page[key]]

    reservations = every("describe_instances", "Reservations")
    lists = [item for item in every("describe_managed_prefix_lists", "PrefixLists") if item.get("OwnerId") != "AWS"]
    for item in lists:
        item["Entries"] = ec2.get_managed_prefix_list_entries(PrefixListId=item["PrefixListId"])["Entries"]
    return {
        "SecurityGroups": every("describe_security_groups", "SecurityGroups"),
        "PrefixLists": lists,
        "NetworkInterfaces": every("describe_network_interfaces", "NetworkInterfaces"),
        "Instances": [instance for reservation in reservations for instance in reservation["Instances"]],
        "Volumes": every("describe_volumes", "Volumes"),
        "Snapshots": every("describe_snapshots", "Snapshots", OwnerIds=["self"]),
        "LoadBalancers": clients.get("elbv2", region).describe_load_balancers()["LoadBalancers"],
    }


def snapshot(t: float, inventory: Inventory) -> Snapshot:
    """The inventory as the evidence of a phase. `metadata.name` lets generic readers name an item."""
    objects = {
        key: [{**item, "metadata": {"name": str(item[IDENTITY[key]])}} for item in items]
        for key, items in inventory.items()
    }
    return Snapshot(t=t, objects=objects)
