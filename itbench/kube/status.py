"""`Status` answers: every error that the registry raises, with the texts and causes that clients print.

Functions return an `ApiError` for the caller to raise, or build the successful Status of a delete.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from itbench.kube.client import ApiError, Obj
from itbench.kube.resources import Resource


@dataclass(frozen=True, slots=True)
class Cause:
    """One problem of one field; `text` is the whole of it as printed after the field name."""

    reason: str
    field: str
    text: str

    def line(self) -> str:
        """`spec.replicas: Invalid value: -1: must be ...`"""
        return f"{self.field}: {self.text}" if self.field else self.text


@dataclass(frozen=True, slots=True)
class Problem:
    """What an error is about: `name`, `group`, `kind` of Status.details (kind is a plural, or the Kind in a 422)."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""

    def details(self) -> Obj:
        """The non-empty parts."""
        rows = {"name": self.name, "group": self.group, "kind": self.kind, "uid": self.uid}
        return {key: value for key, value in rows.items() if value}


def about(resource: Resource, name: str = "") -> Problem:
    """The problem's details for one object of a resource."""
    return Problem(name, resource.group, resource.plural)


def failure(
    code: int, reason: str, message: str, problem: Problem | None = None, causes: Sequence[Cause] = (), retry_s: int = 0
) -> ApiError:
    """Any failure."""
    details: dict[str, Any] = problem.details() if problem else {}
    if causes:
        details["causes"] = [
            {key: value for key, value in (("reason", c.reason), ("message", c.text), ("field", c.field)) if value}
            for c in causes
        ]
    if retry_s:
        details["retryAfterSeconds"] = retry_s
    status: Obj = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
    }
    if reason:
        status["reason"] = reason
    if details or problem is not None:
        status["details"] = details
    status["code"] = code
    return ApiError(status)


def not_found(resource: Resource, name: str) -> ApiError:
    """404."""
    return failure(404, "NotFound", f'{resource.name} "{name}" not found', about(resource, name))


def namespace_not_found(name: str) -> ApiError:
    """404 of a namespace."""
    return failure(404, "NotFound", f'namespaces "{name}" not found', Problem(name, "", "namespaces"))


def already_exists(resource: Resource, name: str) -> ApiError:
    """409 on create."""
    return failure(409, "AlreadyExists", f'{resource.name} "{name}" already exists', about(resource, name))


STALE = "the object has been modified; please apply your changes to the latest version and try again"


def conflict(resource: Resource, name: str, why: str = STALE) -> ApiError:
    """409 on update."""
    text = f'Operation cannot be fulfilled on {resource.name} "{name}": {why}'
    return failure(409, "Conflict", text, about(resource, name))


def bad_request(message: str) -> ApiError:
    """400."""
    return failure(400, "BadRequest", message)


def forbidden(resource: Resource, name: str, why: str) -> ApiError:
    """403 by admission."""
    return failure(403, "Forbidden", f'{resource.name} "{name}" is forbidden: {why}', about(resource, name))


def internal(message: str) -> ApiError:
    """500."""
    return failure(500, "InternalError", f"Internal error occurred: {message}", Problem(), [Cause("", "", message)])


_BY_POLICY = ("admission webhook", "failed calling webhook", "ValidatingAdmissionPolicy", "resulted in error")


def by_policy(error: ApiError) -> bool:
    """Whether a webhook or an admission policy refused, which components bear with and try again."""
    return any(mark in str(error) for mark in _BY_POLICY)


def unsupported_media_type(accepted: Sequence[str]) -> ApiError:
    """415."""
    text = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    return failure(415, "UnsupportedMediaType", text)


def expired(message: str) -> ApiError:
    """410 of a watch or a continued list."""
    return failure(410, "Expired", message)


def method_not_allowed(message: str, problem: Problem | None = None) -> ApiError:
    """405."""
    return failure(405, "MethodNotAllowed", message, problem)


def invalid(kind: str, group: str, name: str, causes: Sequence[Cause]) -> ApiError:
    """422 with one cause per faulty field."""
    lines = list(dict.fromkeys(cause.line() for cause in causes))
    text = lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"
    title = f"{kind}.{group}" if group else kind
    return failure(422, "Invalid", f'{title} "{name}" is invalid: {text}', Problem(name, group, kind), causes)


def bad_patch(shown: str, why: str) -> ApiError:
    """422 of a patch whose outcome is not an object of its kind.

    Args:
        shown: what is blamed: the patch in Go's notation, or the patched object as JSON.
        why: the decoder's words.
    """
    cause = Cause("FieldValueInvalid", "patch", f"Invalid value: {orjson.dumps(shown).decode()}: {why}")
    return failure(422, "Invalid", f' "" is invalid: {cause.line()}', Problem(), [cause])


def unprocessable(message: str) -> ApiError:
    """422 that names no field: patches that cannot be applied."""
    return failure(422, "Invalid", message, Problem())


def deleted(resource: Resource, name: str, uid: str) -> Obj:
    """The answer to a delete that removed the object."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": Problem(name, resource.group, resource.plural, uid).details(),
    }
