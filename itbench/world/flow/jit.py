"""The two ways a function of the kernel is compiled. Only kernel modules import this, and with it numba."""

from collections.abc import Callable
from typing import TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """A helper that only other compiled functions call: no wrappers for Python, which keeps compilation short."""
    return cast(F, njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")(function))


def entry(function: F) -> F:
    """What Python calls; its machine code, helpers included, is kept in the cache directory if there is one."""
    try:
        return cast(F, njit(cache=True, error_model="numpy")(function))
    except RuntimeError:  # numba finds no directory it may write to: compile in every process
        return cast(F, njit(error_model="numpy")(function))
