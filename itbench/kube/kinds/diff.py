"""A readable difference of two specs, appended to the refusal of a pod update. Called by `pods` and `workloads`."""

from typing import Any

from itbench.kube.kinds.check import printed


def go_diff(old: Any, new: Any) -> str:
    """Changed fields as `-` and `+` lines, unchanged ones left out."""
    lines = ["  core.PodSpec{"]
    _lines(old, new, "  \t", lines)
    return "\n".join([*lines, "  }", ""])


def _title(key: Any) -> str:
    return key[:1].upper() + key[1:] if isinstance(key, str) else f"[{key}]"


def _lines(old: Any, new: Any, indent: str, lines: list[str]) -> None:
    if isinstance(old, dict) and isinstance(new, dict):
        keys = list(dict.fromkeys([*old, *new]))
        pairs = [(key, old.get(key), new.get(key)) for key in keys]
    else:
        size = max(len(old), len(new))
        pairs = [
            (index, old[index] if index < len(old) else None, new[index] if index < len(new) else None)
            for index in range(size)
        ]
    for key, before, after in pairs:
        if before == after:
            continue
        both = (dict, list)
        if isinstance(before, both) and isinstance(after, both) and isinstance(before, type(after)):
            lines.append(f"{indent}{_title(key)}: {{")
            _lines(before, after, indent + "\t", lines)
            lines.append(f"{indent}}},")
            continue
        if before is not None:
            lines.append(f"-{indent[1:]}{_title(key)}: {printed(before)},")
        if after is not None:
            lines.append(f"+{indent[1:]}{_title(key)}: {printed(after)},")
