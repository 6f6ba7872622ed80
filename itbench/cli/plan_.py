"""How many scenarios and trials it takes to see a difference between two agents, and what a given number can see.

Differences are in points of pass@1. Without more, the spread is that of a typical suite with both agents on the same scenarios;
--from takes it from runs that there are. docs/statistics.md has the formulas.

examples:
  itbench plan --difference 10
  itbench plan --scenarios 40 --trials 3
  itbench plan --difference 5 --per-family 4 --rho 0.3 --power 0.9
  itbench plan --from runs/first --difference 10
  itbench plan --setup-cost 60 --trial-cost 20
"""

import argparse
import math
from dataclasses import replace
from pathlib import Path

from itbench.cli.common import add_json, dump, table
from itbench.core.errors import UsageError
from itbench.core.statistics.power import (
    PAIRED,
    UNPAIRED,
    Design,
    Spread,
    best_trials,
    detectable_clustered,
    estimated_spread,
    plan,
)
from itbench.run.entries import entries

TRIALS = (1, 3, 5, 10)
DIFFERENCES = (5.0, 10.0, 15.0, 20.0, 30.0)
SCENARIOS = (20, 40, 100, 200)
TYPICAL_VARIANCE = 0.1136
"""Var(p_i) over scenarios of a typical suite."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    add = parser.add_argument
    add("--difference", type=float, metavar="POINTS", help="the difference in pass@1 that is to be seen")
    add("--scenarios", type=int, metavar="N", help="the scenarios that there are")
    add("--trials", type=int, metavar="K", help="trials of each scenario and agent (default: 1, 3, 5 and 10)")
    add("--power", type=float, default=0.8, metavar="X", help="chance of seeing it (default 0.8)")
    add("--alpha", type=float, default=0.05, metavar="X", help="two-sided error rate (default 0.05)")
    add("--per-family", type=float, default=1.0, metavar="M", help="scenarios in a family (default 1)")
    add("--rho", type=float, metavar="X", help="correlation within families (default: 0, or that of --from)")
    add("--unpaired", action="store_true", help="the agents run on different scenarios")
    add(
        "--from",
        dest="runs",
        action="append",
        default=[],
        metavar="RUN",
        help="take the spread from two agents of runs",
    )
    add("--setup-cost", type=float, metavar="A", help="cost of setting a scenario up, in any unit")
    add("--trial-cost", type=float, metavar="B", help="cost of one trial, in the same unit")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print what is needed, or what is seen."""
    _check(arguments)
    spread, source = _spread(arguments)
    designs = [
        Design(k, k, arguments.per_family, arguments.alpha, arguments.power)
        for k in ([arguments.trials] if arguments.trials else TRIALS)
    ]
    data: dict[str, object] = {"spread": _spread_data(spread, source)}
    if arguments.difference is not None or arguments.scenarios is None:
        wanted = [arguments.difference] if arguments.difference is not None else list(DIFFERENCES)
        data["needed"] = [
            {"difference_points": points, "trials": d.trials_a, "scenarios": plan(points / 100, spread, d)}
            for points in wanted
            for d in designs
        ]
    if arguments.scenarios is not None or arguments.difference is None:
        numbers = [arguments.scenarios] if arguments.scenarios is not None else list(SCENARIOS)
        data["seen"] = [
            {"scenarios": n, "trials": d.trials_a, "difference_points": _points(detectable_clustered(n, spread, d))}
            for n in numbers
            for d in designs
        ]
    if arguments.setup_cost is not None:
        data["best_trials"] = best_trials(arguments.setup_cost, arguments.trial_cost, spread.within_a, TYPICAL_VARIANCE)
    print(dump(data)) if arguments.json else _print(data, arguments)
    return 0


def _check(arguments: argparse.Namespace) -> None:
    _between("--difference", arguments.difference, 0.1, 100)
    _between("--scenarios", arguments.scenarios, 2, 1_000_000)
    _between("--trials", arguments.trials, 1, 10_000)
    _between("--power", arguments.power, 0.5, 0.999)
    _between("--alpha", arguments.alpha, 1e-6, 0.5)
    _between("--per-family", arguments.per_family, 1, 10_000)
    _between("--rho", arguments.rho, 0, 1)
    _between("--setup-cost", arguments.setup_cost, 0, 1e12)
    _between("--trial-cost", arguments.trial_cost, 1e-9, 1e12)
    if (arguments.setup_cost is None) != (arguments.trial_cost is None):
        raise UsageError("--setup-cost and --trial-cost go together", expected="both or none")
    if arguments.runs and arguments.unpaired:
        raise UsageError("--unpaired and --from exclude each other", expected="one of them")


def _between(option: str, value: float | None, least: float, most: float) -> None:
    if value is not None and not least <= value <= most:
        raise UsageError(f"{option} is out of range", seen=value, expected=f"a number from {least:g} to {most:g}")


def _spread(arguments: argparse.Namespace) -> tuple[Spread, str]:
    """The spread of the difference, and where it comes from."""
    spread, source = (UNPAIRED, "typical, different scenarios") if arguments.unpaired else (PAIRED, "typical, paired")
    if arguments.runs:
        a, b = entries([Path(text) for text in arguments.runs])[:2]
        scores = [{name: item.scores for name, item in each.standing.items.items()} for each in (a, b)]
        family_of = {name: item.family for each in (a, b) for name, item in each.standing.items.items()}
        found = estimated_spread(scores[0], scores[1], family_of)
        if found is None:
            seen = f"{a.name}, {b.name}"
            raise UsageError("too few scenarios to take a spread from", seen=seen, expected="two that both have")
        spread, source = found, f"{a.name} and {b.name}"
    return (spread if arguments.rho is None else replace(spread, correlation=arguments.rho)), source


def _spread_data(spread: Spread, source: str) -> dict[str, object]:
    names = ("between", "within_a", "within_b", "correlation")
    return {name: getattr(spread, name) for name in names} | {"source": source}


def _points(share: float | None) -> float | None:
    return None if share is None else round(100 * share, 2)


def _print(data: dict[str, object], arguments: argparse.Namespace) -> None:
    spread = data["spread"]
    assert isinstance(spread, dict)
    print(
        f"Spread ({spread['source']}): between scenarios {spread['between']:.4f}, within {spread['within_a']:.4f} and "
        f"{spread['within_b']:.4f}, in families of {arguments.per_family:g} correlated by {spread['correlation']:.2f}; "
        f"power {arguments.power:g}, alpha {arguments.alpha:g}."
    )
    for key, head, columns in (
        ("needed", ("TO SEE", "TRIALS", "SCENARIOS NEEDED"), ("difference_points", "trials", "scenarios")),
        ("seen", ("SCENARIOS", "TRIALS", "SEES"), ("scenarios", "trials", "difference_points")),
    ):
        rows = data.get(key)
        if isinstance(rows, list):
            print("\n" + table([[_cell(name, row[name]) for name in columns] for row in rows], head))
    best = data.get("best_trials")
    if isinstance(best, float):
        said = "as many as there can be" if best == math.inf else f"{best:.1f}"
        print(f"\nBest trials per scenario at these costs: {said}; beyond that new scenarios buy more.")


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return "more than a million" if name == "scenarios" else "? (fewer than two families)"
    if name == "difference_points" and value > 100:
        return "no difference"
    return f"{value:.1f} points" if name == "difference_points" else str(value)
