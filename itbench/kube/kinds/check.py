"""Collects what is wrong with an object, field by field, in the words of the real server. Used by all validators."""

from collections.abc import Iterable
from typing import Any

import orjson

from itbench.kube.status import Cause

_ESCAPED = (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026"))
"""How Go writes these letters in the JSON of structures."""


def printed(value: Any) -> str:
    """A value as error texts show it: compact JSON."""
    text = orjson.dumps(value).decode()
    if not isinstance(value, (dict, list)):
        return text
    for letter, instead in _ESCAPED:
        text = text.replace(letter, instead)
    return text


class Check:
    """A list of causes under construction."""

    def __init__(self) -> None:
        self.causes: list[Cause] = []

    def __bool__(self) -> bool:
        return bool(self.causes)

    def required(self, field: str, text: str = "") -> None:
        """A field is missing."""
        self.causes.append(Cause("FieldValueRequired", field, f"Required value: {text}" if text else "Required value"))

    def invalid(self, field: str, value: Any, text: str) -> None:
        """A value is malformed or out of range."""
        self.causes.append(Cause("FieldValueInvalid", field, f"Invalid value: {printed(value)}: {text}"))

    def forbidden(self, field: str, text: str) -> None:
        """A field must not be set or changed."""
        self.causes.append(Cause("FieldValueForbidden", field, f"Forbidden: {text}"))

    def unsupported(self, field: str, value: Any, supported: Iterable[str]) -> None:
        """A value is none of the allowed ones (printed in the order given)."""
        options = ", ".join(printed(option) for option in supported)
        text = f"Unsupported value: {printed(value)}: supported values: {options}"
        self.causes.append(Cause("FieldValueNotSupported", field, text))

    def duplicate(self, field: str, value: Any) -> None:
        """A value that must be unique comes twice."""
        self.causes.append(Cause("FieldValueDuplicate", field, f"Duplicate value: {printed(value)}"))

    def missing(self, field: str, value: Any) -> None:
        """A reference leads nowhere."""
        self.causes.append(Cause("FieldValueNotFound", field, f"Not found: {printed(value)}"))

    def too_long(self, field: str, limit: int) -> None:
        """A text has more than `limit` bytes."""
        self.causes.append(Cause("FieldValueTooLong", field, f"Too long: may not be more than {limit} bytes"))

    def all_invalid(self, field: str, value: Any, texts: Iterable[str]) -> None:
        """One cause per text."""
        for text in texts:
            self.invalid(field, value, text)

    def immutable(self, field: str, new: Any, old: Any) -> None:
        """The field must equal its old value."""
        if new != old:
            self.invalid(field, new, "field is immutable")

    def non_negative(self, field: str, value: Any) -> None:
        """A number must not be negative."""
        if isinstance(value, int) and value < 0:
            self.invalid(field, value, "must be greater than or equal to 0")

    def one_of(self, field: str, value: Any, supported: Iterable[str], *, required: bool = True) -> None:
        """The value must be one of the allowed ones."""
        if value in (None, ""):
            if required:
                self.required(field)
        elif value not in supported:
            self.unsupported(field, value, supported)
