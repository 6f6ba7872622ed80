"""Addresses and networks in fields of objects: whether they are any, and the words for those that are not."""

import ipaddress

from itbench.kube.kinds.check import Check

ADDRESS_TEXT = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
NETWORK_TEXT = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def is_address(text: str) -> bool:
    """Whether a text is an IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def is_network(text: str) -> bool:
    """Whether a text is a network in CIDR notation."""
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text


def check_reachable(text: str, field: str, check: Check) -> None:
    """An address must not be one that only this machine or this link knows."""
    address = ipaddress.ip_address(text)
    if address.is_unspecified:
        check.invalid(field, text, f"may not be unspecified ({text})")
    if address.is_loopback:
        check.invalid(field, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if address.is_link_local:
        check.invalid(field, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
