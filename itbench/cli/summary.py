"""What `itbench run` prints when it is done: a line per trial with the checks that failed, shares of passes, the report."""

import argparse
import json
import os
from textwrap import shorten

from itbench.cli.common import table
from itbench.core.causes import rule
from itbench.core.documents.result import Result
from itbench.evaluate.standing import lines, standings
from itbench.run.runs import Run


def announce(todo: Run, trials: int, arguments: argparse.Namespace) -> None:
    """Say what is about to run (JSON: the `launch` record)."""
    if arguments.json:
        record = {"type": "launch", "run": str(todo.folder.path), "pid": os.getpid(), "trials": trials}
        print(json.dumps(record), flush=True)


def summarize(todo: Run, errors: list[tuple[str, int]], arguments: argparse.Namespace) -> int:
    """Print the summary, write the report, and give the exit code."""
    results = [folder.read_result() for folder in todo.folder.trials() if folder.finished]
    report = _report(todo)
    if arguments.json:
        counts = {name: sum(result.outcome == name for result in results) for name in ("pass", "fail", "invalid")}
        done = {
            "type": "done",
            "run": str(todo.folder.path),
            "outcomes": counts,
            "errors": len(errors),
            "agents": [each.as_json() for each in standings(results)],
            "report": report,
        }
        print(json.dumps(done), flush=True)
    else:
        _print(results, todo, report, not arguments.agent and not arguments.resume)
    return _exit_code(results, errors, arguments.fail_under)


def _report(todo: Run) -> str:
    from itbench.run.views import write_report

    return str(write_report(todo.folder))


def _print(results: list[Result], todo: Run, report: str, reference: bool) -> None:
    rows = [(r.scenario, r.agent, str(r.trial), r.outcome.upper(), _why(r), _time(r)) for r in results]
    print(table(rows, ("SCENARIO", "AGENT", "TRIAL", "OUTCOME", "WHY", "RECOVERED")))
    if len(results) > 1:
        for each in standings(results):
            first, *more = lines(each)
            print(f"{each.agent}: {' '.join(first)}", *(f"  {what}: {fact}" for what, fact in more), sep="\n")
    if reference:
        print("No agent was named: the reference repair ran.")
    print(f"Report: {report}")


def _why(result: Result) -> str:
    if result.outcome == "pass":
        return "all checks held"
    if result.outcome == "invalid" and result.detail:
        return shorten(f"{result.cause}: {result.detail}", 120, placeholder=" ...")
    failed = [check.name for check in result.checks if not check.passed]
    parts = ([result.cause] if result.cause != "checks" else []) + failed
    return shorten(", ".join(parts) or result.detail, 70, placeholder=" ...")


def _time(result: Result) -> str:
    seconds = result.metrics.get("time_to_mitigate_s")
    return f"after {float(seconds):.0f} s" if isinstance(seconds, int | float) else "-"


def _exit_code(results: list[Result], errors: list[tuple[str, int]], fail_under: float | None) -> int:
    if errors:
        return max(code for _, code in errors)
    if any(rule(result.cause).outcome == "invalid" for result in results):
        return 3
    rates = [each.pass_rate.value for each in standings(results)]
    missed = not rates or any(rate is None or rate < (fail_under or 0.0) for rate in rates)
    return 1 if fail_under is not None and missed else 0
