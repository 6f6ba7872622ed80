"""The price book: frozen list prices by SKU and region, each with its source. Read by the rating engine and the bill."""

from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field

from itbench.core.documents.base import Document, load
from itbench.core.errors import EnvironmentFault

BOOK = Path(__file__).with_name("pricebook.yaml")


class Price(Document):
    """One SKU. `per`: `hour`, `month` (GB-months, IOPS-months, ...) or `unit`."""

    usd: str
    """A decimal, kept as text so that no digit is lost."""
    per: Literal["hour", "month", "unit"]
    unit: str
    source: str
    regions: dict[str, str] = Field(default_factory=dict)
    """Prices of regions that differ from us-east-1."""


class PriceBook(Document):
    """`pricebook.yaml`."""

    schema_: Literal["itbench/pricebook/v1"] = Field(alias="schema")
    frozen: str
    currency: Literal["USD"] = "USD"
    prices: dict[str, Price]

    def sku(self, sku: str) -> Price:
        """The entry of a SKU.

        Raises:
            EnvironmentFault: cause `unrated`: never a price of zero for what is not known.
        """
        if sku not in self.prices:
            raise EnvironmentFault("no price for what the account has", cause="unrated", seen=sku)
        return self.prices[sku]

    def price(self, sku: str, region: str = "us-east-1") -> Fraction:
        """Dollars per unit in a region, exact."""
        entry = self.sku(sku)
        return Fraction(entry.regions.get(region, entry.usd))


@cache
def pricebook() -> PriceBook:
    """The frozen book."""
    return load(PriceBook, BOOK)
