"""A Python function as an agent: `--agent module:function` or `file.py:function`, in a child process of its own.

The function is `async def solve(task, tools) -> Submission`. It never runs in the trial's process, which knows the truth.
"""

import re
import sys
from pathlib import Path

from itbench.agents import child
from itbench.agents.base import Cause, HandOver, Outcome
from itbench.agents.hosting import Start, exit_causes, host
from itbench.agents.isolation import Exit
from itbench.core.errors import UsageError

PATTERN = re.compile(r"(?P<place>[\w./~-]+\.py|[A-Za-z_][\w.]*):(?P<function>[A-Za-z_]\w*)")
"""What names a Python agent."""


def _means(end: Exit) -> tuple[Cause, str]:
    if end.code == child.NOT_LOADED:
        return "agent_not_startable", "the function cannot be loaded"
    if end.code == child.CRASHED:
        return "agent_crash", "the function raised"
    if end.code == child.NO_ANSWER:
        return "submission_invalid", "what the function returned is no submission"
    return exit_causes(end)


class PythonAgent:
    """A function in a module or file."""

    scripted = False

    def __init__(self, name: str, cwd: Path) -> None:
        match = PATTERN.fullmatch(name)
        if match is None:
            raise UsageError("not a Python agent", seen=name, expected="module:function or file.py:function")
        self.name = name
        self.function = match["function"]
        self.place, self._needs = match["place"], self._found(match["place"], cwd)
        if self.place.endswith(".py"):
            self.place = str(self._needs[0])

    @staticmethod
    def _found(place: str, cwd: Path) -> tuple[Path, ...]:
        """The file, or the module's files where it was typed; an installed module needs nothing more."""
        if place.endswith(".py"):
            path = (cwd / Path(place).expanduser()).absolute()
            if not path.is_file():
                raise UsageError("no such agent", seen=str(path), expected="a Python file")
            return (path, path.resolve())
        top = cwd / place.split(".", 1)[0]
        return tuple(path for path in (top, top.with_suffix(".py")) if path.exists())

    async def run(self, hand: HandOver) -> Outcome:
        """Run it in a child process that reaches the tools over HTTP."""
        argv = [sys.executable, "-m", "itbench.agents.child", self.place, self.function, *map(str, self._needs[:1])]
        return await host(hand, Start(argv, self._needs, _means))
