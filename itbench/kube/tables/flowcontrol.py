"""Rows of FlowSchemas and PriorityLevelConfigurations."""

from itbench.kube.client import Obj
from itbench.kube.tables.cells import NONE, Cells, age


def precedence(obj: Obj) -> tuple[int, str]:
    """The order in which flow schemas are asked, and shown."""
    return int((obj.get("spec") or {}).get("matchingPrecedence", 0)), obj["metadata"]["name"]


def schema(obj: Obj) -> Cells:
    """Priority level, precedence, how flows are told apart, whether the level is missing."""
    spec = obj.get("spec") or {}
    found = (obj.get("status") or {}).get("conditions") or ()
    dangling = next((row["status"] for row in found if row["type"] == "Dangling"), "?")
    method = (spec.get("distinguisherMethod") or {}).get("type", NONE)
    level = (spec.get("priorityLevelConfiguration") or {}).get("name", "")
    return [obj["metadata"]["name"], level, spec.get("matchingPrecedence", 0), method, age(obj), dangling]


def level(obj: Obj) -> Cells:
    """Type, shares, and the queues where there are some."""
    spec = obj.get("spec") or {}
    limited = spec.get("limited") or {}
    queuing = (limited.get("limitResponse") or {}).get("queuing") or {}
    shares = limited.get("nominalConcurrencyShares", NONE)
    queues = [queuing.get(name, NONE) for name in ("queues", "handSize", "queueLengthLimit")]
    return [obj["metadata"]["name"], spec.get("type", ""), shares, *queues, age(obj)]
