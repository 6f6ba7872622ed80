"""Keys that a request body sets twice: what strict and warning field validation say about bytes that a parser reads silently.

`kube.api.bodies` finds them where the bytes still are; the registry words them together with the unknown fields.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

_LAST = 10**9
_OPERATION = frozenset({"op", "path", "from", "value"})


class _Pairs(list[tuple[str, Any]]):
    """A JSON object as it was written, every pair of it."""


@dataclass(frozen=True, slots=True)
class Duplicates:
    """What one body set twice.

    Attributes:
        found: (place, text) in the order of the bytes.
        places: path of every field -> its place, where there is something to sort by.
        document: the format sums its own errors up in one sentence (YAML).
    """

    found: tuple[tuple[int, str], ...] = ()
    places: Mapping[str, int] = field(default_factory=dict)
    document: bool = False

    def warnings(self, unknown: list[str]) -> list[str]:
        """One text for each duplicate and each unknown field (paths), in the order of the body."""
        rows = [*self.found, *((self.places.get(path, _LAST), f'unknown field "{path}"') for path in unknown)]
        return [text for _, text in sorted(rows, key=lambda row: row[0])]

    def error(self, unknown: list[str]) -> str:
        """The same as one sentence of the strict decoder; empty when there is nothing to say."""
        texts = self.warnings(unknown)
        if self.document and self.found:
            count = len(self.found)
            texts = ["".join(["yaml: unmarshal errors:", *(f"\n  {text}" for text in texts[:count])]), *texts[count:]]
        return ", ".join(texts)


NONE = Duplicates()


def in_json(raw: bytes) -> Duplicates:
    """Duplicates of a JSON document."""
    fields = _fields(raw)
    found = tuple((place, f'duplicate field "{path}"') for place, (path, again) in enumerate(fields) if again)
    if not found:
        return NONE
    places: dict[str, int] = {}
    for place, (path, _) in enumerate(fields):
        places.setdefault(path, place)
    return Duplicates(found, places)


def in_patch(raw: bytes) -> Duplicates:
    """Duplicates of a merge patch: said before what the patched object has unknown."""
    return Duplicates(in_json(raw).found)


def in_operations(raw: bytes) -> Duplicates:
    """Duplicates and unknown members of a JSON patch's operations."""
    found: list[tuple[int, str]] = []
    for place, (path, again) in enumerate(_fields(raw)):
        member = path.partition("].")[2]
        if again:
            found.append((place, f'json patch duplicate field "{path}"'))
        elif member not in _OPERATION and not member.startswith("value"):
            found.append((place, f'json patch unknown field "{path}"'))
    return Duplicates(tuple(found))


def _fields(raw: bytes) -> list[tuple[str, bool]]:
    try:
        return list(_walk(json.loads(raw, object_pairs_hook=_Pairs), ""))
    except ValueError:
        return []


def _walk(value: Any, path: str) -> Iterator[tuple[str, bool]]:
    """Every field of a document with its path, and whether its object has it already."""
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for key, row in value:
            where = f"{path}.{key}" if path else key
            yield where, key in seen
            seen.add(key)
            yield from _walk(row, where)
    elif isinstance(value, list):
        for index, row in enumerate(value):
            yield from _walk(row, f"{path}[{index}]")


def in_yaml(raw: bytes, loader: Any) -> Duplicates:
    """Duplicates of a YAML document, by line; they come before what is unknown."""
    try:
        root = yaml.compose(raw, Loader=loader)
    except yaml.YAMLError:
        return NONE
    found = tuple((-1, text) for _, text in sorted(_lines(root)))
    return Duplicates(found, document=True)


def _lines(node: yaml.Node | None) -> Iterator[tuple[int, str]]:
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen:
                line = key.start_mark.line + 1
                yield line, f'line {line}: key "{key.value}" already set in map'
            seen.add(key.value)
            yield from _lines(value)
    elif isinstance(node, yaml.SequenceNode):
        for row in node.value:
            yield from _lines(row)
