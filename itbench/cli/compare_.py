"""Compare agents on the same scenarios and seeds: by how much they differ, how sure that is, and where.

Name two runs, or one run with two agents. Differences are paired by scenario and seed; p comes from a sign-flip permutation test
that keeps the scenarios of a family together; with more than two agents it is adjusted by Holm. docs/statistics.md explains.

examples:
  itbench compare runs/before runs/after
  itbench compare runs/all
  itbench compare runs/all --agent ./mine --agent heuristic --json
  itbench compare runs/new runs/old --gate 3
"""

import argparse
from itertools import combinations
from pathlib import Path

from itbench.cli.common import add_json, dump, table
from itbench.core.errors import UsageError
from itbench.core.statistics.estimate import Estimate, show
from itbench.core.statistics.paired import no_worse
from itbench.evaluate.contest import Contest, adjusted, contest, verdict
from itbench.run.entries import Entry, entries, same_conditions


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("runs", nargs="+", help="folders of runs")
    parser.add_argument(
        "--agent", action="append", default=[], metavar="NAME", help="only this agent of the runs (repeatable)"
    )
    parser.add_argument("--level", type=float, default=0.95, metavar="X", help="level of the intervals (default 0.95)")
    parser.add_argument(
        "--gate",
        type=float,
        metavar="POINTS",
        help="exit 1 unless the first is shown to be at most so many points of pass@1 worse than the second",
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the comparison of every pair."""
    if not 0.5 <= arguments.level < 1:
        raise UsageError("--level is no level", seen=arguments.level, expected="a number from 0.5 to below 1")
    if arguments.gate is not None and not 0 < arguments.gate <= 100:
        raise UsageError("--gate is no margin", seen=arguments.gate, expected="points above 0, at most 100")
    found = entries([Path(text) for text in arguments.runs], tuple(arguments.agent), arguments.level)
    if arguments.gate is not None and len(found) != 2:
        raise UsageError("--gate compares two agents", seen=len(found), hint="choose with --agent")
    notes = same_conditions(found)
    contests = adjusted([_contest(a, b, arguments.level) for a, b in combinations(found, 2)])
    if arguments.json:
        print(dump({"agents": [each.as_json() for each in found], "notes": notes, "pairs": list(map(_data, contests))}))
    else:
        _print(found, contests, notes)
    return 0 if arguments.gate is None else _gate(contests[0], arguments.gate / 100, quiet=arguments.json)


def _contest(a: Entry, b: Entry, level: float) -> Contest:
    found = contest(a.standing, b.standing, (a.name, b.name), level=level)
    if not found.families:
        raise UsageError(
            "no scenario with valid trials of both", seen=f"{a.name}, {b.name}", expected="the same scenarios and seed"
        )
    return found


def _gate(found: Contest, margin: float, *, quiet: bool) -> int:
    """1 unless the first is shown to be no worse; by the noise within scenarios where it is known."""
    by = found.fixed if found.fixed.defined else found.outcome.difference
    held = no_worse(by, margin)
    if not quiet:
        said = "held" if held else "missed" if held is not None else f"missed, no interval ({by.undefined_reason})"
        print(f"Gate of {100 * margin:g} points, for {by.question}: {said}")
    return 0 if held else 1


def _print(found: list[Entry], contests: list[Contest], notes: list[str]) -> None:
    rows = [
        (each.name, show(each.standing.pass_rate.clipped()), str(len(each.standing.items)), str(each.standing.families))
        for each in found
    ]
    print(table(rows, ("AGENT", "PASS@1", "SCENARIOS", "FAMILIES")))
    for each in contests:
        print()
        print(table(_rows(each), ("A MINUS B", "DIFFERENCE", "P", "WIN/TIE/LOSS")))
        _print_record(each)
        print(verdict(each))
    for note in notes:
        print(f"Note: {note}")


def _rows(found: Contest) -> list[tuple[str, str, str, str]]:
    """Pass rates over all, by domain, for another run of the same scenarios, and times."""
    rows = [("pass@1", _points(found.outcome.difference), f"{found.p_adjusted:.3g}", _score(found.outcome.record))]
    for name, (each, p) in found.domains.items():
        rows.append((f"  {name}", _points(each.difference), f"{p:.3g}", _score(each.record)))
    if found.fixed.defined:
        rows.append(("  another run of these", _points(found.fixed), "", ""))
    if found.mcnemar_p is not None:
        rows.append(("  McNemar, scenarios unrelated", "", f"{found.mcnemar_p:.3g}", ""))
    if found.times is not None:
        said = [show(found.times.difference, "{:+.0f} s".format), *found.times.difference.notes]
        rows.append(("time to mitigate", "; ".join(said), f"{found.times.test.p:.3g} (log-rank, trials unrelated)", ""))
    return rows


def _points(estimate: Estimate) -> str:
    return show(estimate, lambda value: f"{100 * value:+.1f}")


def _score(record: object) -> str:
    return "/".join(str(len(getattr(record, name))) for name in ("wins", "ties", "losses"))


def _print_record(found: Contest) -> None:
    for word, names in (
        ("won", found.outcome.record.wins),
        ("lost", found.outcome.record.losses),
        ("only A", found.only_a),
        ("only B", found.only_b),
    ):
        if names:
            print(f"{word}: {', '.join(names)}")


def _data(found: Contest) -> dict[str, object]:
    record, test = found.outcome.record, found.outcome.test
    return {
        "a": found.a,
        "b": found.b,
        "difference": found.outcome.difference.as_json(),
        "difference_same_suite": found.fixed.as_json(),
        "p": test.p,
        "p_adjusted": found.p_adjusted,
        "p_floor": test.floor,
        "p_exact": test.exact,
        "p_mcnemar": found.mcnemar_p,
        "significant": found.significant,
        "detectable": found.detectable,
        "families": found.families,
        "families_that_differ": test.families,
        "win": record.wins,
        "tie": record.ties,
        "loss": record.losses,
        "only_a": found.only_a,
        "only_b": found.only_b,
        "domains": {
            name: {"difference": each.difference.as_json(), "p": each.test.p, "p_adjusted": p}
            for name, (each, p) in found.domains.items()
        },
        "time_to_mitigate_s": found.times
        and {"difference": found.times.difference.as_json(), "p_log_rank": found.times.test.p},
        "invalid_share": found.invalid_share,
        "comparable": found.comparable,
        "verdict": verdict(found),
    }
