"""The record that the control plane keeps of every request from outside, for graders, safety and the audit of changes.

`itbench.kube.api` and in-process clients with a user append to `ControlPlane.audit`; graders read it.
Evidence holds no wire times, ports or tokens: times are world seconds, digests are of canonical JSON.
"""

import hashlib
from typing import Any, NamedTuple

import orjson

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
"""Verbs that may change state (a POST on a connect subresource such as exec is audited as `create` too)."""


class AuditRecord(NamedTuple):
    """One request; a tuple, as one is made for every request. Plain data: `as_data` and `from_data` round-trip it for snapshots.

    Attributes:
        time: world second at which it was answered.
        user: who asked (he who authenticated); `manager`: the field manager or client program.
        impersonated: as whom he acted, if not as himself.
        verb: RBAC verb (`get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`).
        resource: plural and group such as `deployments.apps`; empty for non-resource paths.
        code: HTTP status of the answer.
        before: digest of the object before a write, empty when it did not exist; `after`: the same after it.
        dry: a dry run, nothing was kept.
        detail: the command of an exec, the path of a non-resource request, the patch type of a patch.
        notes: what admission noted (failed policies of action Audit, annotations of policies and webhooks).
    """

    time: float
    user: str
    verb: str
    resource: str
    namespace: str
    name: str
    subresource: str
    code: int
    before: str = ""
    after: str = ""
    manager: str = ""
    dry: bool = False
    detail: str = ""
    impersonated: str = ""
    notes: tuple[str, ...] = ()

    @property
    def writes(self) -> bool:
        """Whether the request changed, or tried to change, stored state."""
        return self.verb in WRITES and not self.dry

    def as_data(self) -> dict[str, Any]:
        """Plain data for snapshots and evidence."""
        return {**self._asdict(), "notes": list(self.notes)}

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> "AuditRecord":
        """The inverse of `as_data`."""
        return cls(**{**data, "notes": tuple(data.get("notes", ()))})


def digest_of(obj: dict[str, Any] | None) -> str:
    """A short digest of an object's canonical JSON without resourceVersion and managedFields; empty for None."""
    if obj is None:
        return ""
    meta = {k: v for k, v in obj.get("metadata", {}).items() if k not in ("resourceVersion", "managedFields")}
    text = orjson.dumps({**obj, "metadata": meta}, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(text).hexdigest()[:16]


def only_asks(resource: str) -> bool:
    """Whether creating a resource of this name only asks who may do what (`selfsubjectaccessreviews.authorization.k8s.io`)."""
    return resource.partition(".")[2] == "authorization.k8s.io"
