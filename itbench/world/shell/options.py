"""Options and input files of commands, shared by the command modules of the shell."""

import re

from itbench.world.shell.interpreter import Command


def options_of(argv: list[str], valued: str = "") -> tuple[dict[str, str], list[str]]:
    """Short options (with values for those in `valued`) and operands."""
    options: dict[str, str] = {}
    rest: list[str] = []
    items = iter(argv)
    for item in items:
        if item == "--":
            rest += list(items)
        elif re.fullmatch(r"-\d+", item):
            options["n"] = item[1:]
        elif item.startswith("-") and len(item) > 1:
            for index, letter in enumerate(item[1:]):
                if letter in valued:
                    options[letter] = item[index + 2 :] or next(items, "")
                    break
                options[letter] = "1"
        else:
            rest.append(item)
    return options, rest


def inputs(call: Command, paths: list[str]) -> tuple[list[tuple[str, str]], int]:
    """(name, text) of the named files, or of standard input; and the exit code so far."""
    if not paths:
        return [("-", call.io.stdin)], 0
    found, code = [], 0
    for path in paths:
        text = call.io.stdin if path == "-" else call.machine.read(call.shell.path(path))
        if text is None:
            folder = call.machine.entries(call.shell.path(path)) is not None
            code = call.fail(
                "read error: Is a directory" if folder else f"can't open '{path}': No such file or directory"
            )
        else:
            found.append((path, text))
    return found, code
