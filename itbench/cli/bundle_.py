"""Write a finished run as one file that others can check with `itbench verify`: documents, evidence, trajectories, results.

Nothing of the agent but its calls and its answer is in it. Equal runs give equal files.

examples:
  itbench bundle runs/first                    writes runs/first.itbench.zip
  itbench bundle runs/first -o first.zip
"""

import argparse
from pathlib import Path

from itbench.run.bundles import pack
from itbench.run.runs import resume


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("run", help="folder of a finished run")
    parser.add_argument("-o", "--out", default="", metavar="FILE", help="the file (default: beside the run)")


def run(arguments: argparse.Namespace) -> int:
    """Pack the run; prints where and how much."""
    folder = Path(arguments.run)
    resume(folder)
    target = (
        Path(arguments.out) if arguments.out else folder.resolve().with_name(f"{folder.resolve().name}.itbench.zip")
    )
    trials = pack(folder, target)
    print(f"{target}: {trials} trials, {target.stat().st_size} bytes")
    return 0
