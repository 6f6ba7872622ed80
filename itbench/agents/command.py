"""Any program as an agent: `--agent './fix.sh --fast'`. Chosen by `itbench.agents.select`, run by `itbench.agents.hosting`."""

import os
import shlex
import shutil
from pathlib import Path

from itbench.agents.base import HandOver, Outcome
from itbench.agents.hosting import Start, host
from itbench.core.errors import UsageError


class CommandAgent:
    """A command line. Its program, and words that name files, are looked up in the folder where it was typed."""

    scripted = False

    def __init__(self, command: str, cwd: Path) -> None:
        self.name = command
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise UsageError(f"cannot split the agent's command ({error})", seen=command) from error
        if not words:
            raise UsageError("the agent's command is empty", expected="a program, such as ./fix.sh")
        self._needs: tuple[Path, ...] = ()
        self.argv = [self._program(words[0], cwd), *(self._file(word, cwd) for word in words[1:])]

    def _program(self, word: str, cwd: Path) -> str:
        found = str(cwd / word) if "/" in word else shutil.which(word)
        if not found or not Path(found).exists():
            raise UsageError("no such agent", seen=word, expected="a program on PATH or a path such as ./fix.sh")
        if not os.access(found, os.X_OK) or Path(found).is_dir():
            raise UsageError("the agent cannot be executed", seen=found, hint=f"try chmod +x {found}")
        path = Path(found).absolute()
        self._needs += (path, path.resolve())
        return str(path)

    def _file(self, word: str, cwd: Path) -> str:
        """An argument that names an existing file where it was typed keeps meaning that file."""
        if word.startswith("-") or not (cwd / word).is_file():
            return word
        path = (cwd / word).absolute()
        self._needs += (path, path.resolve())
        return str(path)

    async def run(self, hand: HandOver) -> Outcome:
        """Run it in its workspace."""
        return await host(hand, Start(self.argv, self._needs))
