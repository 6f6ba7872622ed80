"""From what `--agent` says to an agent. Called by the command line (to check names early) and by the runner."""

from collections.abc import Callable
from pathlib import Path

from itbench.agents.base import Agent, HandOver, InProcess, Solve
from itbench.agents.builtin import heuristic, saboteur, scripted
from itbench.agents.builtin.replay import replay
from itbench.agents.command import CommandAgent
from itbench.agents.python import PATTERN, PythonAgent
from itbench.core.errors import UsageError

_LATER = ("react", "stratus", "mcp")
_BUILTIN: dict[str, Callable[[str], Agent]] = {
    "nop": lambda argument: scripted.nop(),
    "oracle": lambda argument: scripted.oracle(_index("oracle", argument or "1")),
    "decoy": lambda argument: scripted.decoy(_index("decoy", argument)),
    "constant": scripted.constant,
    "saboteur": lambda argument: InProcess("saboteur", _always(saboteur.solve)),
    "heuristic": lambda argument: InProcess("heuristic", _always(heuristic.solve)),
}

BUILTIN: tuple[str, ...] = tuple(_BUILTIN)
"""Names of the agents that run in the trial's own process."""


def _always(solve: Solve) -> Callable[[HandOver], Solve]:
    return lambda hand: solve


def _index(name: str, text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise UsageError(f"agent {name}: which one?", seen=text or name, expected=f"a number from 1, such as {name}:1")
    return int(text)


def agent(name: str, cwd: Path) -> Agent:
    """The agent that a name means.

    Args:
        name: a built-in one, `module:function`, `file.py:function`, or a command line.
        cwd: the folder where it was typed; relative paths start there.

    Raises:
        UsageError: no such agent; found out before anything is stood up.
    """
    head, _, argument = name.strip().partition(":")
    if head == "replay":
        return replay(cwd / argument)
    if head in _BUILTIN:
        if argument and head in ("nop", "saboteur", "heuristic"):
            raise UsageError(f"agent {head} takes no argument", seen=name)
        return _BUILTIN[head](argument)
    if head in _LATER or head in ("http", "https"):
        raise UsageError("this kind of agent is not available in this version", seen=name, expected=f"{', '.join(BUILTIN)}, "
                         "module:function, file.py:function, or a command")  # fmt: skip
    if PATTERN.fullmatch(name.strip()):
        return PythonAgent(name.strip(), cwd)
    return CommandAgent(name, cwd)
