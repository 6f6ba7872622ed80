"""Explain the metrics: what each one means, its formula, unit and pitfalls.

examples:
  itbench metrics
  itbench metrics sre/pass_at_1
"""

import argparse

from itbench.cli.common import add_json, add_library, dump, table
from itbench.core.documents.base import nearest
from itbench.core.errors import UsageError
from itbench.library.store import Library


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("name", nargs="?", help="a metric as the list shows it")
    add_library(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the list, or one card."""
    cards = Library(tuple(arguments.library)).cards()
    if arguments.name is None:
        if arguments.json:
            print(dump({name: card.model_dump(mode="json", by_alias=True) for name, card in cards.items()}))
        else:
            print(
                table(
                    [(n, c.unit, c.direction, c.title) for n, c in cards.items()], ("METRIC", "UNIT", "BETTER", "TITLE")
                )
            )
        return 0
    if arguments.name not in cards:
        hint = nearest(arguments.name, list(cards))
        raise UsageError("no such metric", seen=arguments.name, expected="a name of `itbench metrics`", hint=hint)
    card = cards[arguments.name]
    if arguments.json:
        print(dump(card.model_dump(mode="json", by_alias=True)))
        return 0
    print(f"{card.title} ({card.unit}; {card.direction} is better)")
    print(f"\n{card.definition}\n\n  {card.formula}\n\n{card.interpretation}")
    for pitfall in card.pitfalls:
        print(f"- {pitfall}")
    print(f"Source: {card.source}")
    return 0
