"""Where itbench keeps what outlives a command, and the environment of its processes. Light: a command's first step."""

import os
from pathlib import Path


def cache_home() -> Path:
    """`$XDG_CACHE_HOME/itbench`, by default `~/.cache/itbench`."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "itbench"


def ready_cache() -> None:
    """Make the cache folder, before anything is stood up.

    Raises:
        UsageError: it cannot be made or written.
    """
    from itbench.core.errors import UsageError

    folder = cache_home()
    probe = folder / f".probe-{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        hint = f"{error.strerror}; set XDG_CACHE_HOME"
        raise UsageError(
            "cannot use the cache folder", seen=str(folder), expected="a writable place", hint=hint
        ) from error


def worker_environment() -> dict[str, str]:
    """The environment of worker processes. Who wants no bytecode beside sources gets it in our cache: compiling costs seconds."""
    environment = dict(os.environ)
    if environment.pop("PYTHONDONTWRITEBYTECODE", ""):
        environment["PYTHONPYCACHEPREFIX"] = str(cache_home() / "bytecode")
    return environment
