"""Text commands of a slim image: grep, head, tail, wc, sort, uniq, cut, sed. Called by the interpreter through `TEXTS`."""

import re

from itbench.world.shell.interpreter import Command, Tool
from itbench.world.shell.options import inputs, options_of


def grep(call: Command) -> int:
    """grep [-i] [-v] [-c] [-q] [-o] [-n] [-E] [-F] PATTERN FILE..."""
    options, rest = options_of(call.argv[1:], "eABCm")
    pattern = options.get("e") or (rest.pop(0) if rest else "")
    try:
        known = re.compile(re.escape(pattern) if "F" in options else pattern, re.IGNORECASE if "i" in options else 0)
    except re.error:
        return call.fail(f"bad regex '{pattern}'", 2)
    texts, code = inputs(call, list(rest))
    count = 0
    for name, text in texts:
        for number, line in enumerate(text.splitlines(), 1):
            if bool(known.search(line)) is ("v" in options):
                continue
            count += 1
            if "q" in options or "c" in options:
                continue
            prefix = f"{name}:" if len(texts) > 1 else ""
            prefix += f"{number}:" if "n" in options else ""
            hits = [hit.group(0) for hit in known.finditer(line)] if "o" in options else [line]
            for hit in hits:
                call.io.out(f"{prefix}{hit}\n")
    if "c" in options:
        call.io.out(f"{count}\n")
    return code or (0 if count else 1)


def head(call: Command) -> int:
    """head / tail [-n N] FILE..."""
    options, paths = options_of(call.argv[1:], "nc")
    texts, code = inputs(call, paths)
    wanted = options.get("n", "10")
    for _, text in texts:
        lines = text.splitlines(keepends=True)
        number = int(wanted.lstrip("+-")) if wanted.lstrip("+-").isdigit() else 10
        if call.name.endswith("tail"):
            kept = lines[number - 1 :] if wanted.startswith("+") else lines[len(lines) - min(number, len(lines)) :]
        else:
            kept = lines[:number]
        call.io.out("".join(kept))
    return code


def wc(call: Command) -> int:
    """wc [-l] [-w] [-c] FILE..."""
    options, paths = options_of(call.argv[1:])
    texts, code = inputs(call, paths)
    for name, text in texts:
        counts = {"l": text.count("\n"), "w": len(text.split()), "c": len(text.encode())}
        shown = [str(counts[key]) for key in "lwc" if not options or key in options]
        call.io.out(" ".join(shown) + ("" if name == "-" else f" {name}") + "\n")
    return code


def sort(call: Command) -> int:
    """sort [-r] [-n] [-u] FILE..."""
    options, paths = options_of(call.argv[1:], "kt")
    texts, code = inputs(call, paths)
    lines = [line for _, text in texts for line in text.splitlines()]
    lines.sort(key=(lambda line: (_leading(line), line)) if "n" in options else None, reverse="r" in options)
    if "u" in options:
        lines = list(dict.fromkeys(lines))
    call.io.out("".join(f"{line}\n" for line in lines))
    return code


def _leading(line: str) -> float:
    hit = re.match(r"\s*-?\d+(\.\d+)?", line)
    return float(hit[0]) if hit else 0.0


def uniq(call: Command) -> int:
    """uniq [-c] FILE"""
    options, paths = options_of(call.argv[1:])
    texts, code = inputs(call, paths)
    runs: list[tuple[int, str]] = []
    for line in [line for _, text in texts for line in text.splitlines()]:
        if runs and runs[-1][1] == line:
            runs[-1] = (runs[-1][0] + 1, line)
        else:
            runs.append((1, line))
    for count, line in runs:
        call.io.out(f"{count:>7} {line}\n" if "c" in options else f"{line}\n")
    return code


def cut(call: Command) -> int:
    """cut -d C -f LIST"""
    options, paths = options_of(call.argv[1:], "dfc")
    texts, code = inputs(call, paths)
    delimiter = options.get("d", "\t")
    picks = [int(item) for item in options.get("f", "1").split(",") if item.isdigit()]
    for line in [line for _, text in texts for line in text.splitlines()]:
        fields = line.split(delimiter)
        call.io.out(delimiter.join(fields[pick - 1] for pick in picks if pick <= len(fields)) + "\n")
    return code


def sed(call: Command) -> int:
    """sed s/A/B/[g] FILE, and sed -n 'A,Bp' FILE"""
    options, rest = options_of(call.argv[1:], "e")
    script = options.get("e") or (rest.pop(0) if rest else "")
    in_place = "i" in options
    texts, code = inputs(call, rest)
    swap = re.fullmatch(r"s(.)(.*?)\1(.*?)\1(g?)", script)
    lines = re.fullmatch(r"(\d+)(?:,(\d+|\$))?p", script)
    if swap is None and lines is None:
        return call.fail(f"unsupported command {script}")
    for name, text in texts:
        if swap is not None:
            replacement = re.sub(r"&", r"\\g<0>", swap[3])
            changed = "".join(
                re.sub(swap[2], replacement, line, count=0 if swap[4] else 1) for line in text.splitlines(keepends=True)
            )
        else:
            assert lines is not None
            first = int(lines[1])
            last = len(text) if lines[2] == "$" else int(lines[2] or first)
            changed = "".join(text.splitlines(keepends=True)[first - 1 : last])
        if in_place and name != "-":
            error = call.machine.write(call.shell.path(name), changed)
            code = call.fail(f"{name}: {error}") if error else code
        else:
            call.io.out(changed)
    return code


TEXTS: dict[str, Tool] = {
    "cut": cut,
    "egrep": grep,
    "grep": grep,
    "head": head,
    "sed": sed,
    "sort": sort,
    "tail": head,
    "uniq": uniq,
    "wc": wc,
}
