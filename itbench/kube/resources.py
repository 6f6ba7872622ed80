"""The table of every resource that is served: names, verbs, subresources, scope.

Called by discovery, the registry and every client that resolves names. Built-in groups come from the generated discovery table,
Chaos Mesh, metrics and monitoring kinds from the short tables below; custom resources may be added and removed at run time.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from itbench.kube.data import read

if TYPE_CHECKING:
    from itbench.kube.custom.model import Model

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_SHARED_STORAGE = {("events.k8s.io", "events"): "events"}
"""Resources of one group that are another view of a second group's objects."""
_STORAGE_VERSIONS = {"horizontalpodautoscalers.autoscaling": "v2", "events": "v1"}


@dataclass(frozen=True, slots=True)
class Subresource:
    """`status`, `scale`, `eviction`, ...; group and version are empty where they are the parent's own."""

    name: str
    kind: str
    verbs: tuple[str, ...]
    group: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource in one version."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    verbs: tuple[str, ...] = ALL_VERBS
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    custom: bool = False
    """Without patch metadata: strategic merge patches are refused, unknown fields are kept."""
    list_kind: str = ""
    model: "Model | None" = field(default=None, compare=False, repr=False)
    """What a CustomResourceDefinition says about it; None for everything else."""
    digest: str = ""
    """Changes whenever the definition does."""
    name: str = field(init=False)
    """`deployments.apps`; core resources are just `pods`."""
    api_version: str = field(init=False)
    storage: str = field(init=False)
    """Key in the store; several versions (and `events.events.k8s.io`) share one."""

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        set_field(self, "name", f"{self.plural}.{self.group}" if self.group else self.plural)
        set_field(self, "api_version", f"{self.group}/{self.version}" if self.group else self.version)
        set_field(self, "storage", _SHARED_STORAGE.get((self.group, self.plural), self.name))
        if not self.list_kind:
            set_field(self, "list_kind", self.kind + "List")

    def subresource(self, name: str) -> Subresource | None:
        """The subresource of that name, if it is served."""
        return next((sub for sub in self.subresources if sub.name == name), None)

    @property
    def has_status(self) -> bool:
        """Whether `status` is written through its own subresource only."""
        return self.subresource("status") is not None


class ResourceTable:
    """All served resources, groups and versions in the order of discovery (the first version of a group is preferred)."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        self._rows: dict[tuple[str, str, str], Resource] = {}
        self._names: dict[str, Resource] = {}
        self._kinds: dict[tuple[str, str], Resource] = {}
        self._fixed: dict[tuple[str, str, str], Resource] = {}
        self._concealed: frozenset[str] = frozenset()
        for resource in resources:
            self.add(resource)

    def __iter__(self) -> Iterator[Resource]:
        return iter(self._rows.values())

    def add(self, resource: Resource) -> None:
        """Serve one more resource."""
        self._fixed[resource.group, resource.version, resource.plural] = resource
        self._rows[resource.group, resource.version, resource.plural] = resource
        self._names.setdefault(resource.name, resource)
        self._kinds.setdefault((resource.api_version, resource.kind), resource)

    def remove(self, resource: Resource) -> None:
        """Stop serving a resource that was there from the start or was added."""
        key = (resource.group, resource.version, resource.plural)
        del self._fixed[key]
        self._index({place: row for place, row in self._rows.items() if place != key})

    def conceal(self, groups: Iterable[str]) -> None:
        """Do not show these groups to clients: no path and no discovery leads to them. They are still found by name and kind."""
        self._concealed = frozenset(groups)

    def serve_custom(self, resources: Iterable[Resource]) -> None:
        """Serve these besides what was there from the start, instead of those of the last call."""
        custom = {(row.group, row.version, row.plural): row for row in resources}
        self._index({key: row for key, row in self._fixed.items() if key not in custom} | custom)

    def _index(self, rows: dict[tuple[str, str, str], Resource]) -> None:
        self._rows, self._names, self._kinds = rows, {}, {}
        for row in rows.values():
            self._names.setdefault(row.name, row)
            self._kinds.setdefault((row.api_version, row.kind), row)

    def lookup(self, group: str, version: str, plural: str) -> Resource | None:
        """By URL path."""
        return None if group in self._concealed else self._rows.get((group, version, plural))

    def named(self, name: str) -> Resource:
        """By `plural.group` (or core plural) in the preferred version; raises KeyError with the name."""
        return self._names[name]

    def find(self, name: str) -> Resource | None:
        """Like `named`, None when there is none."""
        return self._names.get(name)

    def by_kind(self, api_version: str, kind: str) -> Resource | None:
        """By an object's apiVersion and kind."""
        return self._kinds.get((api_version, kind))

    def stored(self, resource: Resource) -> Resource:
        """The row in whose version the objects of `resource` are stored."""
        name = resource.storage
        version = _STORAGE_VERSIONS.get(name)
        row = self._names[name]
        return row if version is None else self._rows[row.group, version, row.plural]

    def groups(self) -> list[tuple[str, list[str]]]:
        """Groups with their versions, preferred first."""
        found: dict[str, list[str]] = {}
        for group, version, _ in self._rows:
            if group in self._concealed:
                continue
            versions = found.setdefault(group, [])
            if version not in versions:
                versions.append(version)
        return list(found.items())

    def of(self, group: str, version: str) -> list[Resource]:
        """Resources of one group-version."""
        rows = () if group in self._concealed else self._rows.values()
        return [row for row in rows if row.group == group and row.version == version]


