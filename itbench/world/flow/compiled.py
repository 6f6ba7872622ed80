"""Loads the kernel's machine code and decides where it is kept; numba is imported only where there is none yet.

numba takes a second to import and to read its own cache, llvmlite a tenth of that. So the object code that numba made is kept in
a file of its own, under a digest of everything that decides what it says, and called as numba itself calls it (`native`).
"""

import hashlib
import importlib.metadata
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from itbench.world.flow.layout import State
from itbench.world.flow.native import Code, bind, host, link

SOURCES = (
    "backward.py",
    "forward.py",
    "jit.py",
    "kernel.py",
    "layout.py",
    "native.py",
    "outcomes.py",
    "rings.py",
    "spec.py",
)
Run = Callable[[float, float], None]
"""Advances a state to a time, in steps of so many seconds (0: adaptive ones)."""


def cache_dirs() -> list[Path]:
    """Candidates, best first: beside the package, then the cache directory of the user."""
    here = Path(__file__).parent
    parts = [(here / name).read_bytes() for name in SOURCES]
    parts += [importlib.metadata.version(name).encode() for name in ("numba", "llvmlite")]
    digest = hashlib.sha256(b"\0".join([*parts, host().encode()])).hexdigest()[:12]
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return [here / "__pycache__" / f"flow-{digest}", home / "itbench" / f"flow-{digest}"]


def _writable(path: Path) -> bool:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(path, os.W_OK | os.X_OK)


def first_writable(paths: list[Path]) -> Path | None:
    """The first of these directories that exists or can be made, and can be written."""
    return next((path for path in paths if _writable(path)), None)


def kept(folder: Path) -> Code | None:
    """The code in a folder, or None when there is none that is whole."""
    try:
        head, name, data = (folder / "kernel").read_bytes().split(b"\n", 2)
    except (OSError, ValueError):
        return None
    return Code(name.decode(), data) if head.decode() == hashlib.sha256(data).hexdigest() else None


def keep(folder: Path, code: Code) -> None:
    """Write the code, whole or not at all: processes may compile at the same time."""
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
        file.write(f"{hashlib.sha256(code.data).hexdigest()}\n{code.name}\n".encode() + code.data)
    Path(file.name).chmod(0o644)  # whoever may use the package may read what was compiled for it
    Path(file.name).replace(folder / "kernel")


def _compile() -> Code:
    from itbench.world.flow.kernel import machine_code  # imports numba

    return machine_code()


@cache
def _address() -> int:
    """The kernel in this process: from a cache, or compiled (and kept where something can be written)."""
    dirs = cache_dirs()
    code = next((found for folder in dirs if (found := kept(folder)) is not None), None)
    if code is None:
        code = _compile()
        if (folder := first_writable(dirs)) is not None:
            keep(folder, code)
    return link(code)


def link_kept() -> None:
    """Put the kernel into this process if its code is kept somewhere; processes that are forked from it have it too."""
    if any(kept(folder) is not None for folder in cache_dirs()):
        _address()


def load_kernel(state: State) -> Run:
    """The kernel for one state, compiled on first use."""
    return bind(_address(), state)
