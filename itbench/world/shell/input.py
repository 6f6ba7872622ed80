"""Whether a command line reads standard input to its end; exec sessions ask, since with `-it` that end may never come."""

import shlex
from itertools import pairwise

SHELLS = {"sh", "bash", "ash", "zsh"}
FILES_FROM = {"cat": 1, "wc": 1, "sort": 1, "head": 1, "tail": 1, "grep": 2, "sed": 2}
"""Operands with which a command reads files instead."""
VALUED = {
    "head": {"-n", "-c"},
    "tail": {"-n", "-c"},
    "sort": {"-k", "-t"},
    "grep": {"-A", "-B", "-C", "-m"},
    "redis-cli": {"-h", "-p", "-a", "-n"},
    "valkey-cli": {"-h", "-p", "-a", "-n"},
}
"""Options that are followed by a value."""
ALWAYS = {"tee", "xargs", "read"}
REDIS = {"redis-cli", "valkey-cli"}
KEYWORDS = {"if", "then", "else", "elif", "do", "while", "until", "!", "{", "time", "exec", "command"}
MARKS = set(";|&()")


def reads_input(argv: list[str]) -> bool:
    """Whether a command, or some command of a script given with `-c`, takes standard input."""
    name = argv[0].rsplit("/", 1)[-1] if argv else ""
    if name in SHELLS:
        scripts = [item for option, item in pairwise(argv) if option.startswith("-c")]
        if scripts:
            return any(reads_input(words) for words in _heads(scripts[0]))
        return all(word.startswith("-") for word in argv[1:])
    if name in ALWAYS:
        return True
    operands = _operands(name, argv[1:])
    if name in FILES_FROM:
        pattern_given = any(word in ("-e", "-f") for word in argv[1:])
        recursive = name == "grep" and any(word.startswith("-") and "r" in word.lower() for word in argv[1:])
        return not recursive and len(operands) < FILES_FROM[name] and not (pattern_given and len(operands) > 1)
    return name in REDIS and ("-x" in argv or not operands)


def _operands(name: str, words: list[str]) -> list[str]:
    found = []
    skip = False
    for word in words:
        if not skip and (word == "-" or not word.startswith("-")):
            found += [word] if word != "-" else []
        skip = not skip and word in VALUED.get(name, ())
    return found


def _heads(script: str) -> list[list[str]]:
    """The commands of a script that may get the script's own input: the first of each pipeline, unless it is redirected."""
    lexer = shlex.shlex(script.replace("\n", ";"), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        tokens = list(lexer)
    except ValueError:
        return []
    found: list[list[str]] = [[]]
    piped = [False]
    target = False
    for token in tokens:
        if target or token[0] == ">":
            target = token[0] == ">"
        elif set(token) <= MARKS:
            found.append([])
            piped.append(token == "|")
        elif found[-1] or token not in KEYWORDS:
            found[-1].append(token)
    return [
        words
        for words, after in zip(found, piped, strict=True)
        if words and not after and not any(word.startswith("<") for word in words)
    ]
