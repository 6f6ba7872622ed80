"""The rating engine: exact, additive, never zero for what it does not know."""

import datetime
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from itbench.cloud.prices import pricebook
from itbench.cloud.rating import Item, cost, future, items, monthly, months, total
from itbench.core.errors import EnvironmentFault

START = datetime.datetime(2026, 3, 31, 9, tzinfo=datetime.UTC)
SKUS = sorted(pricebook().prices)
hours = st.integers(0, 2000)


def volume(kind="gp2", size=100, **more):
    return {"VolumeId": "vol-1", "VolumeType": kind, "Size": size, "Region": "us-east-1", "CreateTime": "", **more}


@given(st.sampled_from(SKUS), st.integers(1, 5000), hours, hours)
def test_splitting_an_interval_never_changes_its_cost(sku, quantity, first, second):
    item = Item("r", "k", sku, Fraction(quantity), "us-east-1")
    middle = START + datetime.timedelta(hours=first)
    end = middle + datetime.timedelta(hours=second)
    book = pricebook()
    assert cost(item, START, end, book) == cost(item, START, middle, book) + cost(item, middle, end, book)


@given(st.lists(st.tuples(st.sampled_from(SKUS), st.integers(1, 5000)), max_size=6), hours)
def test_cost_is_additive_over_resources_and_under_splitting_one(things, span):
    book, end = pricebook(), START + datetime.timedelta(hours=span)
    whole = [Item("r", "k", sku, Fraction(quantity), "us-east-1") for sku, quantity in things]
    halves = [Item("r", "k", item.sku, item.quantity / 2, item.region) for item in whole for _ in range(2)]
    assert total(whole, START, end, book) == total(halves, START, end, book)


def test_a_calendar_month_is_one_month_however_long_it_is():
    for month, following in ((2, 3), (3, 4), (4, 5)):
        first = datetime.datetime(2026, month, 1, tzinfo=datetime.UTC)
        assert months(first, first.replace(month=following)) == 1


def test_an_address_costs_360_in_april_and_365_when_quoted():
    item = Item("r", "k", "vpc:ipv4", Fraction(1), "us-east-1")
    first = datetime.datetime(2026, 4, 1, tzinfo=datetime.UTC)
    assert cost(item, first, first + datetime.timedelta(hours=720), pricebook()) == Fraction("3.60")
    instance = {"InstanceId": "i-1", "InstanceType": "t2.medium", "State": {"Name": "running"}, "Region": "us-east-1"}
    inventory = {"Instances": [instance | {"LaunchTime": "", "PublicIpAddress": "1.2.3.4"}]}
    assert monthly(inventory, pricebook()) == Fraction("3.65") + 730 * Fraction("0.0464")


def test_gp3_is_charged_only_beyond_what_is_included():
    free = list(items({"Volumes": [volume("gp3", Iops=3000, Throughput=125)]}))
    paid = {item.sku: item.quantity for item in items({"Volumes": [volume("gp3", Iops=4000, Throughput=225)]})}
    assert [item.sku for item in free] == ["ebs:gp3"]
    assert paid == {"ebs:gp3": 100, "ebs:gp3:iops": 1000, "ebs:gp3:throughput": 100}


@given(st.integers(-20_000, 20_000), st.sampled_from(["gp2", "gp3", "io1", "st1"]), st.integers(-5000, 5000))
def test_nothing_has_a_negative_price(size, kind, iops):
    """Whatever an inventory says, having something never pays."""
    inventory = {"Volumes": [volume(kind, size, Iops=iops)], "Snapshots": []}
    assert all(item.quantity > 0 for item in items(inventory))


def test_a_stopped_instance_costs_nothing_and_its_volume_stays_billed():
    instance = {"InstanceId": "i-1", "InstanceType": "m5.large", "State": {"Name": "stopped"}, "Region": "us-east-1"}
    assert future({"Instances": [instance]}, START, 720, pricebook()) == 0
    assert future({"Instances": [instance], "Volumes": [volume()]}, START, 720, pricebook()) > 0


def test_what_has_no_price_is_unrated_and_never_free():
    instance = {"InstanceId": "i-1", "InstanceType": "x9.huge", "State": {"Name": "running"}, "Region": "us-east-1"}
    with pytest.raises(EnvironmentFault) as fault:
        future({"Instances": [instance | {"LaunchTime": ""}]}, START, 720, pricebook())
    assert fault.value.cause == "unrated"


def test_every_price_names_its_source_and_is_above_zero():
    for sku, price in pricebook().prices.items():
        assert price.source in ("focus", "libcloud", "unverified"), sku
        assert Fraction(price.usd) > 0
