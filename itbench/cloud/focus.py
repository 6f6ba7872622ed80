"""Charges as FOCUS rows and as the SQLite file that agents query. Column names: FOCUS 1.2 (CC BY 4.0, FinOps Foundation).

Called by `itbench.cloud.bill`. One table `focus`, and a view `instance_costs` in the shape of ITBench-Lite's anomaly data.
"""

import datetime
import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Charge:
    """One line of a bill: a resource, a SKU, a day."""

    day: datetime.date
    account: str
    service: str
    category: str
    region: str
    sku: str
    resource: str
    kind: str
    quantity: float
    unit: str
    price: float
    billed: float
    """Dollars, rounded to a millionth."""
    tags: dict[str, str] = field(default_factory=dict)
    about: str = ""


COLUMNS: tuple[tuple[str, str], ...] = (
    ("BillingAccountId", "TEXT"),
    ("SubAccountId", "TEXT"),
    ("BillingPeriodStart", "TEXT"),
    ("BillingPeriodEnd", "TEXT"),
    ("ChargePeriodStart", "TEXT"),
    ("ChargePeriodEnd", "TEXT"),
    ("ChargeCategory", "TEXT"),
    ("ChargeFrequency", "TEXT"),
    ("ChargeDescription", "TEXT"),
    ("ServiceName", "TEXT"),
    ("ServiceCategory", "TEXT"),
    ("ServiceProviderName", "TEXT"),
    ("RegionId", "TEXT"),
    ("ResourceId", "TEXT"),
    ("ResourceType", "TEXT"),
    ("SkuId", "TEXT"),
    ("SkuMeter", "TEXT"),
    ("PricingCategory", "TEXT"),
    ("PricingQuantity", "REAL"),
    ("PricingUnit", "TEXT"),
    ("ConsumedQuantity", "REAL"),
    ("ConsumedUnit", "TEXT"),
    ("ListUnitPrice", "REAL"),
    ("ContractedUnitPrice", "REAL"),
    ("ListCost", "REAL"),
    ("ContractedCost", "REAL"),
    ("BilledCost", "REAL"),
    ("EffectiveCost", "REAL"),
    ("BillingCurrency", "TEXT"),
    ("Tags", "TEXT"),
)
PAYER = "417204598812"
_VIEW = """
CREATE VIEW instance_costs AS SELECT
  substr(ChargePeriodStart, 1, 10) AS date, SubAccountId AS account_id, 'AWS' AS csp, ServiceName AS cloud_service,
  json_extract(Tags, '$.application') AS application,
  substr(substr(SkuId, 5), 1, instr(substr(SkuId, 5), '.') - 1) AS instance_family,
  substr(SkuId, 5) AS instance_type, ContractedUnitPrice AS price_per_hour,
  ConsumedQuantity / 24.0 AS num_instances, BilledCost AS unblended_cost
FROM focus WHERE ResourceType = 'Instance'
"""


def row(charge: Charge) -> tuple[object, ...]:
    """A charge in the order of `COLUMNS`. Without commitments and credits all cost columns are equal."""
    first = charge.day.replace(day=1)
    after = (first + datetime.timedelta(days=32)).replace(day=1)
    cost = charge.billed
    return (
        PAYER,
        charge.account,
        _start(first),
        _start(after),
        _start(charge.day),
        _start(charge.day + datetime.timedelta(days=1)),
        "Usage",
        "Usage-Based",
        charge.about,
        charge.service,
        charge.category,
        "AWS",
        charge.region,
        charge.resource,
        charge.kind,
        charge.sku,
        charge.sku.split(":")[-1],
        "Standard",
        charge.quantity,
        charge.unit,
        charge.quantity,
        charge.unit,
        charge.price,
        charge.price,
        cost,
        cost,
        cost,
        cost,
        "USD",
        json.dumps(charge.tags, sort_keys=True),
    )


def _start(day: datetime.date) -> str:
    return f"{day.isoformat()}T00:00:00Z"


def write(file: Path, charges: Iterable[Charge]) -> None:
    """Write the bill; an earlier file is replaced."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    connection = sqlite3.connect(file)
    try:
        with connection:
            columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS)
            connection.execute(f"CREATE TABLE focus ({columns})")
            marks = ", ".join("?" * len(COLUMNS))
            connection.executemany(f"INSERT INTO focus VALUES ({marks})", (row(charge) for charge in charges))
            connection.execute(_VIEW)
    finally:
        connection.close()
    file.chmod(0o444)
