"""Agents that follow a script: `nop`, `oracle[:N]`, `decoy:N`, `constant[:VERDICT]`. Chosen by `itbench.agents.select`.

The scripts of `oracle` and `decoy` come with the hand-over, made by the runner; a task never carries them.
"""

from collections.abc import Sequence

from itbench.agents.base import HandOver, InProcess, Script, Solve
from itbench.agents.steps import execute
from itbench.core.documents.task import Submission, Task
from itbench.core.documents.vocabulary import canonical_verdict
from itbench.core.errors import UsageError
from itbench.tools.registry import Tools

CONSTANT: dict[str, str] = {"sre": "no-incident"}
"""The verdict that guesses best in a domain when nothing is looked at; elsewhere `no-change`."""


def nop() -> InProcess:
    """Does nothing and submits nothing: must fail everywhere."""

    async def solve(task: Task, tools: Tools) -> None:
        return None

    return InProcess("nop", lambda hand: solve)


def oracle(index: int = 1) -> InProcess:
    """Carries out repair `index` (from 1) and submits the truth: must pass."""
    name = "oracle" if index == 1 else f"oracle:{index}"
    return InProcess(name, lambda hand: _following(_pick(hand.repairs, index, "repair")))


def decoy(index: int) -> InProcess:
    """Carries out decoy `index` (from 1) and submits the truth: must fail, by the check that the decoy names."""
    return InProcess(f"decoy:{index}", lambda hand: _following(_pick(hand.decoys, index, "decoy")))


def constant(verdict: str = "") -> InProcess:
    """Always the same answer, without a look: what a score is worth is what it has above this one."""

    def solve_for(hand: HandOver) -> Solve:
        async def solve(task: Task, tools: Tools) -> Submission:
            return Submission(verdict=verdict or CONSTANT.get(task.domain, "no-change"))

        return solve

    try:
        verdict = canonical_verdict(verdict) if verdict else ""
    except ValueError as error:
        raise UsageError(f"agent constant: {error}") from error
    return InProcess(f"constant:{verdict}" if verdict else "constant", solve_for)


def _pick(scripts: Sequence[Script], index: int, what: str) -> Script:
    if not 1 <= index <= len(scripts):
        raise UsageError(
            f"no such {what}", seen=index, expected=f"1 to {len(scripts)}" if scripts else f"a scenario with a {what}"
        )
    return scripts[index - 1]


def _following(script: Script) -> Solve:
    async def solve(task: Task, tools: Tools) -> Submission:
        answer = await execute(script.steps, tools)
        return script.submission.model_copy(update={"answer": script.submission.answer | answer})

    return solve
