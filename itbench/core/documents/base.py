"""What every document on disk has in common: frozen models, durations, and parsing whose errors name file, line and field.

Called by the library for documents that people write, and by `run` for those that trials leave behind.
"""

import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetCoreSchemaHandler, ValidationError
from pydantic_core import CoreSchema

from itbench.core.documents.reading import DocumentError as DocumentError
from itbench.core.documents.reading import Path_ as Path_
from itbench.core.documents.reading import read_yaml as read_yaml

M = TypeVar("M", bound=BaseModel)

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds(value: Any) -> float:
    """`90`, `90s`, `2m`, `1h30m`, `250ms` -> seconds; raises ValueError on anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("expected a duration such as 90s, 2m or 1h30m")
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:
            raise ValueError("expected a duration of a reasonable size") from None
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", value)
    if not parts or "".join(number + unit for number, unit in parts) != value.strip():
        raise ValueError("expected a duration such as 90s, 2m or 1h30m")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


Duration = Annotated[float, BeforeValidator(seconds), Field(ge=0, le=3660 * 86400.0)]
"""Seconds, ten years at most; written as a number or as `90s`, `2m`, `1h30m`."""
MAX_SEED = 2**63 - 1
MAX_TRIALS = 10_000
MAX_RATE = 100_000.0
Seed = Annotated[int, Field(ge=0, le=MAX_SEED)]
"""What the estate's variations are drawn from."""
Rate = Annotated[float, Field(ge=0, le=MAX_RATE)]
"""Requests per second."""


def exact_numbers(schema: Any) -> None:
    """Make a pydantic schema take whole numbers only where they are written as such: no `true`, no `"80"`, no `80.0`."""
    if isinstance(schema, dict):
        if schema.get("type") == "int":
            schema["strict"] = True
        for key, value in schema.items():
            if key not in ("metadata", "default"):
                exact_numbers(value)
    elif isinstance(schema, list | tuple):
        for value in schema:
            exact_numbers(value)


class Exact(BaseModel):
    """What all that people write has in common: frozen, unknown fields are errors, numbers are finite, whole ones exact."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, allow_inf_nan=False)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        exact_numbers(schema)
        return schema


class Document(Exact):
    """Base of all documents: immutable, and unknown fields are errors."""


def nearest(value: object, options: list[str]) -> str:
    """`, did you mean 'x'?` for the closest option, or nothing."""
    close = difflib.get_close_matches(str(value), options, n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else ""


def _field_names(model: Any, path: Path_) -> list[str]:
    """Names valid at the parent of `path`, followed through nested models as far as annotations tell."""
    current: Any = model
    for step in path[:-1]:
        current = _descend(current, step)
        if current is None:
            return []
    fields = getattr(current, "model_fields", {})
    return [field.alias or name for name, field in fields.items()]


def _descend(kind: Any, step: str | int) -> Any:
    fields = getattr(kind, "model_fields", None)
    if fields is not None:
        named = {field.alias or name: field.annotation for name, field in fields.items()}
        return _model_in(named.get(str(step)))
    return kind if isinstance(step, int) else None


def _model_in(annotation: Any) -> Any:
    if hasattr(annotation, "model_fields"):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        found = _model_in(argument)
        if found is not None:
            return found
    return None


def line_of(path: Path_, lines: Mapping[Path_, int]) -> int:
    """The line of a field, or of the nearest thing around it."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


def _problem(error: Any, file: Path | str, lines: Mapping[Path_, int], model: Any) -> str:
    path = tuple(step for step in error["loc"])
    field = ".".join(str(step) for step in path) or "document"
    seen, message = error.get("input"), str(error["msg"]).removeprefix("Value error, ")
    hint = ""
    if error["type"] == "extra_forbidden":
        message = "no such field"
        hint = nearest(path[-1], _field_names(model, path))
        seen = path[-1]
    elif error["type"] == "missing":
        message, seen = "required field is missing", None
    elif error["type"] == "literal_error":
        options = re.findall(r"'([^']*)'", str(error.get("ctx", {}).get("expected", "")))
        hint = nearest(seen, options)
    text = f"{file}:{line_of(path, lines)}: {field}: {message}"
    if seen is not None:
        shown = repr(seen)
        text += f"; seen {shown if len(shown) <= 80 else shown[:77] + '...'}"
    return text + (f"; {hint}" if hint else "")


def parse(model: type[M], data: Any, *, file: Path | str = "document", lines: Mapping[Path_, int] | None = None) -> M:
    """Validate data as a document.

    Raises:
        DocumentError: every problem on a line of its own: file, line, field, what was expected, what was seen.
    """
    if not isinstance(data, dict):
        raise DocumentError(
            f"{file}:1: not a mapping", seen=type(data).__name__, expected=f"the fields of a {model.__name__}"
        )
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise document_error(error, file, lines or {}, model) from error


def document_error(error: ValidationError, file: Path | str, lines: Mapping[Path_, int], model: Any) -> DocumentError:
    """Every problem on a line of its own, with the line of the field and the nearest valid name."""
    return DocumentError("\n".join(_problem(item, file, lines, model) for item in error.errors()))


def load(model: type[M], file: Path) -> M:
    """Read and validate a YAML document; errors as in `parse` and `read_yaml`."""
    data, lines = read_yaml(file)
    return parse(model, data, file=file, lines=lines)
