"""The values that PromQL expressions have, over all steps at once, and the results that leave the engine."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import isinf, isnan
from typing import Literal

import numpy as np

from itbench.core.errors import UsageError
from itbench.telemetry.labels import RESERVED, LabelList, Labels
from itbench.telemetry.metrics import Bools, Floats
from itbench.telemetry.promql.gotext import shown


class QueryError(UsageError):
    """A query that cannot be parsed (`bad_data`) or evaluated (`execution`); the text is that of Prometheus."""

    def __init__(self, text: str, kind: Literal["bad_data", "execution"] = "execution") -> None:
        self.kind = kind
        super().__init__(shown(text))


SAME_LABELSET = "vector cannot contain metrics with the same labelset"


@dataclass(slots=True)
class Vector:
    """Instant vectors over T steps: S series, each present at some steps.

    Attributes:
        labels: one label set per series.
        values: shape (S, T); meaningless where not present.
        present: shape (S, T).
    """

    labels: LabelList
    values: Floats
    present: Bools

    def keep(self, present: Bools) -> "Vector":
        """Only the elements that are also in `present`."""
        return Vector(self.labels, self.values, self.present & present)

    def rows(self, which: Sequence[int]) -> "Vector":
        """Only these series, in this order."""
        picked = list(which)
        return Vector(LabelList(self.labels[row] for row in picked), self.values[picked], self.present[picked])

    def unnamed(self) -> "Vector":
        """Without metric names; label sets that become equal are joined (see `join_equal`)."""
        labels = self.labels.remember("unnamed", lambda: LabelList(drop_name(each) for each in self.labels))
        return join_equal(Vector(labels, self.values, self.present))


Value = Vector | Floats | str
"""What an expression other than a range has: vectors, a scalar per step (T,), or a string."""


def somewhere(present: Bools) -> Bools:
    """At which steps any series is present: (S, T) -> (T,)."""
    return np.asarray(np.any(present, axis=0))


def empty(steps: int) -> Vector:
    """No series."""
    return Vector(LabelList(), np.empty((0, steps)), np.empty((0, steps), dtype=bool))


def drop_name(labels: Labels) -> Labels:
    """The label set without what describes the metric: name, type, and unit."""
    return tuple(pair for pair in labels if pair[0] not in RESERVED)


def join_equal(vector: Vector, error: str = SAME_LABELSET) -> Vector:
    """One series per label set.

    Raises:
        QueryError: two series with equal labels are present at the same step.
    """
    groups = vector.labels.remember("equal", lambda: _equal(vector.labels))
    if groups is None:
        return vector
    values = np.empty((len(groups), vector.values.shape[1]))
    present = np.zeros(values.shape, dtype=bool)
    for target, rows in enumerate(groups.values()):
        for row in rows:
            here = vector.present[row]
            if (present[target] & here).any():
                raise QueryError(error)
            values[target, here] = vector.values[row, here]
            present[target] |= here
    return Vector(LabelList(groups), values, present)


def _equal(labels: LabelList) -> dict[Labels, list[int]] | None:
    """Rows by label set; None where all are different."""
    groups: dict[Labels, list[int]] = {}
    for row, each in enumerate(labels):
        groups.setdefault(each, []).append(row)
    return None if len(groups) == len(labels) else groups


def format_float(value: float) -> str:
    """A number as Prometheus prints it in JSON: shortest form, exponents only below 1e-6 and from 1e21 on."""
    if isnan(value):
        return "NaN"
    if isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    text = repr(float(value))
    if "e" in text:
        if not 1e-6 <= abs(value) < 1e21:
            mantissa, exponent = text.split("e")
            return f"{mantissa.removesuffix('.0')}e{exponent}"
        text = format(Decimal(text), "f")
    return text.removesuffix(".0")


def format_plain(value: float) -> str:
    """A number as `count_values` and rule templates print it: shortest form, never an exponent."""
    text = format_float(value)
    return format(Decimal(text), "f") if "e" in text else text


@dataclass(frozen=True, slots=True)
class Series:
    """One series of a result: times in world seconds and values, both shape (n,)."""

    labels: Labels
    t: Floats
    v: Floats


@dataclass(frozen=True, slots=True)
class Result:
    """The answer to a query.

    Attributes:
        kind: `vector`, `matrix`, `scalar` or `string`, as the HTTP API names them.
        series: of a vector one sample each; of a scalar one series without labels.
        text: of a string.
        at: world second of evaluation (the end of a range query).
        warnings, infos: what the evaluation had to say about itself.
    """

    kind: Literal["vector", "matrix", "scalar", "string"]
    series: tuple[Series, ...]
    at: float
    text: str = ""
    warnings: tuple[str, ...] = ()
    infos: tuple[str, ...] = ()

    def values(self) -> dict[Labels, float]:
        """The last value of each series."""
        return {each.labels: float(each.v[-1]) for each in self.series}
