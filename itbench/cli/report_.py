"""Write the HTML report of a run: one file, no network, the incident timeline of every trial.

examples:
  itbench report runs/first
"""

import argparse
from pathlib import Path

from itbench.run.files import RunFolder
from itbench.run.runs import resume
from itbench.run.views import write_report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("run", help="folder of a run")


def run(arguments: argparse.Namespace) -> int:
    """Write `report.html` into the folder of the run."""
    resume(Path(arguments.run))
    print(write_report(RunFolder(Path(arguments.run))))
    return 0
