"""Grade the evidence of runs again, without any environment, and write the new results.

examples:
  itbench regrade runs/first
  itbench regrade runs/first --dry-run
"""

import argparse
from pathlib import Path

from itbench.cli.common import add_library, library, table
from itbench.core.documents.result import Result
from itbench.core.errors import UsageError
from itbench.evaluate.grade import grade
from itbench.run.files import RunFolder
from itbench.run.runs import resume


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("runs", nargs="+", help="folders of runs")
    parser.add_argument("--dry-run", action="store_true", help="show what would change, write nothing")
    add_library(parser)


def run(arguments: argparse.Namespace) -> int:
    """Regrade every trial; prints what changed."""
    where = library(arguments)
    rows = []
    for text in arguments.runs:
        answers = resume(Path(text)).document.task
        folders = list(RunFolder(Path(text)).trials())
        if not folders:
            raise UsageError("no finished trial", seen=text, expected="the folder of a run")
        for folder in folders:
            old, evidence = folder.read_result(), folder.read_evidence()
            graded = grade(where.scenario(old.scenario).scenario, evidence, answers)
            new = Result.model_validate(old.model_dump(by_alias=True) | graded)
            if not arguments.dry_run:
                folder.write_result(new)
            rows.append(
                (old.scenario, old.agent, str(old.trial), old.outcome, new.outcome, "" if old == new else "changed")
            )
    print(table(rows, ("SCENARIO", "AGENT", "TRIAL", "BEFORE", "NOW", "")))
    return 0
