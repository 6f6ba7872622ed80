"""List the scenarios of the library.

examples:
  itbench list
  itbench list --domain sre --json
"""

import argparse
import sys

from itbench.cli.common import add_json, add_library, dump, library, table
from itbench.core.documents.base import DocumentError, nearest
from itbench.core.documents.scenario import Scenario
from itbench.core.errors import UsageError
from itbench.library.store import Library
from itbench.library.suites import DOMAINS, matches

FIELDS = ("id", "domain", "family", "level", "title", "tags")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("--domain", default="", help="sre, ciso or finops")
    parser.add_argument("--tag", action="append", default=[], help="only scenarios with this tag (repeatable)")
    add_library(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print id, domain, family, level and title of each scenario."""
    if arguments.domain and arguments.domain not in DOMAINS:
        expected = "one of " + ", ".join(DOMAINS)
        hint = nearest(arguments.domain, list(DOMAINS))
        raise UsageError("no such domain", seen=arguments.domain, expected=expected, hint=hint)
    where = library(arguments)
    sound, wrong = _sorted_out(where)
    wanted = [s for s in sound if matches(s, arguments.domain, tuple(arguments.tag))]
    if arguments.json:
        print(dump([{field: getattr(scenario, field) for field in FIELDS} for scenario in wanted]))
    else:
        rows = [(s.id, s.domain, s.level, s.family, s.title) for s in wanted]
        print(table(rows, ("ID", "DOMAIN", "LEVEL", "FAMILY", "TITLE")))
    for error in wrong:
        print(f"itbench list: {error}", file=sys.stderr)
    return DocumentError.exit_code if wrong else 0


def _sorted_out(where: Library) -> tuple[list[Scenario], list[DocumentError]]:
    """The scenarios that can be loaded, and what is wrong with the others."""
    sound, wrong = [], []
    for identifier in where.scenario_files:
        try:
            sound.append(where.scenario(identifier).scenario)
        except DocumentError as error:
            wrong.append(error)
    return sound, wrong
