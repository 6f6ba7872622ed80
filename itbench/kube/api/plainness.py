"""Bodies that are well formed and still no plain JSON of a reasonable size: YAML's keys, sets, cycles and bombs; deep nesting.

Called by `bodies` for what the parsers give.
"""

from math import isfinite
from typing import Any

from itbench.kube.decode import MAX_DEPTH
from itbench.kube.status import bad_request

MAX_VALUES = 300_000
"""Values after aliases are written out."""


class _Plain:
    """One walk over what a YAML document holds."""

    def __init__(self) -> None:
        self._left = MAX_VALUES

    def value(self, value: Any, depth: int = 0) -> Any:
        self._left -= 1
        if self._left < 0 or depth > MAX_DEPTH:
            raise bad_request("error converting YAML to JSON: yaml: document contains excessive aliasing")
        if isinstance(value, dict):
            return {_key(key): self.value(row, depth + 1) for key, row in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(row, depth + 1) for row in value]
        if isinstance(value, set):
            return {_key(key): None for key in sorted(value, key=str)}
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        if isinstance(value, float) and not isfinite(value):
            raise bad_request(f"json: unsupported value: {value}")
        if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**64:
            return float(value) if abs(value) < 10**300 else _refuse_number()
        return value


def _refuse_number() -> float:
    raise bad_request("error converting YAML to JSON: yaml: number out of range")


def _key(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, str | int | float):
        return str(key)
    raise bad_request(f"error converting YAML to JSON: yaml: invalid map key: {key!r:.80}")


def plain(value: Any) -> Any:
    """What a YAML parser gave as JSON values, aliases written out; raises ApiError 400."""
    return _Plain().value(value)
