"""The file of approved exceptions: which violation of which subject somebody answers for, and until when.

Exceptions that have expired, or that name no subject exactly, do not count and are findings themselves.
"""

import datetime
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from itbench.core.documents.base import Document, load
from itbench.core.errors import UsageError

CONTROL = "exceptions"
"""The control id of findings about exceptions."""


class Waiver(Document):
    """One exception; `subject` as reports write it: `DaemonSet/kube-system/cni`."""

    control: str
    subject: str
    reason: str = Field(min_length=10)
    approver: str = Field(min_length=2)
    expires: datetime.date

    @property
    def wildcard(self) -> bool:
        """Whether it names more than one subject."""
        return any(sign in self.subject for sign in "*?[")


class ExceptionFile(Document):
    """`exceptions.yaml`."""

    schema_: Literal["itbench/exceptions/v1"] = Field(alias="schema")
    exceptions: tuple[Waiver, ...]


def read(path: str, known: Iterable[str]) -> tuple[Waiver, ...]:
    """The exceptions of a file; none for an empty path.

    Raises:
        UsageError: no such file, wrong form, or an unknown control.
    """
    if not path:
        return ()
    if not Path(path).is_file():
        raise UsageError("no such exceptions file", seen=path)
    try:
        found = load(ExceptionFile, Path(path)).exceptions
    except Exception as error:
        raise UsageError(f"exceptions file: {error}") from error
    ids = set(known)
    for waiver in found:
        if waiver.control not in ids:
            raise UsageError(
                "exception for a control that the profile does not have", seen=waiver.control, hint="see --show"
            )
    return found


def fault(waiver: Waiver, today: datetime.date) -> str:
    """Why an exception does not count; empty when it does."""
    if waiver.wildcard:
        return f"wildcard exception {waiver.control} {waiver.subject}: name every subject"
    if waiver.expires < today:
        return f"exception {waiver.control} {waiver.subject} expired on {waiver.expires}"
    return ""


def as_data(waiver: Waiver) -> dict[str, Any]:
    """What a record keeps of it."""
    return {"reason": waiver.reason, "approver": waiver.approver, "expires": waiver.expires.isoformat()}
