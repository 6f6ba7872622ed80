"""Sets of IP addresses as sorted disjoint intervals of integers. Used by reachability."""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

Span = tuple[int, int]
"""First and last address, both included."""

_NOT_PUBLIC_V4 = ("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16",
                  "224.0.0.0/3")  # fmt: skip


@dataclass(frozen=True)
class Ranges:
    """A set of addresses of one family; spans are sorted, disjoint and not adjacent."""

    spans: tuple[Span, ...] = ()

    @classmethod
    def of(cls, cidrs: Iterable[str]) -> "Ranges":
        """The union of CIDR blocks of one family; host bits are ignored, as EC2 does. Raises ValueError on anything else."""
        return cls.merged((int(net[0]), int(net[-1])) for net in (ip_network(cidr, strict=False) for cidr in cidrs))

    @classmethod
    def merged(cls, spans: Iterable[Span]) -> "Ranges":
        """The union of spans in any order."""
        merged: list[list[int]] = []
        for first, last in sorted(spans):
            if merged and first <= merged[-1][1] + 1:
                merged[-1][1] = max(merged[-1][1], last)
            else:
                merged.append([first, last])
        return cls(tuple((first, last) for first, last in merged))

    def __or__(self, other: "Ranges") -> "Ranges":
        return Ranges.merged((*self.spans, *other.spans))

    def __and__(self, other: "Ranges") -> "Ranges":
        found = []
        for first, last in self.spans:
            for begin, end in other.spans:
                if first <= end and begin <= last:
                    found.append((max(first, begin), min(last, end)))
        return Ranges.merged(found)

    def __contains__(self, address: str) -> bool:
        number = int(ip_address(address))
        return any(first <= number <= last for first, last in self.spans)

    def __bool__(self) -> bool:
        return bool(self.spans)

    @property
    def size(self) -> int:
        """How many addresses."""
        return sum(last - first + 1 for first, last in self.spans)

    def covers(self, cidr: str) -> bool:
        """Whether every address of a block is in the set."""
        block = Ranges.of([cidr])
        return (self & block).size == block.size


def _complement_v4(cidrs: Iterable[str]) -> Ranges:
    found, at = [], 0
    for first, last in Ranges.of(cidrs).spans:
        if at < first:
            found.append((at, first - 1))
        at = last + 1
    if at < 2**32:
        found.append((at, 2**32 - 1))
    return Ranges.merged(found)


PUBLIC_V4 = _complement_v4(_NOT_PUBLIC_V4)
"""IPv4 addresses of the public internet (IANA special-purpose and multicast blocks left out)."""
PUBLIC_V6 = Ranges.of(["2000::/3"])
"""IPv6 global unicast."""
LARGE_V4 = IPv4Network("0.0.0.0/8").num_addresses
LARGE_V6 = IPv6Network("2000::/16").num_addresses


def is_world(ranges: Ranges, *, v6: bool = False) -> bool:
    """Whether a set is the world for all practical purposes: more public addresses than one /8 (IPv6: one /16).

    A bound instead of `== 0.0.0.0/0`, so that halves, and a world with a hole in it, count as what they are. No office, VPN or
    partner is that large.
    """
    return (ranges & (PUBLIC_V6 if v6 else PUBLIC_V4)).size > (LARGE_V6 if v6 else LARGE_V4)
