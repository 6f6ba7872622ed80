"""One served version of a custom resource: everything about it that depends on its definition.

Attached to its row of the resource table; asked by the registry (decoding, validation, conversion), tables, selectors, discovery
and OpenAPI. Built by `serving` from a CustomResourceDefinition; immutable.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from itbench.kube.client import Obj
from itbench.kube.custom import columns, conversion, defaulting, jsonpath, listkeys, rules, typed, validation
from itbench.kube.custom.pruning import Pruner, prune
from itbench.kube.custom.ratcheting import unchanged
from itbench.kube.custom.schemas import Schema, child_of, node_of
from itbench.kube.decode import Decoded, WrongType, handled_as
from itbench.kube.kinds.base import Behaviour
from itbench.kube.kinds.check import Check
from itbench.kube.schema import Node
from itbench.kube.status import Cause

_ANYTHING: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


_BLOCKING = frozenset(f"FieldValue{kind}" for kind in ("NotSupported", "Required", "TooLong", "TooMany", "TypeInvalid"))
"""Faults after which rules are not evaluated."""
_GO_TYPES = {str: "string", float: "float64"}


@dataclass(frozen=True, eq=False)
class Model:
    """One version.

    Attributes:
        definition: the whole CustomResourceDefinition.
        version: its row in `spec.versions`.
        schemas: structural schemas of all versions by name (for conversion).
        ask: asks conversion webhooks.
    """

    definition: Obj
    version: Obj
    schemas: Mapping[str, Schema] = field(repr=False)
    ask: conversion.Ask | None = field(default=None, repr=False)

    @property
    def schema(self) -> Schema:
        """The structural schema."""
        return self.schemas[self.version["name"]]

    @property
    def kind(self) -> str:
        """The kind."""
        return str(self.definition["spec"]["names"]["kind"])

    @cached_property
    def node(self) -> Node:
        """The schema as patches and server-side apply walk it."""
        return node_of(self.schema)

    @cached_property
    def behaviour(self) -> Behaviour:
        """Rules for the registry; those of the schema are in `check`."""
        return Behaviour(generation=True, validate=lambda obj, check: self.check(obj, None, check))

    @cached_property
    def columns(self) -> tuple[columns.Column, ...]:
        """Printer columns after the name."""
        return columns.columns_of(self.version.get("additionalPrinterColumns"))

    @cached_property
    def selectable(self) -> tuple[str, ...]:
        """Paths that field selectors may use besides name and namespace."""
        return tuple(row["jsonPath"].removeprefix(".") for row in self.version.get("selectableFields") or ())

    @property
    def stored_version(self) -> str:
        """The version in which objects are stored; clients in process speak it, so that nothing is converted for them."""
        return conversion.storage_version(self.definition)

    @property
    def terminating(self) -> bool:
        """Whether the definition is being deleted: nothing can be created any more."""
        return bool(self.definition["metadata"].get("deletionTimestamp"))

    @property
    def warning(self) -> str:
        """The deprecation warning, empty for none."""
        return conversion.deprecation(self.definition, self.version)

    # -- objects ---------------------------------------------------------------------------------------------------------

    def decode(self, body: Obj, *, raw: bool = False) -> Decoded:
        """Copy a body: prune, and fill in defaults unless `raw`.

        Raises:
            ApiError: 400, metadata or an embedded object is malformed.
        """
        pruner = Pruner(raw=raw)
        try:
            obj = pruner.root(body, self.schema)
        except WrongType as error:
            raise handled_as(body, str(error)) from None
        if not raw:
            obj = defaulting.fill(obj, self.schema)
        return Decoded(obj, sorted(pruner.unknown))

    def check_config(self, config: Obj, name: str) -> None:
        """Refuse a configuration to apply that does not fit the schema; raises ApiError 500 as the merge library does."""
        try:
            typed.check_config(config, self.schema)
        except typed.Misfit as error:
            raise typed.typed_error(config, name, str(error)) from None

    def read(self, obj: Obj) -> Obj:
        """A stored object in this version, with defaults that its definition got later; the object itself if nothing differs."""
        _, _, stored = obj["apiVersion"].rpartition("/")
        known = self.schemas.get(stored)
        out = defaulting.fill(obj, known) if known is not None else obj
        if stored == self.version["name"]:
            return out
        return prune(conversion.convert(self.definition, out, self.version["name"], self.ask), self.schema)

    def write(self, obj: Obj) -> Obj:
        """An object of this version in the one that is stored."""
        stored = self.stored_version
        if stored == self.version["name"]:
            return obj
        return prune(conversion.convert(self.definition, obj, stored, self.ask), self.schemas[stored])

    def check(self, obj: Obj, old: Obj | None, check: Check, *, status: bool = False) -> None:
        """Schema, list keys and rules.

        Args:
            obj: the new state, in any version of the definition.
            old: the state before; faults in parts that did not change are forgiven.
            check: takes the causes.
            status: only the status was written; nothing else is looked at.
        """
        new = self.read(obj)
        before = self.read(old) if old is not None else None
        faults = self._status_faults(new) if status else validation.validate(new, self.schema)
        faults += self._scale_faults(new, status=status)
        if not faults:
            faults = listkeys.duplicates(new, self.schema)
        if before is not None:
            faults = [fault for fault in faults if not unchanged(new, before, self.schema, fault)]
        check.causes += [fault.cause for fault in faults]
        check.causes += rules.check(
            new, before, self.schema, blocked=any(fault.cause.reason in _BLOCKING for fault in faults)
        )

    def _status_faults(self, obj: Obj) -> validation.Faults:
        part = child_of(self.schema, "status")
        if part is None or "status" not in obj:
            return []
        return validation.rebased(validation.validate(obj["status"], part), "status")

    def _scale_faults(self, obj: Obj, *, status: bool) -> validation.Faults:
        if "scale" not in (self.version.get("subresources") or {}):
            return []
        path = self.scale_paths()[1 if status else 0]
        value = jsonpath.get(obj, path)
        if value is not None and type(value) in _GO_TYPES:
            place = "." + ".".join(path)
            text = f"{place} accessor error: {value} is of the type {_GO_TYPES[type(value)]}, expected int64"
            return [validation.Fault(Cause("FieldValueInvalid", place, f"Invalid value: 0: {text}"), ".".join(path))]
        if not isinstance(value, int) or value >= 0:
            return []
        text = f"Invalid value: {value}: should be a non-negative integer"
        return [validation.Fault(Cause("FieldValueInvalid", "." + ".".join(path), text), ".".join(path))]

    # -- scale -----------------------------------------------------------------------------------------------------------

    def scale_paths(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """Where spec replicas, status replicas and selector are; empty for no selector."""
        raw = self.version["subresources"]["scale"]
        selector = raw.get("labelSelectorPath") or ""
        return (
            jsonpath.parse_plain(raw["specReplicasPath"]),
            jsonpath.parse_plain(raw["statusReplicasPath"]),
            jsonpath.parse_plain(selector) if selector else (),
        )


def schema_of(definition: Obj, version: Obj) -> Schema:
    """The structural schema of a version; one that keeps everything where there is none."""
    found: Any = (version.get("schema") or {}).get("openAPIV3Schema")
    if found is None or definition["spec"].get("preserveUnknownFields"):
        return {**(found or {}), **_ANYTHING}
    return dict(found)