def _parse_sub(row: dict[str, Any]) -> Subresource:
    kind = row.get("responseKind") or {}
    return Subresource(
        row["subresource"], kind.get("kind", ""), tuple(row["verbs"]), kind.get("group", ""), kind.get("version", "")
    )


def _parse(group: str, version: str, row: dict[str, Any]) -> Resource:
    return Resource(
        group=group,
        version=version,
        kind=row["responseKind"]["kind"],
        plural=row["resource"],
        singular=row["singularResource"],
        namespaced=row["scope"] == "Namespaced",
        verbs=tuple(row["verbs"]),
        short_names=tuple(row.get("shortNames", ())),
        categories=tuple(row.get("categories", ())),
        subresources=tuple(_parse_sub(sub) for sub in row.get("subresources", ())),
    )


def _custom(
    group: str, version: str, kind: str, plural: str, *short: str, verbs: tuple[str, ...] = ALL_VERBS
) -> Resource:
    return Resource(
        group=group,
        version=version,
        kind=kind,
        plural=plural,
        singular=kind.lower(),
        namespaced=True,
        verbs=verbs,
        short_names=short,
        custom=True,
    )


ADDONS = ("chaos-mesh.org", "metrics.k8s.io", "monitoring.coreos.com")
"""Groups that a cluster as it comes does not serve: chaos experiments, resource metrics, alerting rules."""
_CHAOS = (
    ("PodChaos", "podchaos"),
    ("NetworkChaos", "networkchaos"),
    ("StressChaos", "stresschaos"),
    ("IOChaos", "iochaos"),
    ("TimeChaos", "timechaos"),
    ("DNSChaos", "dnschaos"),
    ("HTTPChaos", "httpchaos"),
    ("Schedule", "schedules"),
    ("Workflow", "workflows"),
)
_READ = ("get", "list")


def _extra() -> Iterator[Resource]:
    for kind, plural in _CHAOS:
        short = ("wf",) if kind == "Workflow" else ()
        yield _custom("chaos-mesh.org", "v1alpha1", kind, plural, *short)
    yield Resource(
        "metrics.k8s.io",
        "v1beta1",
        "NodeMetrics",
        "nodes",
        "",
        False,
        verbs=_READ,
        custom=True,
        list_kind="NodeMetricsList",
    )
    yield Resource(
        "metrics.k8s.io",
        "v1beta1",
        "PodMetrics",
        "pods",
        "",
        True,
        verbs=_READ,
        custom=True,
        list_kind="PodMetricsList",
    )
    yield _custom("monitoring.coreos.com", "v1", "PrometheusRule", "prometheusrules", "promrule")


@lru_cache(1)
def _builtin() -> tuple[Resource, ...]:
    rows: list[Resource] = []
    for item in read("discovery")["items"]:
        group = item["metadata"].get("name", "")
        for version in item["versions"]:
            rows += [_parse(group, version["version"], row) for row in version["resources"]]
    return (*rows, *_extra())


@lru_cache(1)
def server_version() -> str:
    """The version served, such as `v1.34.4`."""
    return str(read("discovery")["version"])


def builtin_table() -> ResourceTable:
    """A fresh table of everything that is served from the start."""
    return ResourceTable(_builtin())
