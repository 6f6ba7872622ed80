"""Machine code that numba made, linked into the process and called without numba. Used by `compiled`.

A compiled function takes two pointers (for its result and for an exception), then its arguments, and returns 0 when all is well.
A tuple is its members, an array is: owner, parent, elements, size of one, address, shape, strides (numba's `ArrayModel`).
The kernel returns nothing and raises nothing; a test compares what its code does with its sources, interpreted.
"""

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from itbench.world.flow.layout import Floats, Ints, State

EXTERNAL = ("cbrt", "exp", "memset")
"""What the kernel's code calls from the C library."""
_engines: list[Any] = []
"""They own the memory of linked code, which stays for the life of the process."""


@dataclass(frozen=True, slots=True)
class Code:
    """One object file and the name of the function in it."""

    name: str
    data: bytes


def host() -> str:
    """The processor that code is made for."""
    import llvmlite.binding as llvm

    return f"{llvm.get_process_triple()} {llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"


def link(code: Code) -> int:
    """Put object code into the process; returns the function's address."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name in EXTERNAL:
        llvm.add_symbol(name, ctypes.cast(getattr(_mathematics(), name), ctypes.c_void_p).value)
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True, codemodel="jitdefault")
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code.data))
    engine.finalize_object()
    _engines.append(engine)
    return int(engine.get_function_address(code.name))


def _mathematics() -> ctypes.CDLL:
    """Where Python's own functions of floats come from, which brings the C library along."""
    import math

    return ctypes.CDLL(getattr(math, "__file__", None))


def bind(address: int, state: State) -> Callable[[float, float], None]:
    """The function at an address, for one state whose arrays stay where they are."""
    words = [word for array in state for word in _words(array)]
    kinds = [ctypes.c_void_p] * 2 + [ctypes.c_int64] * len(words) + [ctypes.c_double] * 2
    function = ctypes.CFUNCTYPE(ctypes.c_int32, *kinds)(address)
    result, error = ctypes.c_void_p(), ctypes.c_void_p()
    first = (ctypes.addressof(result), ctypes.addressof(error), *words)

    def run(until: float, fixed: float, _alive: tuple[Any, ...] = (state, result, error)) -> None:
        if (status := function(*first, until, fixed)) != 0:
            raise RuntimeError(f"the flow kernel ended with status {status}")

    return run


def _words(array: Floats | Ints) -> Iterator[int]:
    if not array.flags.c_contiguous:
        raise ValueError("an array of the flow is not in one piece")
    yield from (0, 0, array.size, array.itemsize, array.ctypes.data)
    yield from array.shape
    yield from array.strides
