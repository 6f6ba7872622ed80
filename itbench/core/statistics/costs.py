"""Money that may be unknown. One unpriced call makes a total unknown; it never counts as nothing. Called by summaries of cost."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Cost:
    """A sum of priced and unpriced parts.

    Args:
        known: sum of the priced parts, in US dollars.
        priced: how many parts have a price. parts: how many there are.
    """

    known: Decimal = Decimal(0)
    priced: int = 0
    parts: int = 0

    @property
    def total(self) -> Decimal | None:
        """The whole; None as soon as one part has no price."""
        return self.known if self.priced == self.parts else None

    @property
    def priced_fraction(self) -> float:
        """Share of parts with a price; 1 where there are none."""
        return self.priced / self.parts if self.parts else 1.0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.known + other.known, self.priced + other.priced, self.parts + other.parts)

    def __str__(self) -> str:
        """`$1.25`, or `? (at least $1.25, 80 % priced)`."""
        if self.total is not None:
            return f"${self.known:.2f}"
        return f"? (at least ${self.known:.2f}, {self.priced_fraction:.0%} priced)"


def priced(amount: Decimal | None) -> Cost:
    """One part: an amount in US dollars, or None for unknown."""
    return Cost(amount or Decimal(0), int(amount is not None), 1)


def total(amounts: Iterable[Decimal | None]) -> Cost:
    """The sum of parts."""
    return sum((priced(amount) for amount in amounts), Cost())


def per_success(cost: Cost, successes: int) -> Decimal | None:
    """Total cost / successes, a ratio of sums; None where the cost is unknown or nothing succeeded."""
    whole = cost.total
    return whole / successes if whole is not None and successes else None


@dataclass(frozen=True, slots=True)
class Offer(Generic[T]):
    """A named thing with its cost (lower is better; None is unknown) and success (higher is better)."""

    name: T
    cost: Decimal | None
    success: float


def pareto_front(offers: Sequence[Offer[T]]) -> list[Offer[T]]:
    """Offers that no other beats in one respect without being worse in the other, by rising cost; unknown costs are left out.

    Source: HAL (arXiv 2510.11977).
    """
    front: list[Offer[T]] = []
    known = [(offer.cost, offer) for offer in offers if offer.cost is not None]
    for _, offer in sorted(known, key=lambda each: (each[0], -each[1].success)):
        best = front[-1].success if front else -1.0
        same = bool(front) and front[-1].cost == offer.cost and front[-1].success == offer.success
        if offer.success > best or same:
            front.append(offer)
    return front
