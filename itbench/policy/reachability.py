"""Who can reach what through security groups: pure, over an inventory of describe results. Grades CISO rows on networks.

The inventory has the shapes of EC2: `SecurityGroups` (with `IpPermissions`), `PrefixLists` (`PrefixListId`, `Entries` with
`Cidr`), `NetworkInterfaces` (with `Groups`), `Instances` (with `SecurityGroups`), `LoadBalancers` (with `SecurityGroups`).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from itbench.policy.ranges import Ranges, is_world

Inventory = Mapping[str, Any]
PROTOCOLS = {"6": "tcp", "17": "udp", "1": "icmp", "58": "icmpv6"}
ANY = "-1"
NOWHERE = Ranges()


@dataclass(frozen=True)
class Sources:
    """From where a port is open: addresses of both families, and members of other groups."""

    v4: Ranges = NOWHERE
    v6: Ranges = NOWHERE
    groups: frozenset[str] = field(default_factory=frozenset)

    def __or__(self, other: "Sources") -> "Sources":
        return Sources(self.v4 | other.v4, self.v6 | other.v6, self.groups | other.groups)

    @property
    def world(self) -> bool:
        """Whether the public internet can come in, by either family."""
        return is_world(self.v4) or is_world(self.v6, v6=True)


@dataclass(frozen=True, order=True)
class Exposure:
    """A group that lets the world reach a port."""

    group: str
    protocol: str
    port: int


def matches(permission: Mapping[str, Any], protocol: str, port: int) -> bool:
    """Whether an IpPermission is about this protocol and port."""
    named = str(permission.get("IpProtocol", ANY)).lower()
    named = PROTOCOLS.get(named, named)
    if named == ANY:
        return True
    if named != protocol:
        return False
    first, last = permission.get("FromPort"), permission.get("ToPort")
    if first is None or last is None or first == -1:
        return True
    return int(first) <= port <= int(last)


def _addresses(permission: Mapping[str, Any], lists: Mapping[str, list[str]]) -> tuple[list[str], list[str]]:
    v4 = [item["CidrIp"] for item in permission.get("IpRanges", ())]
    v6 = [item["CidrIpv6"] for item in permission.get("Ipv6Ranges", ())]
    for item in permission.get("PrefixListIds", ()):
        for cidr in lists.get(item["PrefixListId"], ()):
            (v6 if ":" in cidr else v4).append(cidr)
    return v4, v6


def prefix_lists(inventory: Inventory) -> dict[str, list[str]]:
    """Prefix-list id -> its CIDR blocks."""
    return {
        item["PrefixListId"]: [entry["Cidr"] for entry in item.get("Entries", ())]
        for item in inventory.get("PrefixLists", ())
    }


def sources(inventory: Inventory, group: str, protocol: str, port: int) -> Sources:
    """From where a group lets traffic in to one port; an unknown group lets nothing in."""
    lists = prefix_lists(inventory)
    found = Sources()
    for item in inventory.get("SecurityGroups", ()):
        if item["GroupId"] != group:
            continue
        for permission in item.get("IpPermissions", ()):
            if matches(permission, protocol, port):
                v4, v6 = _addresses(permission, lists)
                pairs = frozenset(pair["GroupId"] for pair in permission.get("UserIdGroupPairs", ()))
                found |= Sources(Ranges.of(v4), Ranges.of(v6), pairs)
    return found


def exposures(inventory: Inventory, ports: Iterable[tuple[str, int]], groups: Iterable[str] = ()) -> Iterator[Exposure]:
    """Groups (all, or those named) that let the world reach one of the ports.

    Args:
        inventory: describe results.
        ports: (protocol, port) pairs that must not be open to the world.
        groups: ids; all groups of the inventory when empty.
    """
    wanted = list(groups) or [item["GroupId"] for item in inventory.get("SecurityGroups", ())]
    for group in wanted:
        for protocol, port in ports:
            if sources(inventory, group, protocol, port).world:
                yield Exposure(group, protocol, port)


def groups_of(inventory: Inventory, target: str) -> frozenset[str]:
    """The groups of a network interface, of all interfaces of an instance, or of a load balancer (by its ARN)."""
    found: set[str] = set()
    for item in inventory.get("NetworkInterfaces", ()):
        attached = (item.get("Attachment") or {}).get("InstanceId")
        if target in (item["NetworkInterfaceId"], attached):
            found |= {group["GroupId"] for group in item.get("Groups", ())}
    for item in inventory.get("Instances", ()):
        if item["InstanceId"] == target:
            found |= {group["GroupId"] for group in item.get("SecurityGroups", ())}
    for item in inventory.get("LoadBalancers", ()):
        if item["LoadBalancerArn"] == target:
            found |= set(item.get("SecurityGroups", ()))
    return frozenset(found)


def reaches(inventory: Inventory, source: str, target: str, protocol: str, port: int) -> bool:
    """Whether an address, or a member of a group, reaches a port of a target (any of its groups may let them in).

    Args:
        inventory: describe results.
        source: an IP address, or the id of a security group.
        target: id of a network interface or instance, or ARN of a load balancer.
        protocol: `tcp` or `udp`.
        port: number.
    """
    open_to = Sources()
    for group in groups_of(inventory, target):
        open_to |= sources(inventory, group, protocol, port)
    if source.startswith("sg-"):
        return source in open_to.groups
    return source in (open_to.v6 if ":" in source else open_to.v4)
