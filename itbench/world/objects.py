"""A mirror of the objects that the world looks at, kept up to date from the change log of one control plane.

Kubelets, reachability, wiring and metrics read it instead of listing again and again. It holds nothing that the control
plane does not hold, so it is not saved: a restored world reads it anew.
"""

from collections.abc import Iterable, Iterator

from itbench.kube.client import ApiError, Change, Client, Obj

WATCHED = (
    "pods",
    "nodes",
    "namespaces",
    "services",
    "configmaps",
    "secrets",
    "endpointslices.discovery.k8s.io",
    "networkpolicies.networking.k8s.io",
    "ingresses.networking.k8s.io",
    "deployments.apps",
    "replicasets.apps",
    "stresschaos.chaos-mesh.org",
    "podchaos.chaos-mesh.org",
    "prometheusrules.monitoring.coreos.com",
    "statefulsets.apps",
    "daemonsets.apps",
    "horizontalpodautoscalers.autoscaling",
    "jobs.batch",
    "poddisruptionbudgets.policy",
    "persistentvolumeclaims",
    "resourcequotas",
)
"""Resources that the world reacts to or measures."""

SLICES = "endpointslices.discovery.k8s.io"
POLICIES = "networkpolicies.networking.k8s.io"
INGRESSES = "ingresses.networking.k8s.io"
SERVICE_LABEL = "kubernetes.io/service-name"

Key = tuple[str, str]


def key_of(obj: Obj) -> Key:
    """(namespace, name) of an object."""
    meta = obj["metadata"]
    return meta.get("namespace", ""), meta["name"]


class Objects:
    """The newest state of every watched object."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.revision = -1
        self.version = 0
        """Grows with every change of a watched object."""
        self._tables: dict[str, dict[Key, Obj]] = {resource: {} for resource in WATCHED}
        self._slices: dict[Key, dict[str, Obj]] = {}
        self._by_ip: dict[str, Key] = {}
        self._by_cluster_ip: dict[str, Key] = {}

    def update(self) -> list[Change]:
        """Catch up with the control plane; returns what changed, in order."""
        try:
            changes, self.revision = self.client.changes(self.revision, WATCHED)
        except ApiError as error:
            if error.code != 410:
                raise
            # The log no longer reaches back to us (a long compaction): read everything anew.
            self._clear()
            changes, self.revision = self.client.changes(-1, WATCHED)
        for change in changes:
            self._apply(change)
        self.version += len(changes)
        return changes

    def _clear(self) -> None:
        self.revision = -1
        self._tables = {resource: {} for resource in WATCHED}
        self._slices, self._by_ip, self._by_cluster_ip = {}, {}, {}

    def _apply(self, change: Change) -> None:
        table, key = self._tables[change.resource], key_of(change.object)
        if change.type == "DELETED":
            old = table.pop(key, None) or change.object
            self._unindex(change.resource, key, old)
            return
        if key in table:
            self._unindex(change.resource, key, table[key])
        table[key] = change.object
        self._index(change.resource, key, change.object)

    def _index(self, resource: str, key: Key, obj: Obj) -> None:
        if resource == "pods":
            for item in obj.get("status", {}).get("podIPs") or ():
                self._by_ip[item["ip"]] = key
        elif resource == "services":
            address = obj.get("spec", {}).get("clusterIP")
            if address and address != "None":
                self._by_cluster_ip[address] = key
        elif resource == SLICES:
            owner = obj["metadata"].get("labels", {}).get(SERVICE_LABEL)
            if owner:
                self._slices.setdefault((key[0], owner), {})[key[1]] = obj

    def _unindex(self, resource: str, key: Key, obj: Obj) -> None:
        if resource == "pods":
            for item in obj.get("status", {}).get("podIPs") or ():
                if self._by_ip.get(item["ip"]) == key:
                    del self._by_ip[item["ip"]]
        elif resource == "services":
            address = obj.get("spec", {}).get("clusterIP")
            if self._by_cluster_ip.get(address) == key:
                del self._by_cluster_ip[address]
        elif resource == SLICES:
            owner = obj["metadata"].get("labels", {}).get(SERVICE_LABEL, "")
            self._slices.get((key[0], owner), {}).pop(key[1], None)

    def get(self, resource: str, namespace: str, name: str) -> Obj | None:
        """One object, or None."""
        return self._tables[resource].get((namespace, name))

    def all(self, resource: str) -> Iterator[Obj]:
        """Every object of a resource, by namespace and name."""
        table = self._tables[resource]
        return (table[key] for key in sorted(table))

    def within(self, resource: str, namespace: str) -> list[Obj]:
        """The objects of one namespace, by name."""
        return [obj for obj in self.all(resource) if obj["metadata"].get("namespace") == namespace]

    def slices(self, namespace: str, service: str) -> Iterable[Obj]:
        """EndpointSlices of a Service, by name."""
        found = self._slices.get((namespace, service), {})
        return [found[name] for name in sorted(found)]

    def pod_by_ip(self, address: str) -> Obj | None:
        """The pod that has an address."""
        key = self._by_ip.get(address)
        return self._tables["pods"].get(key) if key else None

    def service_by_ip(self, address: str) -> Obj | None:
        """The Service that has a cluster address."""
        key = self._by_cluster_ip.get(address)
        return self._tables["services"].get(key) if key else None

    def workload_of(self, pod: Obj) -> str:
        """`deployment/name`, `statefulset/name`, ... of the controller above a pod, or `pod/name`."""
        owner = _controller(pod)
        if owner is None:
            return f"pod/{pod['metadata']['name']}"
        if owner["kind"] == "ReplicaSet":
            parent = self.get("replicasets.apps", pod["metadata"].get("namespace", ""), owner["name"])
            above = _controller(parent) if parent else None
            if above is not None:
                return f"{above['kind'].lower()}/{above['name']}"
            guess = pod["metadata"].get("labels", {}).get("pod-template-hash")
            if guess and owner["name"].endswith(f"-{guess}"):
                return f"deployment/{owner['name'][: -len(guess) - 1]}"
        return f"{owner['kind'].lower()}/{owner['name']}"


def _controller(obj: Obj) -> Obj | None:
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            return dict(owner)
    return None
