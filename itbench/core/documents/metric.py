"""The metric card: a definition with worked examples that the test suite executes against `itbench.evaluate`."""

from typing import Any, Literal

from pydantic import Field

from itbench.core.documents.base import Document


class Example(Document):
    """Inputs of the implementation and the value it must give (`approx`: relative tolerance)."""

    inputs: dict[str, Any]
    expected: Any
    approx: float = 1e-9


class MetricCard(Document):
    """`metrics/<domain>/<name>.yaml`."""

    schema_: Literal["itbench/metric/v1"] = Field(alias="schema")
    name: str
    title: str
    definition: str
    formula: str
    unit: str
    range: tuple[float | None, float | None]
    direction: Literal["higher", "lower", "neither"]
    interpretation: str
    pitfalls: tuple[str, ...] = ()
    source: str
    examples: tuple[Example, ...] = Field(min_length=1)
