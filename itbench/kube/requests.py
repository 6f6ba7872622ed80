"""Arguments and results of the registry's verbs. Called by the API server, `LocalClient`, and whoever writes with options."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from itbench.kube.client import Obj, PatchKind, Propagation
from itbench.kube.duplicates import NONE, Duplicates
from itbench.kube.store import Entry

Validation = Literal["", "Strict", "Warn", "Ignore"]


@dataclass(frozen=True, slots=True)
class Options:
    """Who asks and how.

    Attributes:
        manager: field manager (the API server takes it from `fieldManager` or User-Agent).
        validation: unknown fields are an error (Strict), a warning (Warn, the default of the server) or dropped (Ignore).
        force: an apply takes fields away from other managers.
        duplicates: keys that the bytes of the body set twice.
        uid: the user's uid; `extra`: what else is known of him.
        asked: the options that the request names itself.
        notes: filled by admission with what the audit log is to say.
    """

    manager: str = "unknown"
    user: str = "system:admin"
    groups: tuple[str, ...] = ("system:masters",)
    dry_run: bool = False
    validation: Validation = "Warn"
    force: bool = False
    duplicates: Duplicates = NONE
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()
    asked: dict[str, str | bool] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list, compare=False)


@dataclass(frozen=True, slots=True)
class PatchBody:
    """A patch and its kind."""

    kind: PatchKind
    value: object


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """The body of a delete. `grace_s` None means the object's own."""

    grace_s: int | None = None
    propagation: Propagation | Literal[""] = ""
    uid: str = ""
    resource_version: str = ""


@dataclass(slots=True)
class Result:
    """What a write came to.

    Attributes:
        object: the answer, in the version asked for (shared: do not change).
        entry: the stored entry whose object that is; None for dry runs, Status answers, Scale and the like.
        created: the answer is 201.
        warnings: texts for `Warning` headers.
        before: the entry before the write.
    """

    object: Obj
    entry: Entry | None = None
    created: bool = False
    warnings: list[str] = field(default_factory=list)
    before: Entry | None = None


@dataclass(frozen=True, slots=True)
class ListQuery:
    """Selectors and paging of a list.

    Attributes:
        version: its resourceVersion, and `match` its resourceVersionMatch, as sent.
        initial: with sendInitialEvents, which is for watches.
    """

    labels: str = ""
    fields: str = ""
    limit: int = 0
    token: str = ""
    version: str = ""
    match: str = ""
    initial: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list. `revision` is the list's resourceVersion, `token` its `continue`."""

    entries: list[Entry]
    revision: int
    token: str = ""
    remaining: int = 0


Entries = list[Entry]
Texts = list[str]
Now = Callable[[], float]
