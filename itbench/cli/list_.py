"""List the scenarios of the library.

examples:
  itbench list
  itbench list --domain sre --json
"""

import argparse

from itbench.cli.common import add_json, add_library, dump, library, table
from itbench.library.suites import chosen


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("--domain", default="", help="sre, ciso or finops")
    parser.add_argument("--tag", action="append", default=[], help="only scenarios with this tag (repeatable)")
    add_library(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print id, domain, family, level and title of each scenario."""
    where = library(arguments)
    ids = chosen(where, ("all",), domain=arguments.domain, tags=tuple(arguments.tag))
    scenarios = [where.scenario(identifier).scenario for identifier in ids]
    if arguments.json:
        fields = ("id", "domain", "family", "level", "title", "tags")
        print(dump([{field: getattr(scenario, field) for field in fields} for scenario in scenarios]))
        return 0
    print(
        table(
            [(s.id, s.domain, s.level, s.family, s.title) for s in scenarios],
            ("ID", "DOMAIN", "LEVEL", "FAMILY", "TITLE"),
        )
    )
    return 0
