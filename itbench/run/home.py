"""Where itbench keeps what outlives a command, and the environment of its processes. Light: a command's first step."""

import os
from pathlib import Path


def cache_home() -> Path:
    """`$XDG_CACHE_HOME/itbench`, by default `~/.cache/itbench`."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "itbench"


def worker_environment() -> dict[str, str]:
    """The environment of worker processes. Who wants no bytecode beside sources gets it in our cache: compiling costs seconds."""
    environment = dict(os.environ)
    if environment.pop("PYTHONDONTWRITEBYTECODE", ""):
        environment["PYTHONPYCACHEPREFIX"] = str(cache_home() / "bytecode")
    return environment
