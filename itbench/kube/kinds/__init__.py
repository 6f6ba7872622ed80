"""Rules per kind. The registry asks `behaviour(storage)`; kinds without a row follow the general rules only."""

from itbench.kube.kinds.base import Behaviour

_PLAIN = Behaviour()
_CUSTOM = Behaviour(generation=True)
_TABLE: dict[str, Behaviour] = {}


def behaviour(storage: str, *, custom: bool = False) -> Behaviour:
    """The rules of a resource, by its key in the store."""
    return _TABLE.get(storage) or (_CUSTOM if custom else _PLAIN)
