"""RFC 6902 JSON patch, with the error texts of the real server."""

from typing import Any

import orjson

from itbench.kube.client import ApiError
from itbench.kube.decode import clone, json_name
from itbench.kube.status import Problem, bad_request, failure, unprocessable

MAX_OPERATIONS = 10_000
MAX_COPIED_BYTES = 3 * 1024 * 1024
"""What `copy` may add up to: a few of them would otherwise fill any memory."""
_REJECTED = "the server rejected our request due to an error in our request"


class PatchFailed(Exception):
    """A path is missing or a test failed."""


def _parts(pointer: str | None) -> list[str]:
    if pointer == "":
        return []
    if pointer is None or not pointer.startswith("/"):
        raise PatchFailed(pointer)
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")]


def _index(array: list[Any], part: str, size: int) -> int:
    if not part.lstrip("-").isdigit():
        raise PatchFailed(part)
    index = int(part)
    if index < 0:
        index += len(array)
    if not 0 <= index < size:
        raise PatchFailed(part)
    return index


def _read(document: Any, parts: list[str]) -> Any:
    for part in parts:
        if isinstance(document, dict):
            if part not in document:
                raise PatchFailed(part)
            document = document[part]
        elif isinstance(document, list):
            document = document[_index(document, part, len(document))]
        else:
            raise PatchFailed(part)
    return document


def _add(document: Any, parts: list[str], value: Any) -> Any:
    if not parts:
        return value
    parent = _read(document, parts[:-1])
    last = parts[-1]
    if isinstance(parent, dict):
        parent[last] = value
    elif isinstance(parent, list):
        parent.insert(len(parent) if last == "-" else _index(parent, last, len(parent) + 1), value)
    else:
        raise PatchFailed(last)
    return document


def _remove(document: Any, parts: list[str]) -> Any:
    if not parts:
        raise PatchFailed("")
    _read(document, parts)
    parent = _read(document, parts[:-1])
    last = parts[-1]
    if isinstance(parent, list):
        del parent[_index(parent, last, len(parent))]
    else:
        del parent[last]
    return document


def _replace(document: Any, parts: list[str], value: Any) -> Any:
    if not parts:
        return value
    parent = _read(document, parts[:-1])
    if not isinstance(parent, dict):  # in an object, a key that is not there is set, as by the real server's library
        _read(document, parts)
    parent[_index(parent, parts[-1], len(parent)) if isinstance(parent, list) else parts[-1]] = value
    return document


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return bool(left == right)


def _step(document: Any, row: Any) -> Any:
    op, parts = row.get("op"), _parts(row.get("path"))
    if op == "add":
        return _add(document, parts, clone(row.get("value")))
    if op == "remove":
        return _remove(document, parts)
    if op == "replace":
        return _replace(document, parts, clone(row.get("value")))
    if op == "test":
        if not _same(_read(document, parts), row.get("value")):
            raise PatchFailed("test")
        return document
    if op in ("move", "copy"):
        source = _parts(row.get("from"))
        value = _read(document, source)
        if op == "move":
            document = _remove(document, source)
        return _add(document, parts, clone(value) if op == "copy" else value)
    raise PatchFailed(str(op))


def _operations(patch: Any) -> list[Any]:
    """The operations, of the right types; null is none.

    Raises:
        ApiError: 400 or 413.
    """
    if patch is None:
        return []
    if not isinstance(patch, list):
        raise _undecodable(patch, "value of type []handlers.jsonPatchOp")
    if len(patch) > MAX_OPERATIONS:
        text = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(patch)}"
        raise failure(413, "RequestEntityTooLarge", f"Request entity too large: {text}", Problem())
    for row in patch:
        if not isinstance(row, dict | None):
            raise _undecodable(row, "value of type handlers.jsonPatchOp")
        for key in ("op", "path", "from"):
            value = (row or {}).get(key)
            if not isinstance(value, str | None):
                raise _undecodable(value, f"struct field jsonPatchOp.{key} of type string")
    return [row or {} for row in patch]


def _undecodable(value: Any, what: str) -> ApiError:
    return bad_request(f"error decoding patch: json: cannot unmarshal {json_name(value)} into Go {what}")


def _size(value: Any) -> int:
    return len(orjson.dumps(value))


def apply_json_patch(document: Any, patch: Any) -> Any:
    """Apply a JSON patch to a private copy of a document and return the result.

    Raises:
        ApiError: 400 when the patch is no list of operations; 422 when a path is missing or a test fails.
    """
    rows = _operations(patch)
    copied = 0
    try:
        for row in rows:
            if row.get("op") == "copy":
                copied += _size(_read(document, _parts(row.get("from"))))
                if copied > MAX_COPIED_BYTES:
                    raise PatchFailed("copy")
            document = _step(document, row)
    except PatchFailed:
        raise rejected() from None
    return document


def rejected() -> ApiError:
    """422 without causes, as the real server words it."""
    return unprocessable(_REJECTED)
