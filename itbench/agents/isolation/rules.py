"""What a confined agent may see: everything on the machine but what is hidden from it. Called by `itbench.agents.isolation`.

Landlock can only allow, never subtract. To hide a folder, each sibling along the path from the root to it is allowed instead,
and no folder on that path; so those folders cannot be listed either.
"""

import os
import pwd
import site
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import itbench

_DEVICES = ("null", "zero", "full", "random", "urandom")
_PROC = ("cpuinfo", "meminfo", "stat", "uptime", "loadavg", "version", "filesystems", "sys")
"""Of /proc only what programs need to know the machine: other processes' command lines name scenarios."""
_SHARED = ("/tmp", "/var/tmp", "/dev", "/proc", "/run/user")
_KEYS = (
    *(".kube", ".aws", ".ssh", ".gnupg", ".azure", ".docker", ".oci", ".terraform.d", ".password-store"),
    *(".config/gcloud", ".config/gh", ".config/containers", ".config/git/credentials"),
    *(".netrc", ".git-credentials", ".npmrc", ".pypirc", ".pgpass", ".vault-token"),
)
"""Where programs keep keys in a home by default."""
_HOME = (*_KEYS, ".cache/itbench", ".cache/uv", ".cache/pip", ".bash_history")


@dataclass(frozen=True, slots=True)
class Confinement:
    """What an agent's process may reach, besides the programs and libraries of the machine."""

    mode: str = "auto"
    """`auto`, `landlock` or `none`."""
    hidden: tuple[Path, ...] = ()
    """Never readable: library, checkpoints, runs, the trial's own folder."""
    readable: tuple[Path, ...] = ()
    """Readable even inside hidden folders: the agent's own program and folders; what is hidden below them stays hidden."""
    writable: tuple[Path, ...] = ()
    """The workspace, the agent's home and its temporary folder."""
    ports: tuple[int, ...] = ()
    """TCP ports of the trial."""
    disk: int = 4 << 30
    """Bytes that all it writes may take."""


def always_hidden(package: Path, home: Path | None = None) -> tuple[Path, ...]:
    """Places that no agent may read in any trial.

    Args:
        package: the folder of the `itbench` package; in a checkout all that lies beside it is hidden but virtual environments.
        home: the user's home, whose keys and caches are hidden; None for the real ones: what $HOME says and what the system
            knows, which differ where somebody set the first.
    """
    root = package.parent
    homes = {home} if home else {Path.home(), Path(pwd.getpwuid(os.getuid()).pw_dir)}
    hidden = [Path(place) for place in _SHARED]
    hidden += [place / name for place in sorted(homes) for name in _HOME]
    prefixes = {sys.prefix, sys.base_prefix, site.getuserbase(), "/usr", "/usr/local"}
    shares = [Path(prefix) / "share" / "itbench" for prefix in sorted(prefixes)]
    hidden += [share for share in shares if share.exists()]
    if (root / "pyproject.toml").exists():
        hidden += [item for item in sorted(root.iterdir()) if item != package and not (item / "pyvenv.cfg").exists()]
    return tuple(hidden)


def visible(hidden: Iterable[Path], root: Path = Path("/")) -> list[Path]:
    """The smallest set of files and folders below `root` that shows everything but `hidden`.

    Links are left out: a rule on a link would be one on its target, which has its own.
    """
    targets = {path.resolve() for path in hidden}
    paths = {path for target in targets for path in target.parents}
    if root in targets:
        return []
    if root not in paths:
        return [root]
    found: list[Path] = []
    try:
        entries = sorted(root.iterdir())
    except OSError:
        return []
    for entry in entries:
        if entry.is_symlink() or entry in targets:
            continue
        found += visible(targets, entry) if entry in paths else [entry]
    return found


def runtime() -> tuple[Path, ...]:
    """What a Python process needs to start, wherever it is installed: interpreter, packages, the itbench package."""
    return (Path(sys.prefix), Path(sys.base_prefix), Path(itbench.__file__).parent)


def readable_paths(confinement: Confinement) -> list[str]:
    """All that the agent may read."""
    seen = visible(confinement.hidden)
    for path in (*runtime(), *confinement.readable):
        given = path.resolve()
        seen += visible([item for item in confinement.hidden if given in item.resolve().parents], given)
    seen += [Path("/proc") / name for name in _PROC]
    return [str(path) for path in seen]


def writable_paths(confinement: Confinement) -> list[str]:
    """All that the agent may change."""
    return [str(path.resolve()) for path in confinement.writable] + [f"/dev/{name}" for name in _DEVICES]
