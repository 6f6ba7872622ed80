"""End estates that `itbench up` left running.

examples:
  itbench down                 what is running
  itbench down sre-12-4711
  itbench down --all
"""

import argparse

from itbench.cli.common import table
from itbench.run.estates import named, running


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("name", nargs="?", help="an estate, by the name or folder that `itbench up` printed")
    parser.add_argument("--all", action="store_true", help="end all of them")


def run(arguments: argparse.Namespace) -> int:
    """End one, all, or list what there is."""
    if not arguments.name and not arguments.all:
        rows = [(estate.folder.name, str(estate.pid or "ended")) for estate in running()]
        print(table(rows, ("ESTATE", "PROCESS")) if rows else "No estate is running.")
        return 0
    for estate in running() if arguments.all else [named(arguments.name)]:
        print(f"{estate.folder.name}: {'ended' if estate.end() else 'was not running; removed'}")
    return 0
