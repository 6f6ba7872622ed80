"""What is compared: one agent of one run each, read from the files of runs. Called by `itbench compare` and `itbench plan`."""

import json
from dataclasses import dataclass
from pathlib import Path

from itbench.core.documents.result import Result
from itbench.core.errors import UsageError
from itbench.evaluate.standing import Standing, standing
from itbench.run.files import RunFolder
from itbench.run.runs import resume


@dataclass(frozen=True)
class Entry:
    """One agent of one run.

    Args:
        name: its agent, with the run's folder where the agent alone would not tell.
        run: the run's folder.
        standing: how it did.
    """

    name: str
    run: Path
    standing: Standing

    def as_json(self) -> dict[str, object]:
        """Plain data for programs."""
        return {"name": self.name, "run": str(self.run)} | self.standing.as_json()


def entries(runs: list[Path], agents: tuple[str, ...] = (), level: float = 0.95, least: int = 2) -> list[Entry]:
    """The agents of runs, in the order of the runs and of their `run.yaml`.

    Args:
        runs: folders of runs.
        agents: only these; all when empty.
        level: of the intervals.
        least: how many there must be.

    Raises:
        UsageError: a folder that is no run, an agent that no run has, fewer agents than `least`, or a run named twice.
    """
    found: list[tuple[Path, str, list[Result]]] = []
    for path in runs:
        document = resume(path).document
        results = [trial.read_result() for trial in RunFolder(path).trials() if trial.finished]
        for agent in document.agents:
            own = [result for result in results if result.agent == agent]
            if own and (not agents or agent in agents):
                found.append((path, agent, own))
    _check(runs, agents, found, least)
    short = len({path.name for path in runs}) == len(runs)
    return [
        Entry(
            agent if len(runs) == 1 else f"{agent} ({path.name if short else path})",
            path,
            standing(agent, results, level),
        )
        for path, agent, results in found
    ]


def _check(runs: list[Path], agents: tuple[str, ...], found: list[tuple[Path, str, list[Result]]], least: int) -> None:
    if len({path.resolve() for path in runs}) < len(runs):
        raise UsageError("a run is named twice", seen=" ".join(map(str, runs)), expected="different runs")
    known = {agent for _, agent, _ in found}
    for agent in agents:
        if agent not in known:
            raise UsageError("no finished trial of this agent", seen=agent, expected="an agent of the runs")
    if len(found) < least:
        seen = ", ".join(f"{agent} of {path}" for path, agent, _ in found) or "no finished trial"
        raise UsageError("nothing to compare", seen=seen, expected="two runs, or a run with two agents")


def same_conditions(found: list[Entry]) -> list[str]:
    """What a reader has to know of how alike the conditions were.

    Returns:
        One note for each input that differs between the runs.

    Raises:
        UsageError: a scenario ran on different clocks; such results are not compared.
    """
    first = found[0]
    for other in found[1:]:
        for name, item in first.standing.items.items():
            clocks = item.clocks, other.standing.items[name].clocks if name in other.standing.items else item.clocks
            if clocks[0] != clocks[1]:
                seen = f"{name}: {', '.join(sorted(clocks[0]))} and {', '.join(sorted(clocks[1]))}"
                raise UsageError("runs on different clocks cannot be compared", seen=seen, expected="the same --clock")
    locks = {entry.run: _lock(entry.run) for entry in found}
    base = locks[first.run]
    notes = []
    for run, lock in locks.items():
        other_keys = sorted(key for key in base.keys() & lock.keys() if base[key] != lock[key])
        if other_keys:
            notes.append(f"{first.run} and {run} differ in {', '.join(other_keys)}")
    return notes


def _lock(run: Path) -> dict[str, str]:
    """What a run was made of, flat; of what several runs share, equal keys mean equal inputs."""
    try:
        data = json.loads((run / "lock.json").read_bytes())
        inner = {f"{key} {name}": text for key in ("versions", "scenarios") for name, text in data.pop(key).items()}
        return {key: str(value) for key, value in data.items() if key != "schema"} | inner
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise UsageError(
            "the run's folder is damaged", seen=str(run / "lock.json"), hint=" ".join(str(error).split())
        ) from error
