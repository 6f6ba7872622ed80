"""How near objects of an estate are to each other, from the snapshots in evidence. Used by the partial credit of a diagnosis.

Two objects are neighbours when one names, owns, selects, mounts, scales or calls the other. Objects that nobody wrote (pods and
replica sets of a deployment, jobs of a cron job) are the same entity as what controls them.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from itbench.core.documents.vocabulary import CLUSTER_KINDS, canonical_kind

Obj = Mapping[str, Any]
REACH = 2
"""Steps beyond which objects have nothing to do with each other."""
MOST_NEIGHBOURS = 6
"""No path leads through an object with more: what touches everything brings nothing near."""
_PLACES = ("node", "namespace")
"""Where things are is no way from one to the other either."""
_GENERATED = ("pod", "replicaset", "job", "endpointslice")
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")


def entity_of(obj: Obj) -> str:
    """The canonical entity of an object: kind/namespace/name, or kind/name for one of the whole cluster."""
    kind, meta = canonical_kind(str(obj.get("kind", ""))), obj.get("metadata", {})
    inside = "" if kind in CLUSTER_KINDS else str(meta.get("namespace", ""))
    return "/".join(part for part in (kind, inside, str(meta.get("name", ""))) if part)


class Topology:
    """A graph of entities, with what stands for what.

    Args:
        edges: pairs of neighbours.
        stands_for: generated entity -> the one that controls it.
    """

    def __init__(self, edges: Iterable[tuple[str, str]] = (), stands_for: Mapping[str, str] | None = None) -> None:
        self._stands_for = dict(stands_for or {})
        self._near: dict[str, set[str]] = {}
        for one, two in edges:
            one, two = self.resolve(one), self.resolve(two)
            if one != two:
                self._near.setdefault(one, set()).add(two)
                self._near.setdefault(two, set()).add(one)

    @property
    def entities(self) -> list[str]:
        """Every entity with a neighbour, sorted."""
        return sorted(self._near)

    def resolve(self, entity: str) -> str:
        """What an entity stands for: a pod or replica set its deployment; everything else itself."""
        for _ in range(8):
            if entity not in self._stands_for:
                break
            entity = self._stands_for[entity]
        return entity

    def distance(self, one: str, two: str) -> int | None:
        """Steps of the shortest path, 0 for the same; None beyond `REACH`.

        Objects of one name and namespace are one step apart, as a service and the deployment behind it.
        """
        one, two = self.resolve(one), self.resolve(two)
        if one == two:
            return 0
        if one.partition("/")[2] == two.partition("/")[2]:
            return 1
        seen, edge = {one}, {one}
        for steps in range(1, REACH + 1):
            edge = {each for at in edge for each in self._near.get(at, ())} - seen
            if two in edge:
                return steps
            seen |= edge
            edge = {each for each in edge if self._leads_on(each)}
        return None

    def _leads_on(self, entity: str) -> bool:
        return entity.partition("/")[0] not in _PLACES and len(self._near[entity]) <= MOST_NEIGHBOURS


def topology(snapshots: Iterable[Mapping[str, Sequence[Obj]]], chain: Iterable[Sequence[str]] = ()) -> Topology:
    """The topology of an estate.

    Args:
        snapshots: objects by resource, of one or several moments; what existed at any of them counts.
        chain: true paths of propagation, whose neighbours are near each other.
    """
    objects = {entity_of(obj): obj for snapshot in snapshots for listed in snapshot.values() for obj in listed}
    edges = [pair for path in chain for pair in pairwise(path)]
    services = [(name, obj) for name, obj in objects.items() if name.startswith("service/")]
    for name, obj in objects.items():
        edges += [(name, other) for other in _named(obj, objects)]
    edges += _selected(objects, services)
    return Topology(edges, _controllers(objects))


def _controllers(objects: Mapping[str, Obj]) -> dict[str, str]:
    """Generated object -> its controller."""
    found = {}
    for name, obj in objects.items():
        meta = obj.get("metadata", {})
        owner = next((each for each in meta.get("ownerReferences") or () if each.get("controller")), None)
        if owner and name.partition("/")[0] in _GENERATED:
            found[name] = entity_of({"kind": owner["kind"], "metadata": meta | {"name": owner["name"]}})
    return found


def _named(obj: Obj, objects: Mapping[str, Obj]) -> set[str]:
    """Objects that an object names: mounts, references, targets, its node, services in its environment."""
    kind, space = canonical_kind(str(obj.get("kind", ""))), str(obj.get("metadata", {}).get("namespace", ""))
    spec = obj.get("spec") or {}
    found = {f"{canonical_kind(k)}/{space}/{n}" for k, n in _references(spec)}
    if kind == "pod" and spec.get("nodeName"):
        found.add(f"node/{spec['nodeName']}")
    if kind == "persistentvolumeclaim" and spec.get("volumeName"):
        found.add(f"persistentvolume/{spec['volumeName']}")
    found |= {f"service/{host}" for host in _hosts(spec, space)}
    return {name for name in found if name in objects}


def _references(spec: Obj) -> Iterable[tuple[str, str]]:
    """(kind, name) of what a specification names in its own namespace."""
    target = spec.get("scaleTargetRef") or {}
    if target.get("kind"):
        yield str(target["kind"]), str(target.get("name"))
    for rule in spec.get("rules") or ():
        for path in ((rule or {}).get("http") or {}).get("paths") or ():
            yield "service", str(((path.get("backend") or {}).get("service") or {}).get("name"))
    pod = _pod_spec(spec)
    if pod.get("serviceAccountName"):
        yield "serviceaccount", str(pod["serviceAccountName"])
    for volume in pod.get("volumes") or ():
        yield "configmap", str((volume.get("configMap") or {}).get("name"))
        yield "secret", str((volume.get("secret") or {}).get("secretName"))
        yield "persistentvolumeclaim", str((volume.get("persistentVolumeClaim") or {}).get("claimName"))
    for container in _containers(pod):
        sources = [(each.get("valueFrom") or {}, "KeyRef") for each in container.get("env") or ()]
        sources += [(each, "Ref") for each in container.get("envFrom") or ()]
        for source, suffix in sources:
            yield "configmap", str((source.get("configMap" + suffix) or {}).get("name"))
            yield "secret", str((source.get("secret" + suffix) or {}).get("name"))


def _pod_spec(spec: Obj) -> Obj:
    """The specification of the pods that a workload makes; of a pod itself its own."""
    if "jobTemplate" in spec:
        spec = (spec["jobTemplate"] or {}).get("spec") or {}
    found: Obj = ((spec.get("template") or {}).get("spec") or {}) if "template" in spec else spec
    return found


def _containers(pod: Obj) -> list[Obj]:
    return [*(pod.get("initContainers") or ()), *(pod.get("containers") or ())]


def _hosts(spec: Obj, space: str) -> set[str]:
    """`namespace/name` of whatever stands as a host in the environment or the arguments of containers."""
    texts = []
    for container in _containers(_pod_spec(spec)):
        texts += [str(each.get("value", "")) for each in container.get("env") or ()]
        texts += [str(each) for each in (*(container.get("command") or ()), *(container.get("args") or ()))]
    found = set()
    for text in texts:
        for word in re.split(r"[^a-z0-9.-]+", text):
            labels = word.split(".")
            if _LABEL.fullmatch(labels[0]):
                found.add(f"{labels[1] if len(labels) > 1 else space}/{labels[0]}")
    return found


def _selected(objects: Mapping[str, Obj], services: list[tuple[str, Obj]]) -> list[tuple[str, str]]:
    """Services, budgets and policies with the workloads whose pods they select."""
    selecting = [(name, obj, (obj.get("spec") or {}).get("selector")) for name, obj in services]
    for name, obj in objects.items():
        spec = obj.get("spec") or {}
        if name.startswith("poddisruptionbudget/"):
            selecting.append((name, obj, (spec.get("selector") or {}).get("matchLabels")))
        elif name.startswith("networkpolicy/"):
            selecting.append((name, obj, (spec.get("podSelector") or {}).get("matchLabels")))
    found = []
    for name, obj in objects.items():
        template = (obj.get("spec") or {}).get("template")
        meta = obj.get("metadata", {}) if name.startswith("pod/") else (template or {}).get("metadata") or {}
        labels, space = (meta.get("labels") or {}).items(), obj.get("metadata", {}).get("namespace")
        for selector, by, wanted in selecting:
            if wanted and by["metadata"].get("namespace") == space and wanted.items() <= labels:
                found.append((selector, name))
    return found
