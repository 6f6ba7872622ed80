"""Dataclasses <-> plain data, for the state of the world that checkpoints keep.

Fields may be plain values, other dataclasses, and lists and dictionaries of them; nothing else can be packed, so no handle
or closure slips into saved state. Called by the `save` and `load` of kubelets, probes and the estate.
"""

from collections.abc import Callable, Hashable
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

T = TypeVar("T")
Build = Callable[[Any], Any]
"""Makes a value from its plain data."""
_PLAIN = frozenset((NoneType, bool, int, float, str, bytes, np.ndarray))


def pack(value: Any) -> Any:
    """Plain data of a value.

    Raises:
        TypeError: something that is neither plain nor a dataclass.
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is list or kind is tuple:
        return [item if type(item) in _PLAIN else pack(item) for item in value]
    if kind is dict:
        return {key: item if type(item) in _PLAIN else pack(item) for key, item in value.items()}
    if (names := _names(cast(Hashable, kind))) is not None:
        return {name: pack(getattr(value, name)) for name in names}
    return _pack_derived(value)


def _pack_derived(value: Any) -> Any:
    """Values whose types derive from plain ones."""
    if isinstance(value, bool | int | float | str | bytes | np.ndarray):
        return value
    if isinstance(value, list | tuple):
        return [pack(item) for item in value]
    if isinstance(value, dict):
        return {key: pack(item) for key, item in value.items()}
    raise TypeError(f"not plain data: {type(value).__name__}")


@cache
def _names(kind: Hashable) -> tuple[str, ...] | None:
    """The fields of a dataclass, None for other types."""
    return tuple(field.name for field in fields(cast(Any, kind))) if is_dataclass(kind) else None


def unpack(kind: type[T], data: Any) -> T:
    """The dataclass that `pack` made plain."""
    build = _builder(cast(Hashable, kind))
    return cast(T, data if build is None else build(data))


@cache
def _builder(kind: Any) -> Build | None:
    """How values of an annotation are made; None where the plain data is the value."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        rest = [item for item in arguments if item is not NoneType]
        build = _builder(rest[0]) if len(rest) == 1 else None
        return None if build is None else _optional(build)
    if origin is list:
        return _many(_builder(arguments[0]), list)
    if origin is tuple:
        return _tuple(arguments)
    if origin is dict:
        build = _builder(arguments[1])
        return dict if build is None else lambda data: {key: build(item) for key, item in data.items()}
    return _dataclass(kind) if isinstance(kind, type) and is_dataclass(kind) else None


def _optional(build: Build) -> Build:
    return lambda data: None if data is None else build(data)


def _many(build: Build | None, kind: Callable[[Any], Any]) -> Build:
    return kind if build is None else lambda data: kind([build(item) for item in data])


def _tuple(arguments: tuple[Any, ...]) -> Build:
    if arguments[-1] is Ellipsis:
        return _many(_builder(arguments[0]), tuple)
    builds = [_builder(each) or _same for each in arguments]
    return lambda data: tuple(build(item) for build, item in zip(builds, data, strict=True))


def _same(data: Any) -> Any:
    return data


def _dataclass(kind: type) -> Build:
    named = get_type_hints(kind)
    builds = {field.name: _builder(named[field.name]) for field in fields(cast(Any, kind))}
    parts = list(builds.items())

    def make(data: Any) -> Any:
        return kind(**{name: data[name] if build is None else build(data[name]) for name, build in parts})

    return make
