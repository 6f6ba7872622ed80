"""Keeps the resource table in step with the definitions in the store; called by the registry whenever those have changed."""

import hashlib
from collections.abc import Iterable

import orjson

from itbench.kube.client import Obj
from itbench.kube.custom.conversion import Ask, version_key
from itbench.kube.custom.model import Model, schema_of
from itbench.kube.resources import Resource, Subresource
from itbench.kube.store import Entry

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_SUB_VERBS = ("get", "patch", "update")


def is_true(definition: Obj, kind: str) -> bool:
    """Whether a condition of a definition holds."""
    rows = (definition.get("status") or {}).get("conditions") or ()
    return any(row.get("type") == kind and row.get("status") == "True" for row in rows)


def _subresources(group: str, version: Obj, kind: str) -> tuple[Subresource, ...]:
    raw = version.get("subresources") or {}
    found = []
    if raw.get("status") is not None:
        found.append(Subresource("status", kind, _SUB_VERBS))
    if raw.get("scale") is not None:
        found.append(Subresource("scale", "Scale", _SUB_VERBS, "autoscaling", "v1"))
    return tuple(found)


def _resources(definition: Obj, ask: Ask | None) -> Iterable[Resource]:
    spec, names = definition["spec"], definition["status"]["acceptedNames"]
    schemas = {row["name"]: schema_of(definition, row) for row in spec["versions"]}
    digest = hashlib.sha256(orjson.dumps([spec, definition["metadata"].get("deletionTimestamp")])).hexdigest()[:16]
    for version in spec["versions"]:
        if version["served"]:
            yield Resource(
                group=spec["group"],
                version=version["name"],
                kind=names["kind"],
                plural=names["plural"],
                singular=names.get("singular", ""),
                namespaced=spec["scope"] == "Namespaced",
                verbs=_VERBS,
                short_names=tuple(names.get("shortNames") or ()),
                categories=tuple(names.get("categories") or ()),
                subresources=_subresources(spec["group"], version, names["kind"]),
                custom=True,
                list_kind=names.get("listKind", ""),
                model=Model(definition, version, schemas, ask),
                digest=digest,
            )


def _order(resource: Resource) -> tuple[str, tuple[int, int, int, str], str]:
    return resource.group, version_key(resource.version), resource.plural


class Served:
    """Rows of established definitions. Those of definitions that did not change stay the same, with what they computed.

    Args:
        ask: asks conversion webhooks.
    """

    def __init__(self, ask: Ask | None = None) -> None:
        self._ask = ask
        self._known: dict[str, tuple[Entry, tuple[Resource, ...]]] = {}

    def rows(self, definitions: Iterable[Entry]) -> list[Resource]:
        """All rows for these definitions, in the order of discovery."""
        now: dict[str, tuple[Entry, tuple[Resource, ...]]] = {}
        for entry in definitions:
            known = self._known.get(entry.name)
            if known is None or known[0] is not entry:
                established = is_true(entry.object, "Established")
                known = (entry, tuple(_resources(entry.object, self._ask)) if established else ())
            now[entry.name] = known
        self._known = now
        return sorted((row for _, rows in now.values() for row in rows), key=_order)
