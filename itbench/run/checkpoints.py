"""Staged estates kept on disk under a hash of everything that made them. Agents can neither read nor write the folder."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import itbench
from itbench.library.store import Found, Library
from itbench.run.files import write_atomic
from itbench.run.home import cache_home

SOURCES = ("core", "kube", "world", "telemetry", "cloud", "stage", "run")
"""Packages whose sources decide what a staged estate looks like."""


def tree_digest(paths: Iterable[Path]) -> str:
    """Digest of files and folders: names and contents, independent of order, without compiled files."""
    lines = []
    for path in paths:
        files = [path] if path.is_file() else (file for file in path.rglob("*") if file.is_file())
        for file in files:
            if "__pycache__" not in file.parts:
                name = file.relative_to(path.parent)
                lines.append(f"{name}\0{hashlib.sha256(file.read_bytes()).hexdigest()}")
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


@cache
def sources_digest() -> str:
    """Digest of the packages that decide what a staged estate looks like."""
    home = Path(itbench.__file__).parent
    return tree_digest(home / name for name in SOURCES)


def inputs_digest(found: Found, library: Library) -> str:
    """Digest of the scenario's folder and of all playbooks."""
    playbooks = [root / "playbooks" for root in library.roots if (root / "playbooks").is_dir()]
    return tree_digest([found.folder, *playbooks])


@dataclass(frozen=True)
class Checkpoint:
    """One staged estate on disk."""

    file: Path

    def read(self) -> Any:
        """The saved data, or None when there is none (or it is damaged, which removes it)."""
        from itbench.core import codec  # brings numpy, which whoever only asks for digests does without

        try:
            return codec.loads(self.file.read_bytes())
        except OSError:
            return None
        except ValueError:
            self.drop()
            return None

    def write(self, data: Any) -> None:
        """Keep plain data."""
        from itbench.core import codec

        self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_atomic(self.file, codec.dumps(data))

    def drop(self) -> None:
        """Forget it."""
        self.file.unlink(missing_ok=True)


def checkpoint(found: Found, library: Library, seed: int) -> Checkpoint:
    """The checkpoint of a scenario and seed under the present library and sources."""
    key = hashlib.sha256(
        f"{inputs_digest(found, library)}/{sources_digest()}/{seed}/{found.scenario.id}".encode()
    ).hexdigest()
    return Checkpoint(cache_home() / "checkpoints" / f"{found.scenario.id}-{key[:24]}")
