"""Reads YAML files that people write: their data and the line of each field, or one line that says what is wrong and where.

Called by `itbench.core.documents.base`, which hands its names on.
"""

import re
from math import isfinite
from pathlib import Path
from typing import Any

import yaml

from itbench.core.errors import ScenarioDefect

Path_ = tuple[str | int, ...]

MAX_VALUES = 300_000
"""Values of a document after aliases are written out."""
MAX_DEPTH = 100
"""Mappings and lists inside one another."""


_DEEP_BLOCK = re.compile(rf"^[ ?:-]{{{MAX_DEPTH},}}", re.MULTILINE)
_AS_WRITTEN = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge")


class DocumentError(ScenarioDefect):
    """A document does not have the right form; one line per problem, each with file, line, field, seen, expected."""


_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Safe YAML, by libyaml where the package has it: ten times faster."""


def read_text(file: Path) -> str:
    """The text of a file; raises DocumentError when it cannot be read or is no UTF-8."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DocumentError(f"cannot read {file}", seen=str(error), expected="a readable UTF-8 file") from error


def read_yaml(file: Path) -> tuple[Any, dict[Path_, int]]:
    """The data of a YAML file and the line of each field.

    Raises:
        DocumentError: unreadable, not YAML, a field given twice, a value that no document may hold, too much of it.
    """
    text = read_text(file)
    try:
        _check_nesting(text, file)
        loader = _Loader(text)
        node = loader.get_single_node()
        lines: dict[Path_, int] = {}
        if node is None:
            return None, lines
        # Before construction, which writes merged keys (`<<`) into the node.
        _Walk(file, loader, lines).value(node, ())
        return loader.construct_document(node), lines
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        why = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        raise DocumentError(f"{file}:{line}: not YAML", seen=why, expected="YAML") from error


def read_data(file: Path) -> Any:
    """The data of a YAML file whose form is somebody else's concern; raises DocumentError as `read_yaml` does."""
    try:
        text = read_text(file)
        _check_nesting(text, file)
        return yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, ValueError):
        return read_yaml(file)[0]


def _check_nesting(text: str, file: Path) -> None:
    """Raise DocumentError before a parser that recurses meets nesting that no document needs."""
    if text.count("[") + text.count("{") <= MAX_DEPTH and not _DEEP_BLOCK.search(text):
        return
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise _error(file, event, "nested too deep", expected=f"at most {MAX_DEPTH} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _error(file: Path, place: Any, text: str, *, seen: object = None, expected: str = "") -> DocumentError:
    return DocumentError(f"{file}:{place.start_mark.line + 1}: {text}", seen=seen, expected=expected)


class _Walk:
    """One walk over the nodes of a document, aliases written out, before anything is made of them."""

    def __init__(self, file: Path, loader: Any, lines: dict[Path_, int]) -> None:
        self._file, self._loader, self._lines = file, loader, lines
        self._left = MAX_VALUES
        self._around: set[int] = set()

    def value(self, node: yaml.Node, path: Path_) -> None:
        """Note the line of each path; raises DocumentError for the first thing that is wrong."""
        self._left -= 1
        if self._left < 0:
            raise self._wrong(node, "too many values", expected=f"at most {MAX_VALUES}, aliases written out")
        self._lines[path] = node.start_mark.line + 1
        if isinstance(node, yaml.ScalarNode):
            self._scalar(node)
            return
        if id(node) in self._around:
            raise self._wrong(node, "a value that holds itself", expected="aliases of what is complete")
        if len(self._around) >= MAX_DEPTH:
            raise self._wrong(node, "nested too deep", expected=f"at most {MAX_DEPTH} levels")
        self._around.add(id(node))
        if isinstance(node, yaml.MappingNode):
            self._mapping(node, path)
        else:
            for index, value in enumerate(node.value):
                self.value(value, (*path, index))
        self._around.discard(id(node))

    def _mapping(self, node: yaml.MappingNode, path: Path_) -> None:
        seen: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self._wrong(key, "a field whose name is no text", expected="names as text")
            self._scalar(key)
            if key.value in seen:
                raise DocumentError(
                    f"{self._file}:{key.start_mark.line + 1}: field given twice",
                    seen=key.value,
                    hint="keep one of them",
                )
            seen.add(key.value)
            self.value(value, (*path, key.value))
            self._lines[(*path, key.value)] = key.start_mark.line + 1

    def _scalar(self, node: yaml.ScalarNode) -> None:
        if node.tag in _AS_WRITTEN:
            return
        try:
            value = self._loader.construct_object(node)
        except (ValueError, OverflowError, KeyError, IndexError) as error:
            raise self._wrong(node, f"not a value ({str(error).splitlines()[0]})", seen=node.value[:80]) from error
        if isinstance(value, float) and not isfinite(value):
            raise self._wrong(node, "not a finite number", seen=node.value[:80], expected="a finite number")

    def _wrong(self, node: yaml.Node, text: str, *, seen: object = None, expected: str = "") -> DocumentError:
        return _error(self._file, node, text, seen=seen, expected=expected)
