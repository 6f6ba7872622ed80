"""Field index over the OpenAPI schemas: types, patch strategies, list keys, enums; and the documents of `/openapi/v3`.

Nodes are built lazily from the generated table. Called by patches (strategic, apply), by decoding (field validation) and by
the API server (`openapi_v3`).

    node = schema.of("apps/v1", "Deployment")       # Node | None (custom kinds without a schema)
    node.child("spec").child("template")            # Node | None
"""

from functools import lru_cache
from typing import Any

from itbench.kube.data import read

_PREFIX = "#/components/schemas/"
_SCALARS = ("string", "integer", "number", "boolean")
_SPECIAL = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "intorstring",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "time",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "time",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": "shared",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "any",
}


_PRINTED = {"io.k8s.api.apps.v1.StatefulSetStatus": ("availableReplicas",)}
"""Optional fields that are printed when zero, as if they were required."""


class Node:
    """The schema of one value.

    Attributes:
        kind: `struct`, `map`, `list`, `string`, `integer`, `number`, `boolean`, `time`, `quantity`, `intorstring`, `any`, or
            `shared` (sets of fields, which are never changed in place).
        strategies: patch strategies (`merge`, `replace`, `retainKeys`).
        merge_key: key of a list merged by strategic patches.
        list_type: `atomic`, `set`, `map` or empty.
        map_keys: keys of a list of type map, and `key_defaults` of those that have one.
        atomic: a map or struct that is owned as a whole.
        fill: a struct that is always printed, as `{}` when empty.
    """

    __slots__ = (
        "_fields",
        "_filled",
        "_raw",
        "atomic",
        "enum",
        "fill",
        "format",
        "items",
        "key_defaults",
        "kind",
        "list_type",
        "map_keys",
        "merge_key",
        "name",
        "required",
        "strategies",
        "values",
    )

    def __init__(self, raw: dict[str, Any], name: str = "") -> None:
        self.name = name
        self._raw: dict[str, Any] = raw.get("properties") or {}
        self._fields: dict[str, Node] = {}
        self._filled: tuple[str, ...] | None = None
        self.format: str = raw.get("format", "")
        self.enum: tuple[Any, ...] = tuple(raw.get("enum", ()))
        self.required: tuple[str, ...] = (*raw.get("required", ()), *_PRINTED.get(name, ()))
        self.items: Node | None = None
        self.values: Node | None = None
        self.kind = self._kind(raw)
        self.fill = False
        self.strategies: tuple[str, ...] = ()
        self.merge_key = ""
        self.list_type: str = raw.get("x-kubernetes-list-type", "")
        self.map_keys: tuple[str, ...] = tuple(raw.get("x-kubernetes-list-map-keys", ()))
        self.atomic = raw.get("x-kubernetes-map-type") == "atomic"
        self.key_defaults: dict[str, Any] = {}
        self._decorate(raw)
        if self.kind == "list":
            self._keys()

    def _kind(self, raw: dict[str, Any]) -> str:
        if self.name in _SPECIAL:
            return _SPECIAL[self.name]
        kind = raw.get("type", "")
        if self._raw:
            return "struct"
        if kind == "array":
            self.items = _node(raw["items"])
            return "list"
        if kind == "object" and "additionalProperties" in raw:
            self.values = _node(raw["additionalProperties"])
            return "map"
        if kind == "object" and self.name and not raw.get("x-kubernetes-preserve-unknown-fields"):
            return "struct"
        return str(kind) if kind in _SCALARS else "any"

    def _decorate(self, raw: dict[str, Any]) -> None:
        """Take over what a reference's wrapper says about the place where the type is used."""
        strategy = raw.get("x-kubernetes-patch-strategy")
        if strategy:
            self.strategies = tuple(strategy.split(","))
        self.merge_key = raw.get("x-kubernetes-patch-merge-key", self.merge_key)
        if raw.get("x-kubernetes-map-type") == "atomic":
            self.atomic = True
        if raw.get("default") == {} and "allOf" in raw:
            self.fill = True

    def _keys(self) -> None:
        if not self.list_type and "merge" in self.strategies:
            self.list_type = "map" if self.merge_key else "set"
            self.map_keys = (self.merge_key,) if self.merge_key else ()
        if self.items is not None and self.map_keys:
            for key in self.map_keys:
                default = self.items._raw.get(key, {}).get("default")
                if default not in (None, "", 0):
                    self.key_defaults[key] = default

    def child(self, key: str) -> "Node | None":
        """The schema of a field of a struct, or of a map's value; None when unknown."""
        if self.values is not None:
            return self.values
        found = self._fields.get(key)
        if found is None:
            raw = self._raw.get(key)
            if raw is None:
                return None
            found = self._fields[key] = _node(raw)
        return found

    def fields(self) -> tuple[str, ...]:
        """Names of a struct's fields."""
        return tuple(self._raw)

    def children(self) -> "dict[str, Node]":
        """All fields of a struct."""
        if len(self._fields) != len(self._raw):
            for key in self._raw:
                self.child(key)
        return self._fields

    @property
    def filled(self) -> tuple[str, ...]:
        """Fields of a struct that are always printed."""
        if self._filled is None:
            self._filled = tuple(
                key
                for key, raw in self._raw.items()
                if raw.get("default") == {} and "allOf" in raw and self.children()[key].kind == "struct"
            )
        return self._filled


@lru_cache(1)
def _table() -> dict[str, Any]:
    table: dict[str, Any] = read("schemas")
    return table


def _node(raw: dict[str, Any]) -> Node:
    ref = raw.get("$ref")
    if ref is None and raw.get("allOf"):
        ref = raw["allOf"][0]["$ref"]
    if ref is None:
        return Node(raw)
    name = ref.removeprefix(_PREFIX)
    shared = definition(name)
    if raw.keys() <= {"$ref", "allOf"}:
        return shared
    node = Node(_table()["definitions"][name], name)
    node._fields = shared._fields
    node._decorate(raw)
    return node


OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


@lru_cache(2048)
def definition(name: str) -> Node:
    """The node of a named definition; raises KeyError."""
    return Node(_table()["definitions"][name], name)


@lru_cache(1)
def _kinds() -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    for name, raw in _table()["definitions"].items():
        rows = raw.get("x-kubernetes-group-version-kind", ())
        if len(rows) == 1 or name.startswith("io.k8s.api."):
            for row in rows:
                api_version = f"{row['group']}/{row['version']}" if row["group"] else row["version"]
                found.setdefault((api_version, row["kind"]), name)
    return found


@lru_cache(256)
def of(api_version: str, kind: str) -> Node | None:
    """The schema of a kind, None when there is none (custom kinds)."""
    name = _kinds().get((api_version, kind))
    return None if name is None else definition(name)


def openapi_v3(group_version: str) -> dict[str, Any] | None:
    """The `/openapi/v3` document of a built-in group-version (see `openapi.document` for tables that changed at run time)."""
    from itbench.kube.openapi import openapi_v3 as build

    return build(group_version)
