"""The JSONPath of kubectl and of printer columns, as far as definitions may use it; called by `columns` and `definition`.

`.spec.a`, `.spec['a']`, `.items[0]`, `.items[-1]`, `.items[1:3]`, `.items[*]`, `.items[?(@.type=="Ready")].status`, `..name`.
"""

import re
from functools import lru_cache
from typing import Any

_STEP = re.compile(
    r"""\.\.(?P<deep>[^.\[\]]+) | \.(?P<name>(?:\\.|[^.\[\]\\])+) | \[\s*'(?P<quoted>(?:\\'|[^'])*)'\s*\]
    | \[\s*"(?P<double>(?:\\"|[^"])*)"\s*\] | \[\s*(?P<index>-?\d+)\s*\] | \[\s*(?P<slice>-?\d*:-?\d*(?::-?\d+)?)\s*\]
    | \[\s*(?P<all>\*)\s*\] | \[\s*\?\(\s*(?P<filter>.*?)\s*\)\s*\]""",
    re.VERBOSE,
)
_FILTER = re.compile(r"@(?P<path>[^\s=!<>]*)\s*(?:(?P<op>==|!=|<=|>=|<|>)\s*(?P<value>.+))?", re.DOTALL)


class BadPath(ValueError):
    """The text is no JSONPath."""


Steps = tuple[tuple[str, str], ...]


@lru_cache(1024)
def parse(text: str) -> Steps:
    """Steps of a path; raises BadPath."""
    steps: list[tuple[str, str]] = []
    at = 0
    text = text.removeprefix("$")
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None:
            raise BadPath(f"unexpected {text[at:]!r} in {text!r}")
        kind = match.lastgroup or ""
        value = match[kind]
        steps.append(("name", value.replace("\\", "")) if kind in ("name", "quoted", "double") else (kind, value))
        at = match.end()
    return tuple(steps)


def find(obj: Any, steps: Steps) -> list[Any]:
    """All values at a path; missing keys give none."""
    found = [obj]
    for kind, text in steps:
        found = [value for one in found for value in _step(one, kind, text)]
    return found


def _step(value: Any, kind: str, text: str) -> list[Any]:
    if kind == "name":
        if text == "*":
            return list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, list) else []
        return [value[text]] if isinstance(value, dict) and text in value else []
    if kind == "deep":
        return _deep(value, text)
    if not isinstance(value, list):
        return list(value.values()) if kind == "all" and isinstance(value, dict) else []
    if kind == "all":
        return list(value)
    if kind == "index":
        place = int(text)
        return [value[place]] if -len(value) <= place < len(value) else []
    if kind == "slice":
        return value[slice(*(int(part) if part else None for part in text.split(":")))]
    return [row for row in value if _passes(row, text)]


def _deep(value: Any, name: str) -> list[Any]:
    rows = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = [value[name]] if isinstance(value, dict) and name in value else []
    return own + [found for row in rows for found in _deep(row, name)]


def _passes(row: Any, text: str) -> bool:
    match = _FILTER.fullmatch(text)
    if match is None:
        return False
    found = find(row, parse(match["path"])) if match["path"] else [row]
    if not match["op"]:
        return bool(found)
    return bool(found) and _compare(found[0], match["op"], _literal(match["value"].strip()))


def _literal(text: str) -> Any:
    if text[:1] in "'\"" and text[-1:] == text[:1]:
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    try:
        return float(text)
    except ValueError:
        return text


def _compare(left: Any, op: str, right: Any) -> bool:
    if op in ("==", "!="):
        return bool(left == right) is (op == "==")
    if isinstance(left, str) is not isinstance(right, str) or not isinstance(left, (str, int, float)):
        return False
    found = {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}
    return bool(found[op])


@lru_cache(1024)
def parse_plain(text: str) -> tuple[str, ...]:
    """Names of a path of plain fields, such as `.spec.replicas`; raises BadPath."""
    steps = parse(text)
    if not steps or any(kind != "name" for kind, _ in steps):
        raise BadPath(f"{text!r} is no path of plain fields")
    return tuple(name for _, name in steps)


def get(obj: Any, names: tuple[str, ...]) -> Any:
    """The value at plain fields, None when there is none."""
    for name in names:
        obj = obj.get(name) if isinstance(obj, dict) else None
    return obj


def put(obj: dict[str, Any], names: tuple[str, ...], value: Any) -> None:
    """Set the value at plain fields; parts on the way must be (or become) objects, which are not shared."""
    for name in names[:-1]:
        below = obj.get(name)
        obj[name] = dict(below) if isinstance(below, dict) else {}
        obj = obj[name]
    obj[names[-1]] = value
