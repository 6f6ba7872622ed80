"""What a kind adds to the general rules: defaults, preparation, validation, name rule. The table is in `kinds/__init__.py`."""

from collections.abc import Callable
from dataclasses import dataclass

from itbench.kube.client import Obj
from itbench.kube.kinds.check import Check
from itbench.kube.names import subdomain_errors


def no_default(obj: Obj) -> None:
    """No defaults."""


def no_prepare(new: Obj, old: Obj | None) -> None:
    """Nothing to prepare."""


def no_validate(obj: Obj, check: Check) -> None:
    """No rules."""


def no_validate_update(new: Obj, old: Obj, check: Check) -> None:
    """No rules about changes."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """The rules of one kind. All functions change or inspect plain objects in place.

    Attributes:
        default: fills in what `get -o yaml` shows; runs on every write.
        prepare: (new, old or None) server-set fields before validation.
        validate: rules for every new state.
        validate_update: rules about what may change.
        name_errors: rule for metadata.name.
        generation: whether metadata.generation is kept (changes of anything but metadata and status bump it).
    """

    default: Callable[[Obj], None] = no_default
    prepare: Callable[[Obj, Obj | None], None] = no_prepare
    validate: Callable[[Obj, Check], None] = no_validate
    validate_update: Callable[[Obj, Obj, Check], None] = no_validate_update
    name_errors: Callable[[str], list[str]] = subdomain_errors
    generation: bool = False
