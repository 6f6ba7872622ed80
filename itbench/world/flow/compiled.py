"""Loads the compiled kernel and decides where its machine code is kept; numba is imported here and nowhere earlier.

The cache directory carries a digest of the sources, because numba itself would not notice a change in a helper or a constant.
"""

import hashlib
import importlib
import os
from pathlib import Path
from types import ModuleType
from typing import Any

SOURCES = ("backward.py", "forward.py", "jit.py", "kernel.py", "layout.py", "outcomes.py", "rings.py", "spec.py")


def cache_dirs() -> list[Path]:
    """Candidates, best first: beside the package, then the cache directory of the user."""
    here = Path(__file__).parent
    digest = hashlib.sha256(b"".join((here / name).read_bytes() for name in SOURCES)).hexdigest()[:12]
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return [here / "__pycache__" / f"flow-{digest}", home / "itbench" / f"flow-{digest}"]


def _writable(path: Path) -> bool:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(path, os.W_OK | os.X_OK)


def first_writable(paths: list[Path]) -> str | None:
    """The first of these directories that exists or can be made, and can be written."""
    return next((str(path) for path in paths if _writable(path)), None)


def load_kernel() -> ModuleType:
    """The module `kernel`, compiled on first use (from the cache where one can be written, else once per process)."""
    import numba

    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = first_writable(cache_dirs()) or before
    try:
        return importlib.import_module("itbench.world.flow.kernel")
    finally:
        config.CACHE_DIR = before
