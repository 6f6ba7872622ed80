"""A Python function as an agent: `--agent module:function` or `file.py:function`, in a child process of its own.

The function is `async def solve(task, tools) -> Submission`. It never runs in the trial's process, which knows the truth.
"""

import ast
import importlib.util
import re
import sys
from pathlib import Path

from itbench.agents import child
from itbench.agents.base import Cause, HandOver, Outcome
from itbench.agents.hosting import Start, exit_causes, host
from itbench.agents.isolation import Exit
from itbench.core.documents.base import nearest
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


def _source(place: str, cwd: Path) -> Path | None:
    """The file of a module, found without running any of its code: agents run confined or not at all."""
    if place.endswith(".py"):
        return Path(place)
    top, *rest = place.split(".")
    found = [cwd, *map(Path, sys.path)]
    for folder in found:
        base = folder.joinpath(top, *rest)
        for file in (base / "__init__.py", base.with_suffix(".py")):
            if file.is_file():
                return file
    spec = importlib.util.find_spec(top)
    return None if spec is None or spec.origin is None or rest else Path(spec.origin)


def _names(file: Path) -> set[str] | None:
    """What a module defines at its top; None where that cannot be told from its text.

    Raises:
        UsageError: it is no Python.
    """
    if file.suffix != ".py":
        return None
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError, RecursionError) as error:
        raise UsageError("the agent is not Python", seen=f"{file}: {str(error).splitlines()[0]}") from error
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(each.asname or each.name).partition(".")[0] for each in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            found |= {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        elif not isinstance(node, ast.Expr):
            return None
    return None if {"*", "__getattr__"} & found else found


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
        file = _source(self.place, cwd)
        if file is None:
            raise UsageError("no such agent", seen=name, expected="a module that can be imported, or a file")
        names = _names(file)
        if names is not None and self.function not in names:
            raise UsageError(
                f"no such agent: {file} has no function",
                seen=self.function,
                expected="one of " + ", ".join(sorted(names)),
                hint=nearest(self.function, sorted(names)),
            )

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
