"""Rules in CEL (`x-kubernetes-validations`); called by `model`."""

from itbench.kube.client import Obj
from itbench.kube.custom.schemas import Schema
from itbench.kube.status import Cause


def check(new: Obj, old: Obj | None, part: Schema, *, blocked: bool) -> list[Cause]:
    """Causes of all rules that fail."""
    return []


def check_declared(part: Schema, where: str) -> list[Cause]:
    """Causes against the rules that a schema declares."""
    return []
