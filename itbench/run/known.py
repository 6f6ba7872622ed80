"""What can be asked for: checks, steps and agents by name. Light, because every command starts with it; `build` acts on it."""

from pathlib import Path

from itbench.agents import select
from itbench.agents.steps import STEPS
from itbench.core.documents.scenario import Scenario
from itbench.core.errors import UsageError
from itbench.evaluate.grade import check_models
from itbench.library.vocabulary import Vocabulary


def vocabulary() -> Vocabulary:
    """The checks and steps of all domains."""
    return Vocabulary(checks=check_models(), steps=STEPS)


def check_agent(name: str, scenario: Scenario) -> None:
    """Raise UsageError when there is no such agent, or it cannot act on this scenario (`oracle:9` of three repairs)."""
    select.agent(name, Path.cwd())
    head, _, number = name.partition(":")
    plans = {"oracle": scenario.repairs, "decoy": scenario.decoys}.get(head)
    if plans is not None and number.isdigit() and int(number) > len(plans):
        raise UsageError(f"{scenario.id} has no {name}", expected=f"an index from 1 to {len(plans)}")
