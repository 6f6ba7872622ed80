"""Cluster IPs and node ports of Services, drawn in order from their ranges."""

import ipaddress

from itbench.kube import status
from itbench.kube.admission.write import Write
from itbench.kube.client import Obj
from itbench.kube.kinds.check import Check

RANGE = ipaddress.ip_network("10.96.0.0/16")
NODE_PORTS = range(30000, 32768)
_FIRST = 257
"""Dynamic addresses come from above the lower band that is kept for fixed ones."""


def _taken(write: Write) -> set[str]:
    own = (write.namespace, write.name)
    return {
        entry.object["spec"].get("clusterIP", "")
        for entry in write.store.list("services")
        if (entry.namespace, entry.name) != own
    }


def _next_address(write: Write, taken: set[str]) -> str:
    """A free address that depends on the Service's name alone as long as that one is free."""
    if write.dry_run:
        return str(RANGE[0])  # a real server does not look for a free one either
    size = RANGE.num_addresses - _FIRST - 1
    start = write.ids.rng("clusterIP", write.namespace, write.name).randrange(size)
    for step in range(size):
        address = str(RANGE[_FIRST + (start + step) % size])
        if address not in taken:
            return address
    raise status.internal("failed to allocate a serviceIP: range is full")


def _invalid(write: Write, field: str, value: object, text: str) -> Exception:
    check = Check()
    check.invalid(field, value, text)
    return status.invalid(write.resource.kind, write.resource.group, write.name, check.causes)


def _check_fixed(write: Write, address: str, taken: set[str]) -> None:
    try:
        inside = ipaddress.ip_address(address) in RANGE
    except ValueError:
        return
    field, value = "spec.clusterIPs", [address]
    if not inside:
        text = f"failed to allocate IP {address}: the provided network does not match the current range"
        if write.dry_run:  # a dry run asks another allocator, which says it in other words
            text = (
                f"failed to allocate IP {address}: the provided IP ({address}) is not in the valid range. "
                f"The range of valid IPs is {RANGE}"
            )
        raise _invalid(write, field, value, text)
    if address in taken:
        raise _invalid(write, field, value, f"failed to allocate IP {address}: provided IP is already allocated")


def cluster_ips(write: Write) -> None:
    """clusterIP, clusterIPs, ipFamilies, ipFamilyPolicy."""
    if write.key != "services" or write.operation not in ("CREATE", "UPDATE") or write.subresource:
        return
    spec = write.object["spec"]
    if spec.get("type") == "ExternalName":
        return
    before = (write.old or {}).get("spec", {})
    address = spec.get("clusterIP") or (spec.get("clusterIPs") or [""])[0]
    if address != "None" and (not address or address != before.get("clusterIP")):
        taken = _taken(write)
        if address:
            _check_fixed(write, address, taken)
        else:
            address = _next_address(write, taken)
    spec["clusterIP"], spec["clusterIPs"] = address, [address]
    headless = address == "None" and not spec.get("selector")
    spec.setdefault("ipFamilies", ["IPv4", "IPv6"] if headless else ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "RequireDualStack" if headless else "SingleStack")
    node_ports(write, spec)


def node_ports(write: Write, spec: Obj) -> None:
    """nodePort of every port of NodePort and LoadBalancer Services."""
    kind = spec.get("type")
    if kind not in ("NodePort", "LoadBalancer"):
        return
    if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False:
        return
    own = (write.namespace, write.name)
    taken = {
        (port.get("protocol", "TCP"), port["nodePort"])
        for entry in write.store.list("services")
        if (entry.namespace, entry.name) != own
        for port in entry.object["spec"].get("ports") or ()
        if port.get("nodePort")
    }
    start = write.ids.rng("nodePort", *own).randrange(len(NODE_PORTS))
    for index, port in enumerate(spec.get("ports") or ()):
        protocol = port.get("protocol", "TCP")
        fixed = port.get("nodePort")
        where = f"spec.ports[{index}].nodePort"
        if fixed:
            if fixed not in NODE_PORTS and not write.dry_run:  # a dry run does not look, there as here
                raise _invalid(
                    write,
                    where,
                    fixed,
                    "provided port is not in the valid range. The range of valid ports is 30000-32767",
                )
            if (protocol, fixed) in taken:
                raise _invalid(write, where, fixed, "provided port is already allocated")
        else:
            order = (NODE_PORTS[(start + step) % len(NODE_PORTS)] for step in range(len(NODE_PORTS)))
            port["nodePort"] = next(number for number in order if (protocol, number) not in taken)
        taken.add((protocol, port["nodePort"]))
