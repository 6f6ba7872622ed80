"""`label_replace` and `label_join`."""

import re
from collections.abc import Callable, Sequence

from itbench.core.errors import UsageError
from itbench.telemetry.labels import LabelList, Labels, Match, compile_regex, freeze
from itbench.telemetry.promql.values import QueryError, Vector, join_equal

LABEL_NAME = re.compile(r"[^\ud800-\udfff]+", re.DOTALL)
"""Any text of UTF-8."""
_REFERENCE = re.compile(r"\$(?:\$|\{(\w+)\}|(\w+))")


def expand(template: str, match: Match) -> str:
    """Go's `Regexp.Expand`: `$1`, `${name}`, `$$`; an unknown group is empty."""

    def one(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        if name is None:
            return "$"
        try:
            return match[int(name) if name.isdecimal() else name] or ""
        except (IndexError, KeyError):
            return ""

    return _REFERENCE.sub(one, template)


def _changed(vector: Vector, change: Callable[[Labels], Labels]) -> Vector:
    changed = Vector(LabelList(change(labels) for labels in vector.labels), vector.values, vector.present)
    return join_equal(changed)


def label_replace(vector: Vector, target: str, replacement: str, source: str, pattern: str) -> Vector:
    """Set `target` to the expanded replacement where the source label matches the whole pattern."""
    try:
        regex = compile_regex(pattern)
    except UsageError as error:
        raise QueryError(f"invalid regular expression in label_replace(): {pattern}") from error
    if not LABEL_NAME.fullmatch(target):
        raise QueryError(f"invalid destination label name in label_replace(): {target}")

    def change(labels: Labels) -> Labels:
        known = dict(labels)
        match = regex.fullmatch(known.get(source, ""))
        return freeze({**known, target: expand(replacement, match)}) if match else labels

    return _changed(vector, change)


def label_join(vector: Vector, target: str, separator: str, sources: Sequence[str]) -> Vector:
    """Set `target` to the values of the source labels, joined."""
    for name in sources:
        if not LABEL_NAME.fullmatch(name):
            raise QueryError(f"invalid source label name in label_join(): {name}")
    if not LABEL_NAME.fullmatch(target):
        raise QueryError(f"invalid destination label name in label_join(): {target}")

    def change(labels: Labels) -> Labels:
        known = dict(labels)
        return freeze({**known, target: separator.join(known.get(name, "") for name in sources)})

    return _changed(vector, change)
