"""The bill of an estate: of its resources over the last days, or generated with planted causes. Called by the account driver."""

import datetime
from collections.abc import Iterator
from typing import Any

from itbench.cloud.child import ACCOUNT
from itbench.cloud.focus import Charge
from itbench.cloud.inventory import Inventory
from itbench.cloud.prices import PriceBook
from itbench.cloud.rating import Item, cost, items

DAYS = 60
"""Full days before today that the bill of an account's resources covers."""
_SERVICE = {
    "ebs": ("Amazon Elastic Block Store", "Storage"),
    "ec2": ("Amazon Elastic Compute Cloud", "Compute"),
    "elb": ("Elastic Load Balancing", "Networking"),
    "vpc": ("Amazon Virtual Private Cloud", "Networking"),
}


def _tags(inventory: Inventory) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for key, identity in (("Volumes", "VolumeId"), ("Snapshots", "SnapshotId"), ("Instances", "InstanceId")):
        for thing in inventory.get(key, ()):
            found[thing[identity]] = {tag["Key"]: tag["Value"] for tag in thing.get("Tags", ())}
    return found


def charges(inventory: Inventory, today: datetime.date, book: PriceBook, days: int = DAYS) -> Iterator[Charge]:
    """One charge per resource, SKU and full day before `today`, from the day on which the resource was made."""
    tags = _tags(inventory)
    for item in items(inventory):
        made = datetime.datetime.fromisoformat(item.created)
        for back in range(days, 0, -1):
            day = today - datetime.timedelta(days=back)
            start = datetime.datetime.combine(day, datetime.time(), datetime.UTC)
            end = start + datetime.timedelta(days=1)
            if made < end:
                yield _charge(item, max(start, made), end, book, tags.get(item.resource, {}))


def _charge(
    item: Item, start: datetime.datetime, end: datetime.datetime, book: PriceBook, tags: dict[str, Any]
) -> Charge:
    entry, price = book.sku(item.sku), book.price(item.sku, item.region)
    usd = cost(item, start, end, book)
    service, category = _SERVICE[item.sku.split(":")[0]]
    return Charge(
        day=start.date(),
        account=ACCOUNT,
        service=service,
        category=category,
        region=item.region,
        sku=item.sku,
        resource=item.resource,
        kind=item.kind,
        quantity=round(float(usd / price), 9),
        unit=entry.unit,
        price=float(price),
        billed=round(float(usd), 6),
        tags=tags,
        about=f"${float(price):g} per {entry.unit} of {item.sku}",
    )
