"""The two ways a function of the kernel is compiled. Only kernel modules import this, and with it numba.

Without numba's reference counting (`_nrt`): kernels allocate nothing and only borrow the caller's arrays, and counting every
array of the state at every call of a helper took two thirds of the time. Helpers get no wrappers for Python: shorter compilation.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

_njit: Any = numba.njit
F = TypeVar("F", bound=Callable[..., object])

_COMMON: dict[str, Any] = {"_nrt": False, "error_model": "numpy"}


def compiled(function: F) -> F:
    """A helper that only other compiled functions call."""
    return cast(F, _njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **_COMMON)(function))


def entry(function: F) -> F:
    """What Python calls; its machine code, helpers included, is kept in the cache directory if there is one."""
    try:
        return cast(F, _njit(cache=True, **_COMMON)(function))
    except RuntimeError:  # numba finds no directory it may write to: compile in every process
        return cast(F, _njit(**_COMMON)(function))
