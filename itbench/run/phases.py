"""What a trial leaves on disk while it runs: phases to go on from after a crash, earlier attempts, secrets that must not stay.

From the agent's end on, each phase that took its time is kept in the private folder; a trial that is started again in the same
folder goes on from the last one. Before that a crash costs the attempt: its files move to `attempts/<n>/` and a new one begins.
Called by `trial`.
"""

import contextlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from itbench.core import codec
from itbench.core.ids import digest
from itbench.run.files import canonical, write_atomic
from itbench.run.home import cache_home

ORDER = ("settled", "submit")
"""Phases that can be gone on from, the latest first."""
ATTEMPTS = "attempts"


def room(home: Path) -> Path:
    """Where a trial works: a folder whose name tells an agent nothing, the same whenever the same trial is started again."""
    return cache_home() / "trials" / digest("room", home.resolve()).hex()[:16]


@dataclass(frozen=True)
class Places:
    """Where one trial keeps things.

    Args:
        home: folder of the trial; None when nothing is to stay (`prove`).
        private: what no agent can read.
        workspace: what the agent may write.
    """

    home: Path | None
    private: Path
    workspace: Path

    def keep(self, phase: str, data: Any) -> None:
        """Keep plain data under the name of a phase; nothing when the trial has no folder."""
        if self.home is not None:
            self.private.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_atomic(self._file(phase), codec.dumps(data, level=0))

    def last(self) -> tuple[str, Any] | None:
        """The last phase that can be read, and its data."""
        for phase in ORDER if self.home is not None else ():
            try:
                return phase, codec.loads(self._file(phase).read_bytes())
            except (OSError, ValueError):
                continue
        return None

    def _file(self, phase: str) -> Path:
        return self.private / f"{phase}.phase"

    def clean(self, *, phases: bool) -> None:
        """Remove what must not stay: kubeconfigs, Ansible's files, and, unless `phases`, the phases."""
        kept = {self._file(phase) for phase in ORDER} if phases and self.home is not None else set()
        if not any(file.is_file() for file in kept):
            shutil.rmtree(self.private, ignore_errors=True)
            self._gather()
            return
        for item in self.private.iterdir():
            if item in kept:
                continue
            if item.is_dir() and not item.is_symlink():
                shutil.rmtree(item, ignore_errors=True)
            else:
                item.unlink(missing_ok=True)

    def _gather(self) -> None:
        """Move what the agent wrote and printed from the trial's room into its folder; the room ends."""
        away = self.private.parent
        if self.home is None or away == self.home:
            return
        for item in (self.workspace, away / "agent"):
            if not item.exists():
                continue
            target = self.home / item.name
            shutil.rmtree(target, ignore_errors=True)
            with contextlib.suppress(OSError, shutil.Error):
                shutil.move(item, target)
        shutil.rmtree(away, ignore_errors=True)

    def put_aside(self, cause: str) -> None:
        """Make room for a new attempt: the old one is kept under `attempts/`, marked with its cause and without secrets."""
        self.clean(phases=False)
        if self.home is None:
            shutil.rmtree(self.workspace, ignore_errors=True)
            return
        old = [item for item in self.home.iterdir() if item.name != ATTEMPTS] if self.home.is_dir() else []
        if not old:
            return
        base = self.home / ATTEMPTS
        base.mkdir(exist_ok=True)
        target = base / str(1 + max((int(item.name) for item in base.iterdir() if item.name.isdigit()), default=0))
        target.mkdir()
        for item in old:
            item.rename(target / item.name)
        write_atomic(target / "attempt.json", canonical({"cause": cause, "state": _state(target)}))


def _state(folder: Path) -> str:
    """The state in which an attempt ended."""
    try:
        return str(json.loads((folder / "state.json").read_bytes())["state"])
    except (OSError, ValueError, KeyError, TypeError):
        return "new"
