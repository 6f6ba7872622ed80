"""The part of `heuristic` that looks at AWS accounts: ports open to the world, volumes that nothing uses.

It acts only on what the page speaks of, and leaves alone whatever a tag asks to keep.
"""

import ipaddress
import json
import re
from collections.abc import Iterator
from typing import Any

from itbench.core.documents.task import Submission, Task
from itbench.tools.registry import Tools

_SENSITIVE = (22, 3389)
_KEEP = re.compile(r"keep|hold|retain|protect|restore|backup|legal|do-?not-?delete|exception", re.IGNORECASE)
_SCRATCH = re.compile(r"scratch|temp|tmp|cache", re.IGNORECASE)


async def repair_account(task: Task, tools: Tools) -> Submission:
    """Look for what the page speaks of, repair it, answer."""
    page, changed = task.page.lower(), 0
    if re.search(r"security group|port|ssh|rdp|internet|ingress", page):
        changed += await _close_ports(tools)
    if re.search(r"volume|ebs|unattached|disk|storage", page):
        changed += await _delete_volumes(tools)
    verdict = ("violating" if task.domain == "ciso" else "incident") if changed else "no-change"
    return Submission(verdict=verdict, notes=f"{changed} changes")


async def _listed(tools: Tools, command: str, key: str) -> list[dict[str, Any]]:
    result = await tools.call("aws", {"command": command, "limit": 2_000_000})
    try:
        found: list[dict[str, Any]] = json.loads(result.text)[key] if result.ok and result.text else []
    except (ValueError, KeyError):
        return []
    return found


def tagged(item: dict[str, Any], pattern: re.Pattern[str]) -> bool:
    """Whether a key or value of the tags matches."""
    return any(pattern.search(f"{tag['Key']}={tag['Value']}") for tag in item.get("Tags", []))


def world(cidrs: list[str]) -> bool:
    """Whether blocks of one family cover all its addresses together, also in pieces."""
    networks = [ipaddress.ip_network(cidr, strict=False) for cidr in cidrs]
    fours = [network for network in networks if isinstance(network, ipaddress.IPv4Network)]
    sixes = [network for network in networks if isinstance(network, ipaddress.IPv6Network)]
    whole = [network.prefixlen == 0 for network in ipaddress.collapse_addresses(fours)]
    return any(whole + [network.prefixlen == 0 for network in ipaddress.collapse_addresses(sixes)])


def open_rules(group: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Ingress permissions that let the world reach a sensitive port, reduced to the blocks that do so."""
    for rule in group.get("IpPermissions", []):
        first, last = rule.get("FromPort", 0), rule.get("ToPort", 65535)
        if rule["IpProtocol"] not in ("-1", "tcp", "6") or not any(first <= port <= last for port in _SENSITIVE):
            continue
        fours = [item["CidrIp"] for item in rule.get("IpRanges", [])]
        sixes = [item["CidrIpv6"] for item in rule.get("Ipv6Ranges", [])]
        bad = {key: rule[key] for key in ("IpProtocol", "FromPort", "ToPort") if key in rule}
        if world(fours):
            bad["IpRanges"] = [
                {"CidrIp": cidr} for cidr in fours if ipaddress.ip_network(cidr, strict=False).prefixlen < 8
            ]
        if world(sixes):
            bad["Ipv6Ranges"] = [{"CidrIpv6": cidr} for cidr in sixes]
        if "IpRanges" in bad or "Ipv6Ranges" in bad:
            yield bad


async def _close_ports(tools: Tools) -> int:
    changed = 0
    for group in await _listed(tools, "ec2 describe-security-groups", "SecurityGroups"):
        for rule in () if tagged(group, _KEEP) else open_rules(group):
            command = ["ec2", "revoke-security-group-ingress", "--group-id", group["GroupId"]]
            done = await tools.call("aws", {"command": [*command, "--ip-permissions", json.dumps([rule])]})
            changed += done.ok
    return changed


async def _delete_volumes(tools: Tools) -> int:
    """Volumes that are attached to nothing; what is not scratch is kept in a snapshot."""
    changed = 0
    for volume in await _listed(tools, "ec2 describe-volumes --filters Name=status,Values=available", "Volumes"):
        if tagged(volume, _KEEP):
            continue
        identity, safe = volume["VolumeId"], True
        if not tagged(volume, _SCRATCH):
            safe = (await tools.call("aws", {"command": ["ec2", "create-snapshot", "--volume-id", identity]})).ok
        if safe:
            done = await tools.call("aws", {"command": ["ec2", "delete-volume", "--volume-id", identity]})
            changed += done.ok
    return changed
