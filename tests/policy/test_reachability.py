"""Reachability through security groups."""

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from itbench.policy.ranges import PUBLIC_V4, Ranges, is_world
from itbench.policy.reachability import Exposure, exposures, groups_of, matches, reaches, sources

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


def test_groups_of_an_instance_are_those_of_all_its_interfaces_and_balancers_have_their_own():
    interfaces = [
        {"NetworkInterfaceId": "eni-1", "Groups": [{"GroupId": "sg-a"}], "Attachment": {"InstanceId": "i-1"}},
        {"NetworkInterfaceId": "eni-2", "Groups": [{"GroupId": "sg-b"}], "Attachment": {"InstanceId": "i-1"}},
        {"NetworkInterfaceId": "eni-3", "Groups": [{"GroupId": "sg-c"}]},
    ]
    balancer = {"LoadBalancerArn": "arn:lb", "SecurityGroups": ["sg-d"]}
    estate = {"NetworkInterfaces": interfaces, "LoadBalancers": [balancer]}
    assert groups_of(estate, "i-1") == {"sg-a", "sg-b"} and groups_of(estate, "eni-3") == {"sg-c"}
    assert groups_of(estate, "arn:lb") == {"sg-d"} and groups_of(estate, "") == frozenset()


PORTS = (20, 22, 25, 3389)
ADDRESSES = ("8.8.8.8", "100.100.1.1", "130.5.5.5", "203.0.113.7", "10.0.0.9")
PERMISSION = st.builds(
    lambda protocol, ends, cidrs, lists: {
        "IpProtocol": protocol,
        **({} if protocol == "-1" else {"FromPort": min(ends), "ToPort": max(ends)}),
        "IpRanges": [{"CidrIp": cidr} for cidr in cidrs],
        "PrefixListIds": [{"PrefixListId": name} for name in lists],
    },
    st.sampled_from(["tcp", "udp", "-1", "6"]),
    st.tuples(st.integers(0, 4000), st.integers(0, 4000)),
    st.lists(CIDR, max_size=3),
    st.lists(st.sampled_from(["pl-1", "pl-2", "pl-gone"]), max_size=2),
)


def lets_in(permission, lists, protocol, port, address):
    """The plain reading of one permission: no unions, no intervals."""
    named = {"6": "tcp"}.get(permission["IpProtocol"], permission["IpProtocol"])
    if named != "-1" and (named != protocol or not permission["FromPort"] <= port <= permission["ToPort"]):
        return False
    cidrs = [item["CidrIp"] for item in permission["IpRanges"]]
    cidrs += [cidr for item in permission["PrefixListIds"] for cidr in lists.get(item["PrefixListId"], ())]
    return any(ip_address(address) in ip_network(cidr, strict=False) for cidr in cidrs)


@given(
    st.lists(st.lists(PERMISSION, max_size=3), min_size=1, max_size=3),
    st.lists(CIDR, max_size=2),
    st.lists(CIDR, max_size=2),
    st.sampled_from(["tcp", "udp"]),
)
def test_reachability_equals_the_plain_reading_of_every_rule(groups, first, second, protocol):
    lists = {"pl-1": first, "pl-2": second}
    ids = [f"sg-{number}" for number in range(len(groups))]
    estate = inventory(
        *(group(*permissions, name=name) for name, permissions in zip(ids, groups, strict=True)),
        lists=[{"PrefixListId": name, "Entries": [{"Cidr": cidr} for cidr in cidrs]} for name, cidrs in lists.items()],
        interfaces=[{"NetworkInterfaceId": "eni-1", "Groups": [{"GroupId": name} for name in ids]}],
    )
    for port in PORTS:
        for address in ADDRESSES:
            plain = any(lets_in(each, lists, protocol, port, address) for permissions in groups for each in permissions)
            assert reaches(estate, address, "eni-1", protocol, port) == plain


@given(st.lists(PERMISSION, max_size=3), PERMISSION)
def test_one_rule_more_never_closes_anything(permissions, more):
    before, after = inventory(group(*permissions)), inventory(group(*permissions, more))
    for port in PORTS:
        small, large = sources(before, "sg-a", "tcp", port), sources(after, "sg-a", "tcp", port)
        assert small | large == large
    assert set(exposures(before, [("tcp", 22)])) <= set(exposures(after, [("tcp", 22)]))
