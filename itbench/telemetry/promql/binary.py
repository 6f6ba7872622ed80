"""Binary operators between scalars and vectors, with vector matching and the set operators."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from itbench.telemetry.labels import RESERVED, LabelList, Labels, freeze
from itbench.telemetry.metrics import Bools, Floats
from itbench.telemetry.promql.gotext import label_name, quote
from itbench.telemetry.promql.values import QueryError, Vector, empty, join_equal, somewhere

ARITHMETIC: dict[str, Callable[[Floats, Floats], Floats]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "%": np.fmod,
    "^": np.power,
    "atan2": np.arctan2,
}
COMPARISON: dict[str, Callable[[Floats, Floats], Bools]] = {
    "==": np.equal,
    "!=": np.not_equal,
    ">": np.greater,
    "<": np.less,
    ">=": np.greater_equal,
    "<=": np.less_equal,
}
SETS = ("and", "or", "unless")
TRIMS = ("</", ">/")
"""Operators of native histograms: with numbers they give nothing."""


@dataclass(frozen=True, slots=True)
class Matching:
    """How the elements of two vectors find each other.

    Attributes:
        on: the labels are the ones to compare (else the ones to ignore).
        labels: those labels.
        many: `left` or `right` is the side with several elements per match; empty: one to one.
        include: labels that the many side takes over from the one side.
        return_bool: comparisons give 0 or 1 instead of filtering.
    """

    on: bool = False
    labels: tuple[str, ...] = ()
    many: str = ""
    include: tuple[str, ...] = ()
    return_bool: bool = False

    def signature(self, labels: Labels) -> Labels:
        """The part of a label set that has to be equal."""
        if self.on:
            return tuple(pair for pair in labels if pair[0] in self.labels)
        return tuple(pair for pair in labels if pair[0] not in self.labels and pair[0] not in RESERVED)


def scalars(op: str, left: Floats, right: Floats) -> Floats:
    """Scalar with scalar; comparisons give 0 or 1."""
    if op in TRIMS:
        raise QueryError(f'operator "{op}" not allowed for Scalar operations')
    if op in COMPARISON:
        return COMPARISON[op](left, right).astype(float)
    return ARITHMETIC[op](left, right)


def with_scalar(op: str, vector: Vector, scalar: Floats, *, swapped: bool, return_bool: bool) -> Vector:
    """Vector with scalar, or scalar with vector when `swapped`; the scalar has shape (T,)."""
    left, right = (scalar[None, :], vector.values) if swapped else (vector.values, scalar[None, :])
    if op in ARITHMETIC:
        return Vector(vector.labels, ARITHMETIC[op](left, right), vector.present).unnamed()
    kept = COMPARISON[op](left, right)
    if return_bool:
        return Vector(vector.labels, kept.astype(float), vector.present).unnamed()
    return vector.keep(kept)


def _rows_by_signature(vector: Vector, matching: Matching) -> dict[Labels, list[int]]:
    key = ("signatures", matching.on, matching.labels)
    return vector.labels.remember(key, lambda: _group_signatures(vector.labels, matching))


def _group_signatures(sets: LabelList, matching: Matching) -> dict[Labels, list[int]]:
    groups: dict[Labels, list[int]] = {}
    for row, labels in enumerate(sets):
        groups.setdefault(matching.signature(labels), []).append(row)
    return groups


def _any_by_signature(vector: Vector, matching: Matching) -> dict[Labels, Bools]:
    groups = _rows_by_signature(vector, matching)
    return {signature: somewhere(vector.present[rows]) for signature, rows in groups.items()}


def sets(op: str, left: Vector, right: Vector, matching: Matching) -> Vector:
    """`and`, `or`, `unless`."""
    nothing = np.zeros(left.values.shape[1], dtype=bool)
    filtered, other = (right, left) if op == "or" else (left, right)
    marks = _any_by_signature(other, matching)
    if not filtered.labels:
        return left
    there = np.array([marks.get(matching.signature(labels), nothing) for labels in filtered.labels])
    if op == "and":
        return left.keep(there)
    if op == "unless":
        return left.keep(~there)
    rest = right.keep(~there)
    joined = Vector(
        LabelList([*left.labels, *rest.labels]),
        np.vstack([left.values, rest.values]),
        np.vstack([left.present, rest.present]),
    )
    return join_equal(joined)


def show(labels: Labels) -> str:
    """A label set as Prometheus prints it in messages."""
    inner = ", ".join(f"{label_name(key)}={quote(value)}" for key, value in labels)
    return f"{{{inner}}}"


def _check_one_side(vector: Vector, groups: dict[Labels, list[int]], needed: Bools, side: str) -> None:
    """The one side must have at most one element per match at each step where the other side has any (`needed`, (T,))."""
    found: list[tuple[int, int, int, Labels]] = []
    for signature, rows in groups.items():
        if len(rows) < 2:
            continue
        crowded = (vector.present[rows].sum(axis=0) > 1) & needed
        if crowded.any():
            step = int(np.argmax(crowded))
            first, second = [row for row in rows if vector.present[row, step]][:2]
            found.append((step, second, first, signature))
    if not found:
        return
    _, second, first, signature = min(found)  # the one that is met first
    shown = sorted(show(vector.labels[row]) for row in (first, second))
    raise QueryError(
        f"found duplicate series for the match group {show(signature)} on the {side} hand-side of the operation: "
        f"[{shown[0]}, {shown[1]}];many-to-many matching not allowed: matching labels must be unique on one side"
    )


def _result_labels(many: Labels, one: Labels, op: str, matching: Matching) -> Labels:
    labels = dict(many)
    if op in ARITHMETIC or matching.return_bool:
        labels = {name: value for name, value in labels.items() if name not in RESERVED}
    if not matching.many:
        labels = {name: value for name, value in labels.items() if (name in matching.labels) == matching.on}
    taken = dict(one)
    for name in matching.include:
        labels[name] = taken.get(name, "")
    return freeze(labels)


def _combine(op: str, left: Floats, right: Floats, matching: Matching) -> tuple[Floats, Bools | None]:
    """Values of pairs, and which of them a comparison keeps."""
    if op in ARITHMETIC:
        return ARITHMETIC[op](left, right), None
    kept = COMPARISON[op](left, right)
    return (kept.astype(float), None) if matching.return_bool else (left, kept)


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Which elements of two vectors may meet, and what the results are called.

    Attributes:
        one: the labels of the one side that this was worked out for.
        rows, matches: places in the many side and in the one side.
        labels: of the results.
        crowds: places in the results of which at most one may be present at a step.
    """

    one: LabelList
    rows: list[int]
    matches: list[int]
    labels: LabelList
    crowds: list[list[int]]


