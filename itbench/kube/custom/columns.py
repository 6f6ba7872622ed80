"""Printer columns of custom resources; called by `itbench.kube.tables`."""

from dataclasses import dataclass
from typing import Any

import orjson

from itbench.kube.client import Obj
from itbench.kube.custom import jsonpath
from itbench.kube.tables.cells import Age, Cell, Cells, moment

_NAME = (
    "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to "
    "request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and "
    "configuration definition. Cannot be updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
)
_AGE = (
    "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set "
    "in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and "
    "is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
)
_CREATED = ".metadata.creationTimestamp"


@dataclass(frozen=True, slots=True)
class Column:
    """One column after the name: its header and the path of its value."""

    header: Obj
    steps: jsonpath.Steps

    def cell(self, obj: Obj) -> Cell:
        """The cell of one object."""
        found = jsonpath.find(obj, self.steps)
        return _cell(self.header["type"], found[0]) if found else None


def _header(name: str, kind: str, form: str, text: str, priority: int) -> Obj:
    return {"name": name, "type": kind, "format": form, "description": text, "priority": priority}


NAME = _header("Name", "string", "name", _NAME, 0)


def columns_of(rows: list[Obj] | None) -> tuple[Column, ...]:
    """The columns of a version: those that it names, or the age."""
    if not rows:
        return (Column(_header("Age", "date", "", _AGE, 0), jsonpath.parse(_CREATED)),)
    found = []
    for row in rows:
        text = row.get("description") or f"Custom resource definition column (in JSONPath format): {row['jsonPath']}"
        header = _header(row["name"], row["type"], row.get("format", ""), text, row.get("priority", 0))
        try:
            found.append(Column(header, jsonpath.parse(row["jsonPath"])))
        except jsonpath.BadPath:
            continue
    return tuple(found)


def cells(columns: tuple[Column, ...], obj: Obj) -> Cells:
    """Name and cells of one object."""
    return [obj["metadata"]["name"], *(column.cell(obj) for column in columns)]


def _cell(kind: str, value: Any) -> Cell:
    if value is None:
        return None
    if kind == "date":
        return _date(value)
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind == "integer":
        return int(value) if number else None
    if kind == "number":
        return value if number else None
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    return _text(value)


def _date(value: Any) -> Cell:
    if not isinstance(value, str):
        return None
    try:
        return Age(moment(value))
    except ValueError:
        return "<invalid>"


def _text(value: Any) -> str:
    """A value in a column of strings: texts as they are, objects and lists as JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, (dict, list)):
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    return str(value)
