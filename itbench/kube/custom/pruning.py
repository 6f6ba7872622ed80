"""Removal of fields that a structural schema does not know, and of what is no metadata; called by `model` on every decode."""

from typing import Any

from itbench.kube.client import Obj
from itbench.kube.custom.schemas import ROOT, Schema, child_of, is_embedded, keeps_unknown
from itbench.kube.decode import WrongType, clone, decode_metadata
from itbench.kube.kinds.check import printed

_WHOLE = 1e21
"""Below this the real server prints whole numbers without fraction or exponent."""


class Pruner:
    """One walk over one object.

    Attributes:
        unknown: paths of what was removed, such as `spec.list[0].extra`.
    """

    def __init__(self, *, raw: bool = False) -> None:
        self.raw = raw
        self.unknown: list[str] = []

    def root(self, obj: Obj, part: Schema) -> Obj:
        """A copy of a whole object; raises WrongType where metadata or an embedded object is malformed."""
        return self._resource(obj, part, "")

    def _resource(self, obj: Obj, part: Schema, path: str) -> Obj:
        known = {key: value for key, value in (part.get("properties") or {}).items() if key not in ROOT}
        rest = {key: value for key, value in obj.items() if key not in ROOT}
        out = self._object(rest, {**part, "properties": known}, path)
        for key in ROOT:
            if key in obj and (obj[key] is not None or path):
                out[key] = self._root_field(key, obj[key], path)
        return out

    def _root_field(self, key: str, value: Any, path: str) -> Any:
        where = f"{path}.{key}" if path else key
        if key != "metadata":
            if path and not isinstance(value, str):
                raise WrongType(f"{where}: Invalid value: {printed(value)}: must be a string")
            return value
        found, unknown = decode_metadata(value, raw=self.raw)
        self.unknown += [f"{where}.{name}" for name in unknown]
        return found

    def _object(self, value: Obj, part: Schema, path: str) -> Obj:
        out: Obj = {}
        keep = keeps_unknown(part)
        for key, below in value.items():
            where = f"{path}.{key}" if path else key
            schema = child_of(part, key)
            if schema is not None:
                out[key] = self.value(below, schema, where)
            elif keep:
                out[key] = clone(below)
            else:
                self.unknown.append(where)
        return out

    def value(self, value: Any, part: Schema, path: str) -> Any:
        """A copy of any value below the root."""
        if isinstance(value, dict):
            if is_embedded(part):
                return self._resource(value, part, path)
            if part.get("type") not in ("object", None, "") and not keeps_unknown(part):
                return clone(value)  # wrong type: validation says so
            return self._object(value, part, path)
        if isinstance(value, list):
            items = part.get("items")
            if not isinstance(items, dict):
                return clone(value)
            return [self.value(row, items, f"{path}[{index}]") for index, row in enumerate(value)]
        if type(value) is float and value.is_integer() and abs(value) < _WHOLE:
            return int(value)
        return value


def prune(obj: Obj, part: Schema) -> Obj:
    """An object with only what the schema knows."""
    return Pruner().root(obj, part)
