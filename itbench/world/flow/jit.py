"""How functions of the kernel are compiled. Only kernel modules import this, and with it numba.

Without numba's reference counting (`_nrt`): kernels allocate nothing and only borrow the caller's arrays, and counting every
array of the state at every call of a helper took two thirds of the time. Helpers get no wrappers for Python: shorter compilation.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

from itbench.world.flow.layout import State
from itbench.world.flow.native import Code

_njit: Any = numba.njit
F = TypeVar("F", bound=Callable[..., object])

_COMMON: dict[str, Any] = {"_nrt": False, "error_model": "numpy"}
_INLINE = frozenset(
    ["answer", "called", "clock", "depart", "erlang_c", "fail", "lose", "miss", "settle", "size_up", "spread", "touch"]
)
"""Small helpers that run for every row: a call hands over some fifty words, the parts of the state's arrays."""


def compiled(function: F) -> F:
    """A helper that only other compiled functions call."""
    inline = function.__name__ in _INLINE
    return cast(F, _njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=inline, **_COMMON)(function))


def machine_code(function: Callable[[State, float, float], None]) -> Code:
    """Compile a function that only others call, all its helpers included, as object code that needs no numba."""
    types: Any = numba.types
    floats, ints = types.float64, types.int64
    dimensions = {"k": ints[:, ::1], "x": floats[:, ::1], "rows": floats[:, :, ::1], "rings": floats[:, :, ::1]}
    dimensions |= {"news": ints[:, ::1], "hist": floats[:, :, ::1], "erl": floats[:, ::1]}
    state = types.NamedTuple([dimensions[name] for name in State._fields], State)
    kernel: Any = function
    kernel.compile((state, floats, floats))
    made = kernel.overloads[(state, floats, floats)]
    return Code(made.fndesc.llvm_func_name, made.library.serialize_using_object_code()[2][0])
