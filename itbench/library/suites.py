"""Which scenarios a command line means: explicit ids, `all`, a suite, a domain, tags. Called by cli."""

from typing import Literal

from pydantic import Field

from itbench.core.documents.base import Document, Seed, load, nearest
from itbench.core.documents.scenario import Scenario
from itbench.core.errors import UsageError
from itbench.library.store import Library


class Suite(Document):
    """`suites/<name>.yaml`: explicit ids, seeds, weights."""

    schema_: Literal["itbench/suite/v1"] = Field(alias="schema")
    name: str
    about: str
    scenarios: tuple[str, ...] = Field(min_length=1)
    seeds: tuple[Seed, ...] = (0,)
    weights: dict[str, float] = Field(default_factory=dict)


DOMAINS = ("sre", "ciso", "finops")
"""Each is a suite of its own: all its scenarios."""


def suite(where: Library, name: str) -> Suite:
    """A suite by name; raises UsageError with the nearest one."""
    known: list[str] = list(DOMAINS)
    for root in where.roots:
        file = root / "suites" / f"{name}.yaml"
        if "/" not in name and file.is_file():
            return load(Suite, file)
        known += [entry.stem for entry in (root / "suites").glob("*.yaml")]
    raise UsageError(
        "no such suite", seen=name, expected="one of " + ", ".join(sorted(known)), hint=nearest(name, known)
    )


def chosen(
    where: Library, ids: tuple[str, ...], *, domain: str = "", tags: tuple[str, ...] = (), suite: str = ""
) -> list[str]:
    """Scenario ids in order, each once; a domain or tags narrow what was named (everything when nothing was named).

    Raises:
        UsageError: nothing asked for, or nothing left.
    """
    named = list(ids)
    if suite:
        named += _suite_ids(where, suite)
    if not named and (domain or tags):
        named = ["all"]
    if not named:
        raise UsageError(
            "no scenario named", expected="ids, `all`, --suite, --domain or --tag", hint="see `itbench list`"
        )
    if "all" in named:
        named = list(where.scenario_files)
    picked = [name for name in dict.fromkeys(named) if matches(where.scenario(name).scenario, domain, tags)]
    if not picked:
        raise UsageError(
            "no scenario matches", seen=f"domain {domain!r}, tags {', '.join(tags)}", hint="see `itbench list`"
        )
    return picked


def _suite_ids(where: Library, name: str) -> list[str]:
    if name in DOMAINS:
        return [identifier for identifier in where.scenario_files if identifier.startswith(name + "-")]
    return list(suite(where, name).scenarios)


def matches(scenario: Scenario, domain: str, tags: tuple[str, ...]) -> bool:
    """Whether a scenario is of a domain and has all tags; empty ones say nothing."""
    return (not domain or scenario.domain == domain) and all(tag in scenario.tags for tag in tags)
