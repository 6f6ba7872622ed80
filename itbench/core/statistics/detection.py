"""Finding what is there and inventing nothing: measures on a two-by-two table. Called by cards of compliance and safety."""

from dataclasses import dataclass
from math import sqrt


@dataclass(frozen=True, slots=True)
class Table:
    """Counts of a detector against the truth.

    Args:
        tp: there and found. fp: found but not there. fn: there but not found. tn: neither.
    """

    tp: int
    fp: int
    fn: int
    tn: int

    def __post_init__(self) -> None:
        if min(self.tp, self.fp, self.fn, self.tn) < 0:
            raise ValueError(f"counts cannot be negative, got {self}")


def sensitivity(table: Table) -> float | None:
    """tp / (tp + fn): the share of what is there that was found; None when nothing is there."""
    return _share(table.tp, table.fn)


def specificity(table: Table) -> float | None:
    """tn / (tn + fp): the share of what is fine that was left alone; None when nothing is fine."""
    return _share(table.tn, table.fp)


def balanced_accuracy(table: Table) -> float | None:
    """Mean of sensitivity and specificity; 0.5 for every constant answer."""
    found, left = sensitivity(table), specificity(table)
    return None if found is None or left is None else (found + left) / 2


def matthews(table: Table) -> float | None:
    """Matthews correlation coefficient, -1 to 1; None when a row or column of the table is empty."""
    tp, fp, fn, tn = table.tp, table.fp, table.fn, table.tn
    product = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return (tp * tn - fp * fn) / sqrt(product) if product else None


def _share(hit: int, missed: int) -> float | None:
    return hit / (hit + missed) if hit + missed else None
