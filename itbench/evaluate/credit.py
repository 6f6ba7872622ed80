"""Partial credit for a list of answers against a list of truths: one-to-one, so that nothing counts twice.

`diagnosis` scores typed root causes with it, `openrca` the element-wise answers of that benchmark.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

P = TypeVar("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Scheme(Generic[P, T]):
    """How a pair of a prediction and a truth is credited, and what the whole is.

    Args:
        points: credit of a pair, from 0 to `full`.
        full: credit of a perfect pair.
        punish_extra: the whole is the mean of both numbers (as in F1), so that surplus predictions cost; else the truths.
        same_number: any other number of predictions than of truths is worth nothing.
    """

    points: Callable[[P, T], float]
    full: float = 1.0
    punish_extra: bool = True
    same_number: bool = False


@dataclass(frozen=True)
class Credit:
    """What an answer earned.

    Args:
        points: sum over the best matching.
        score: share of what there was to earn, 0 to 1.
        pairs: (index of prediction, index of truth) of the matching, credited pairs only.
    """

    points: float
    score: float
    pairs: tuple[tuple[int, int], ...]


def partial_credit(predicted: Sequence[P], truths: Sequence[T], scheme: Scheme[P, T]) -> Credit:
    """Credit of the best one-to-one matching, whatever the order of the predictions.

    Args:
        predicted: without duplicates. truths: at least one.
        scheme: of the credit.

    Raises:
        ValueError: no truths; what an empty answer is worth then is not a matter of credit.
    """
    if not truths:
        raise ValueError("partial credit needs at least one truth")
    if not predicted or (scheme.same_number and len(predicted) != len(truths)):
        return Credit(0.0, 0.0, ())
    table = [[scheme.points(one, truth) for truth in truths] for one in predicted]
    pairs = best_matching(table)
    points = sum(table[row][column] for row, column in pairs)
    # Numerator and denominator stay sums of points until the last division, so that equal shares are equal numbers.
    if scheme.punish_extra:
        return Credit(points, 2 * points / (scheme.full * (len(predicted) + len(truths))), pairs)
    return Credit(points, points / (scheme.full * len(truths)), pairs)


def best_matching(table: Sequence[Sequence[float]]) -> tuple[tuple[int, int], ...]:
    """The one-to-one matching with the largest sum.

    Args:
        table: credits >= 0, shape (predictions, truths).

    Returns:
        (row, column) of pairs with credit, by row. Source: Kuhn 1955, Munkres 1957, with potentials; O(n^3).
    """
    if not table or not table[0]:
        return ()
    size = max(len(table), len(table[0]))
    cost = [[-table[i][j] if i < len(table) and j < len(table[0]) else 0.0 for j in range(size)] for i in range(size)]
    owner = _assigned(cost, size)
    pairs = ((owner[j], j) for j in range(size))
    return tuple(sorted((i, j) for i, j in pairs if cost[i][j] < 0))


def _assigned(cost: list[list[float]], size: int) -> list[int]:
    """Row of each column in the cheapest assignment of a square table: rows enter one by one along shortest paths."""
    left, right = [0.0] * (size + 1), [0.0] * (size + 1)
    row_of = [0] * (size + 1)
    for row in range(1, size + 1):
        row_of[0], column = row, 0
        slack, back, seen = [float("inf")] * (size + 1), [0] * (size + 1), [False] * (size + 1)
        while row_of[column]:
            seen[column] = True
            for j in range(1, size + 1):
                if not seen[j]:
                    reduced = cost[row_of[column] - 1][j - 1] - left[row_of[column]] - right[j]
                    if reduced < slack[j]:
                        slack[j], back[j] = reduced, column
            step, following = min((slack[j], j) for j in range(1, size + 1) if not seen[j])
            for j in range(size + 1):
                if seen[j]:
                    left[row_of[j]] += step
                    right[j] -= step
                else:
                    slack[j] -= step
            column = following
        while column:
            row_of[column], column = row_of[back[column]], back[column]
    return [row_of[j] - 1 for j in range(1, size + 1)]
