"""The rating engine: what an inventory costs. Pure and exact: costs are fractions of dollars, rounded only when shown.

Called by the bill, by the account driver for the start, the end and the reference of a trial, and by the savings check's tests.
GB-months are GB-hours divided by the hours of that calendar month, as AWS bills them.
"""

import calendar
import datetime
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from itbench.cloud.inventory import Inventory
from itbench.cloud.prices import PriceBook

HOUR = datetime.timedelta(hours=1)
GP3_FREE_IOPS, GP3_FREE_THROUGHPUT = 3000, 125
RUNNING = ("running", "pending")


@dataclass(frozen=True)
class Item:
    """Something that is billed for as long as it exists: `quantity` units of a SKU."""

    resource: str
    kind: str
    sku: str
    quantity: Fraction
    region: str
    created: str = ""


def _volume(volume: dict[str, object]) -> Iterator[tuple[str, int]]:
    kind, iops = str(volume["VolumeType"]), int(str(volume.get("Iops") or 0))
    yield f"ebs:{kind}", int(str(volume["Size"]))
    if kind in ("io1", "io2"):
        yield f"ebs:{kind}:iops", iops
    if kind == "gp3":
        yield "ebs:gp3:iops", max(0, iops - GP3_FREE_IOPS)
        yield "ebs:gp3:throughput", max(0, int(str(volume.get("Throughput") or 0)) - GP3_FREE_THROUGHPUT)


def items(inventory: Inventory) -> Iterator[Item]:
    """Everything in an inventory that costs money."""
    for volume in inventory.get("Volumes", ()):
        for sku, quantity in _volume(volume):
            if quantity > 0:  # nobody is paid for having something
                yield Item(
                    volume["VolumeId"], "Volume", sku, Fraction(quantity), volume["Region"], volume["CreateTime"]
                )
    for snapshot in inventory.get("Snapshots", ()):
        size = Fraction(max(0, int(snapshot["VolumeSize"])))
        yield Item(snapshot["SnapshotId"], "Snapshot", "ebs:snapshot", size, snapshot["Region"], snapshot["StartTime"])
    for instance in inventory.get("Instances", ()):
        if instance["State"]["Name"] in RUNNING:
            sku, made = f"ec2:{instance['InstanceType']}", instance["LaunchTime"]
            yield Item(instance["InstanceId"], "Instance", sku, Fraction(1), instance["Region"], made)
            if instance.get("PublicIpAddress"):
                yield Item(instance["InstanceId"], "Instance", "vpc:ipv4", Fraction(1), instance["Region"], made)
    for balancer in inventory.get("LoadBalancers", ()):
        sku, made = f"elb:{balancer['Type']}", balancer["CreatedTime"]
        yield Item(balancer["LoadBalancerArn"], "LoadBalancer", sku, Fraction(1), balancer["Region"], made)


def months(start: datetime.datetime, end: datetime.datetime) -> Fraction:
    """How many months lie between two moments: hours in each calendar month over the hours of that month."""
    total = Fraction(0)
    while start < end:
        days = calendar.monthrange(start.year, start.month)[1]
        first = start.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        stop = min(end, first + datetime.timedelta(days=days))
        span = stop - start
        seconds = span.days * 86400 + span.seconds + Fraction(span.microseconds, 1_000_000)
        total += Fraction(seconds) / (days * 86400)
        start = stop
    return total


def cost(item: Item, start: datetime.datetime, end: datetime.datetime, book: PriceBook) -> Fraction:
    """Dollars for an item that exists from `start` to `end`.

    Raises:
        EnvironmentFault: cause `unrated`, for a SKU that the book does not have.
    """
    price = book.price(item.sku, item.region)
    if book.sku(item.sku).per == "month":
        return item.quantity * price * months(start, end)
    span = end - start
    return item.quantity * price * Fraction(span.days * 86400 + span.seconds, 3600)


def total(things: Iterable[Item], start: datetime.datetime, end: datetime.datetime, book: PriceBook) -> Fraction:
    """Dollars for all items over one window."""
    return sum((cost(item, start, end, book) for item in things), Fraction(0))


def future(inventory: Inventory, start: datetime.datetime, hours: int, book: PriceBook) -> Fraction:
    """Dollars of the `hours` after `start` if the inventory stays as it is."""
    return total(items(inventory), start, start + hours * HOUR, book)


def monthly(inventory: Inventory, book: PriceBook) -> Fraction:
    """Dollars of a month of 730 hours, as people quote prices."""
    return sum(
        (
            item.quantity * book.price(item.sku, item.region) * (730 if book.sku(item.sku).per == "hour" else 1)
            for item in items(inventory)
        ),
        Fraction(0),
    )


def nano(usd: Fraction) -> int:
    """Dollars as whole nano-dollars."""
    return round(usd * 1_000_000_000)