def _pair(op: str, many: LabelList, one: Vector, matching: Matching) -> _Pairs:
    by_signature = _rows_by_signature(one, matching)
    rows: list[int] = []
    matches: list[int] = []
    labels: list[Labels] = []
    crowds: dict[object, list[int]] = {}
    for row, each in enumerate(many):
        signature = matching.signature(each)
        for match in by_signature.get(signature, ()):
            result = _result_labels(each, one.labels[match], op, matching)
            crowds.setdefault((signature, result) if matching.many else signature, []).append(len(rows))
            rows.append(row)
            matches.append(match)
            labels.append(result)
    return _Pairs(one.labels, rows, matches, LabelList(labels), [each for each in crowds.values() if len(each) > 1])


def _pairs(op: str, many: Vector, one: Vector, matching: Matching) -> _Pairs:
    key = ("pairs", op in ARITHMETIC, id(one.labels), matching)
    found = many.labels.remember(key, lambda: _pair(op, many.labels, one, matching))
    if found.one is not one.labels:  # another list at the same address
        found = many.labels.memo[key] = _pair(op, many.labels, one, matching)
    return found


def vectors(op: str, left: Vector, right: Vector, matching: Matching) -> Vector:
    """Vector with vector, arithmetic or comparison.

    Raises:
        QueryError: several elements match where one is allowed.
    """
    many, one = (right, left) if matching.many == "right" else (left, right)
    if many.labels and one.labels:
        side = "left" if matching.many == "right" else "right"
        _check_one_side(one, _rows_by_signature(one, matching), somewhere(many.present), side)
    pairs = _pairs(op, many, one, matching)
    if not pairs.rows:
        return empty(left.values.shape[1])
    first, second = (pairs.matches, pairs.rows) if matching.many == "right" else (pairs.rows, pairs.matches)
    values, kept = _combine(op, left.values[first], right.values[second], matching)
    present = many.present[pairs.rows] & one.present[pairs.matches]
    for crowd in pairs.crowds:
        if (present[crowd].sum(axis=0) > 1).any():  # before a comparison filters
            raise QueryError(f"multiple matches for labels: {_GROUPED if matching.many else _SINGLE}")
    return join_equal(Vector(pairs.labels, values, present if kept is None else present & kept))


_SINGLE = "many-to-one matching must be explicit (group_left/group_right)"
_GROUPED = "grouping labels must ensure unique matches"

__all__ = [
    "ARITHMETIC",
    "COMPARISON",
    "SETS",
    "Matching",
    "scalars",
    "sets",
    "show",
    "vectors",
    "with_scalar",
]
