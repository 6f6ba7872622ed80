"""Reachability through security groups."""

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from itbench.policy.ranges import PUBLIC_V4, Ranges, is_world
from itbench.policy.reachability import Exposure, exposures, matches, reaches

SSH = [("tcp", 22)]


def group(*permissions, name="sg-a"):
    return {"GroupId": name, "IpPermissions": list(permissions)}


def tcp(first, last, *cidrs, lists=(), pairs=()):
    return {
        "IpProtocol": "tcp",
        "FromPort": first,
        "ToPort": last,
        "IpRanges": [{"CidrIp": cidr} for cidr in cidrs if ":" not in cidr],
        "Ipv6Ranges": [{"CidrIpv6": cidr} for cidr in cidrs if ":" in cidr],
        "PrefixListIds": [{"PrefixListId": name} for name in lists],
        "UserIdGroupPairs": [{"GroupId": name} for name in pairs],
    }


def inventory(*groups, lists=(), interfaces=()):
    return {"SecurityGroups": list(groups), "PrefixLists": list(lists), "NetworkInterfaces": list(interfaces)}


@pytest.mark.parametrize(
    ("permission", "exposed"),
    [
        (tcp(22, 22, "0.0.0.0/0"), True),
        (tcp(22, 22, "::/0"), True),
        (tcp(0, 65535, "0.0.0.0/0"), True),
        (tcp(20, 30, "0.0.0.0/1", "128.0.0.0/1"), True),
        (tcp(22, 22, "0.0.0.0/1", "128.0.0.0/2", "192.0.0.0/3"), True),
        ({"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}, True),
        ({"IpProtocol": "6", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}, True),
        (tcp(22, 22, lists=["pl-world"]), True),
        (tcp(22, 22, lists=["pl-office"]), False),
        (tcp(443, 443, "0.0.0.0/0"), False),
        (tcp(22, 22, "203.0.113.0/24", "10.0.0.0/8"), False),
        (tcp(22, 22, pairs=["sg-bastion"]), False),
        ({"IpProtocol": "udp", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}, False),
    ],
)
def test_a_port_is_exposed_when_the_union_of_what_is_let_in_is_the_world(permission, exposed):
    lists = [
        {"PrefixListId": "pl-world", "Entries": [{"Cidr": "0.0.0.0/1"}, {"Cidr": "128.0.0.0/1"}]},
        {"PrefixListId": "pl-office", "Entries": [{"Cidr": "203.0.113.0/24"}]},
    ]
    found = list(exposures(inventory(group(permission), lists=lists), SSH))
    assert found == ([Exposure("sg-a", "tcp", 22)] if exposed else [])


def test_two_permissions_of_one_group_count_together():
    halves = group(tcp(22, 22, "0.0.0.0/1"), tcp(0, 100, "128.0.0.0/1"))
    assert list(exposures(inventory(halves), SSH))


def test_an_interface_is_reached_through_any_of_its_groups_by_address_or_by_group():
    groups = [group(tcp(22, 22, pairs=["sg-b"]), name="sg-a"), group(tcp(443, 443, "198.51.100.0/24"), name="sg-w")]
    interface = {"NetworkInterfaceId": "eni-1", "Groups": [{"GroupId": "sg-a"}, {"GroupId": "sg-w"}]}
    estate = inventory(*groups, interfaces=[interface])
    assert reaches(estate, "sg-b", "eni-1", "tcp", 22)
    assert reaches(estate, "198.51.100.9", "eni-1", "tcp", 443)
    assert not reaches(estate, "198.51.100.9", "eni-1", "tcp", 22)
    assert not reaches(estate, "sg-c", "eni-1", "tcp", 22) and not reaches(estate, "sg-b", "eni-2", "tcp", 22)


@pytest.mark.parametrize(
    ("first", "last", "port", "expected"), [(20, 30, 22, True), (23, 30, 22, False), (-1, -1, 22, True)]
)
def test_port_ranges_include_their_ends(first, last, port, expected):
    assert matches({"IpProtocol": "tcp", "FromPort": first, "ToPort": last}, "tcp", port) is expected


CIDR = st.builds(lambda base, bits: f"{ip_address(base)}/{bits}", st.integers(0, 2**32 - 1), st.integers(0, 32))


@given(st.lists(CIDR, max_size=6), st.integers(0, 2**32 - 1))
def test_an_address_is_in_a_union_exactly_when_it_is_in_one_of_the_blocks(cidrs, number):
    address = str(ip_address(number))
    brute = any(ip_address(number) in ip_network(cidr, strict=False) for cidr in cidrs)
    assert (address in Ranges.of(cidrs)) == brute


@given(st.lists(CIDR, max_size=6), st.lists(CIDR, max_size=6))
def test_sizes_of_union_and_intersection_add_up(one, two):
    a, b = Ranges.of(one), Ranges.of(two)
    assert (a | b).size + (a & b).size == a.size + b.size
    assert (a | b).size <= 2**32


@given(st.lists(CIDR, max_size=6))
def test_adding_a_block_never_makes_the_world_unreachable(cidrs):
    if is_world(Ranges.of(cidrs)):
        assert is_world(Ranges.of([*cidrs, "10.0.0.0/8"]))
    assert is_world(Ranges.of([*cidrs, "0.0.0.0/0"])) and Ranges.of(["0.0.0.0/0"]).covers("203.0.113.0/24")


def test_private_space_is_not_the_world_however_large():
    assert not is_world(Ranges.of(["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "224.0.0.0/3"]))
    assert PUBLIC_V4.size > 3 * 2**30
