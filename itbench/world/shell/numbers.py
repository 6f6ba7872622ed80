"""Whole numbers in scripts: `$(( ))`, `expr`, `seq`. Called by the interpreter and the command table."""

import re
from collections.abc import Callable

from itbench.world.shell.interpreter import Command
from itbench.world.shell.sums import BadSum, calculate

MANY = 100_000
"""The most numbers that `seq` prints."""


def expr(call: Command) -> int:
    """expr: arithmetic, comparison, length; exits 1 for zero and nothing."""
    words = call.argv[1:]
    if len(words) == 2 and words[0] == "length":
        value = str(len(words[1]))
    elif len(words) == 3 and words[1] == ":":
        hit = re.match(words[2].replace(r"\(", "(").replace(r"\)", ")"), words[0])
        value = "0" if hit is None else hit[1] if hit.re.groups else str(hit.end())
    elif len(words) == 1:
        value = words[0]
    else:
        try:
            value = str(calculate(" ".join("==" if word == "=" else word for word in words), _no_names))
        except BadSum as error:
            return call.fail("division by zero" if "zero" in str(error) else "syntax error", 2)
    call.io.out(value + "\n")
    return int(value in ("", "0"))


def _no_names(name: str) -> str:
    raise BadSum(f"not a number: {name}")


def seq(call: Command) -> int:
    """seq [FIRST [STEP]] LAST"""
    try:
        numbers = [int(word) for word in call.argv[1:]]
    except ValueError:
        return call.fail(f"invalid number '{call.argv[-1]}'")
    if not 1 <= len(numbers) <= 3:
        return call.fail("missing operand")
    first, step = (1 if len(numbers) == 1 else numbers[0]), (numbers[1] if len(numbers) == 3 else 1)
    if step == 0:
        return call.fail("invalid step '0'")
    found = range(first, numbers[-1] + (1 if step > 0 else -1), step)[:MANY]
    call.io.out("".join(f"{number}\n" for number in found))
    return 0


NUMBERS: dict[str, Callable[[Command], int]] = {"expr": expr, "seq": seq}
