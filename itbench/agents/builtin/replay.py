"""The agent `replay:TRIAL`: does again what a finished trial did, call by call.

On a stepped clock a trial that is replayed gives the same evidence, byte for byte. Chosen by `itbench.agents.select`.
"""

import json
from pathlib import Path
from typing import Any

from itbench.agents.base import InProcess, Solve
from itbench.core.documents.task import Task
from itbench.core.errors import UsageError
from itbench.tools.registry import Tools

ACTIONS = "evidence/actions.json"


def replay(folder: Path) -> InProcess:
    """The calls of a trial, in their order, the answer among them.

    Args:
        folder: of the trial, with `evidence/actions.json`.

    Raises:
        UsageError: no calls there that can be read.
    """
    calls = _calls(folder)

    async def solve(task: Task, tools: Tools) -> None:
        for name, arguments in calls:
            await tools.call(name, arguments)

    def follow(hand: object) -> Solve:
        return solve

    return InProcess(f"replay:{folder.name}", follow)


def _calls(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    try:
        return [(str(row["tool"]), dict(row["arguments"])) for row in json.loads((folder / ACTIONS).read_bytes())]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UsageError(
            "agent replay: no calls to do again",
            seen=str(folder),
            expected=f"the folder of a finished trial, with {ACTIONS}",
        ) from error
