"""The fault and noise documents: what one folder under `playbooks/faults` or `playbooks/noise` declares about itself."""

from typing import Any, Literal

from pydantic import Field

from itbench.core.documents.base import Document, Duration

Environment = Literal["embedded", "attached", "live"]


class Argument(Document):
    """One argument of a fault, in JSON-Schema words."""

    type: Literal["string", "number", "integer", "boolean", "duration", "array"] = "string"
    description: str
    required: bool = False
    default: Any = None
    enum: tuple[Any, ...] = ()


class Fault(Document):
    """`fault.yaml`: a cause (or, for noise, a non-cause), where it acts and what it shows."""

    schema_: Literal["itbench/fault/v1"] = Field(alias="schema")
    id: str = Field(pattern=r"^[a-z0-9-]+$")
    title: str
    does: str
    layer: str
    mechanism: str = ""
    targets: tuple[str, ...] = ()
    """Kinds it can act on, such as `deployment`, `service`, `configmap`; empty: no target."""
    makes: bool = False
    """The target is not there before: the fault makes it."""
    args: dict[str, Argument] = {}
    symptoms: tuple[str, ...] = ()
    within: Duration = 300.0
    environments: tuple[Environment, ...] = ("embedded", "attached", "live")
    trigger: bool = False
    """The disturbance is over at hand-over; the root cause is the vulnerable object."""
    noise: bool = False
    sources: tuple[str, ...] = ()
