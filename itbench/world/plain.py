"""Dataclasses <-> plain data, for the state of the world that checkpoints keep.

Fields may be plain values, other dataclasses, and lists and dictionaries of them; nothing else can be packed, so no handle
or closure slips into saved state. Called by the `save` and `load` of kubelets, probes and the estate.
"""

from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

T = TypeVar("T")
_HINTS: dict[type, dict[str, Any]] = {}


def pack(value: Any) -> Any:
    """Plain data of a value.

    Raises:
        TypeError: something that is neither plain nor a dataclass.
    """
    if value is None or isinstance(value, bool | int | float | str | bytes | np.ndarray):
        return value
    if isinstance(value, list | tuple):
        return [pack(item) for item in value]
    if isinstance(value, dict):
        return {key: pack(item) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: pack(getattr(value, field.name)) for field in fields(value)}
    raise TypeError(f"not plain data: {type(value).__name__}")


def unpack(kind: type[T], data: Any) -> T:
    """The dataclass that `pack` made plain."""
    return cast(T, _build(kind, data))


def _build(kind: Any, data: Any) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        rest = [item for item in arguments if item is not NoneType]
        return data if data is None or len(rest) != 1 else _build(rest[0], data)
    if origin is list:
        return [_build(arguments[0], item) for item in data]
    if origin is tuple:
        kinds = [arguments[0]] * len(data) if arguments[-1] is Ellipsis else arguments
        return tuple(_build(each, item) for each, item in zip(kinds, data, strict=True))
    if origin is dict:
        return {key: _build(arguments[1], item) for key, item in data.items()}
    if isinstance(kind, type) and is_dataclass(kind):
        return kind(**{name: _build(hint, data[name]) for name, hint in _hints(kind).items()})
    return data


def _hints(kind: type) -> dict[str, Any]:
    if kind not in _HINTS:
        named = get_type_hints(kind)
        _HINTS[kind] = {field.name: named[field.name] for field in fields(cast(Any, kind))}
    return _HINTS[kind]
