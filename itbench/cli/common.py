"""What several verbs share: the library with every domain's vocabulary, common options, plain tables."""

import argparse
import contextlib
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from itbench.core.errors import UsageError
from itbench.library.store import Library


def add_library(parser: argparse.ArgumentParser) -> None:
    """`--library PATH`, repeatable."""
    parser.add_argument(
        "--library", action="append", default=[], metavar="PATH", help="a further library folder (repeatable)"
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """`--json`."""
    parser.add_argument("--json", action="store_true", help="JSON on standard output, for programs")


def library(arguments: argparse.Namespace) -> Library:
    """The library with the checks and steps of all domains."""
    from itbench.run.known import vocabulary

    return Library(tuple(arguments.library), vocabulary())


def select(
    where: Library, ids: Sequence[str], *, domain: str = "", tags: Iterable[str] = (), suite: str = ""
) -> list[str]:
    """Scenario ids that the options name: explicit ids, a suite, a domain, tags; `all` means all.

    Raises:
        UsageError: nothing was asked for, an unknown suite, or a filter that leaves nothing.
    """
    from itbench.library.suites import chosen

    return chosen(where, tuple(ids), domain=domain, tags=tuple(tags), suite=suite)


def clock(text: str) -> str:
    """A clock as `--clock` takes it.

    Raises:
        UsageError: no such clock.
    """
    mode, _, number = text.partition(":")
    with contextlib.suppress(ValueError):
        if mode in ("auto", "live") and not number:
            return text
        if mode == "stepped" and not number:
            return text
        if mode in ("scaled", "stepped") and 0 < float(number) < math.inf:
            return text
    raise UsageError("unknown clock", seen=text, expected="auto, live, scaled:N or stepped:S")


def bounded(option: str, value: int, least: int, most: int) -> int:
    """The value of an option that takes a whole number; raises UsageError outside its bounds."""
    if not least <= value <= most:
        what = "small" if value < least else "large"
        raise UsageError(f"{option} is too {what}", seen=value, expected=f"a whole number from {least} to {most}")
    return value


def table(rows: Iterable[Sequence[str]], head: Sequence[str]) -> str:
    """A plain table with aligned columns."""
    lines = [list(head), *[list(map(str, row)) for row in rows]]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def dump(value: Any) -> str:
    """JSON for programs."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)
