"""Node objects of a simulated cluster, their addresses and leases. Called by the estate at creation and by kubelets."""

from typing import Any

from itbench.core.clock import rfc3339
from itbench.core.ids import Ids
from itbench.kube.client import ApiError, Client, Obj
from itbench.kube.status import by_policy

CORES = 8
MEMORY_KI = 32 * 1024 * 1024
LEASE_S = 40
RENEW_S = 10.0
REPORT_S = 300.0
"""How often a node's status is posted although nothing changed; leases are the sign of life in between."""
VERSION = "v1.34.4"
CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


class Nodes:
    """The machines of one cluster.

    Args:
        client: where the Node objects are written.
        ids: names and uids.
        names: node names, in order.
    """

    def __init__(self, client: Client, ids: Ids, names: list[str]) -> None:
        self.client, self.ids, self.names = client, ids, names
        self.renew_at = 0.0

    def owns(self, node: str) -> bool:
        """Whether one of our kubelets runs there."""
        return node in self.names

    def number(self, node: str) -> int:
        """1, 2, 3, ... as drawn at creation."""
        return self.names.index(node) + 1

    def address(self, node: str) -> str:
        """The node's own address."""
        return f"172.18.0.{self.number(node) + 1}" if self.owns(node) else ""

    def pod_address(self, node: str, ordinal: int) -> str:
        """Address number `ordinal` (from 2) of the node's range 10.244.N.0/24, used again when it is full."""
        return f"10.244.{self.number(node)}.{2 + (ordinal - 2) % 252}"

    def register(self, now: float) -> None:
        """Create the Node objects and their leases."""
        for name in self.names:
            self._create("nodes", _node(self, name, now))
            lease: Obj = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": name, "namespace": "kube-node-lease"},
                "spec": _lease(name, now),
            }
            self._create("leases.coordination.k8s.io", lease)

    def _create(self, resource: str, obj: Obj) -> None:
        try:
            self.client.create(resource, obj, obj["metadata"].get("namespace", ""))
        except ApiError as error:
            if error.code not in (404, 409):
                raise

    def renew(self, now: float) -> bool:
        """Show that the nodes live, every ten seconds; returns whether it did."""
        if now < self.renew_at:
            return False
        report = now // REPORT_S > (self.renew_at - RENEW_S) // REPORT_S
        self.renew_at = RENEW_S * (now // RENEW_S + 1)
        for name in self.names:
            try:
                self.client.patch("leases.coordination.k8s.io", name, "kube-node-lease", {"spec": _lease(name, now)})
            except ApiError as error:
                if error.code != 404 and not by_policy(error):
                    raise
            if report:
                self._report(name, now)
        return True

    def _report(self, name: str, now: float) -> None:
        """Post the conditions again as they are: a sign of life."""
        try:
            conditions = (self.client.get("nodes", name).get("status") or {}).get("conditions") or []
            beats = [{"type": row["type"], "lastHeartbeatTime": rfc3339(now)} for row in conditions]
            patch = {"status": {"conditions": beats}}
            self.client.patch("nodes", name, "", patch, kind="strategic", subresource="status")
        except ApiError as error:
            if error.code != 404 and not by_policy(error):
                raise

    def save(self) -> dict[str, Any]:
        """State as plain data."""
        return {"names": list(self.names), "renew_at": self.renew_at}

    def restore(self, data: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self.names, self.renew_at = list(data["names"]), data["renew_at"]


def _lease(name: str, now: float) -> Obj:
    return {"holderIdentity": name, "leaseDurationSeconds": LEASE_S, "renewTime": rfc3339(now, micro=True)}


def _info(nodes: Nodes, name: str) -> Obj:
    return {
        "architecture": "amd64",
        "bootID": nodes.ids.uid("boot", name),
        "containerRuntimeVersion": "containerd://2.1.3",
        "kernelVersion": "6.8.0-64-generic",
        "kubeProxyVersion": "",
        "kubeletVersion": VERSION,
        "machineID": nodes.ids.uid("machine", name).replace("-", ""),
        "operatingSystem": "linux",
        "osImage": "Ubuntu 24.04.2 LTS",
        "systemUUID": nodes.ids.uid("system", name),
    }


def _node(nodes: Nodes, name: str, now: float) -> Obj:
    number = nodes.number(name)
    zone, rack = "abc"[(number - 1) % 3], f"r{1 + (number - 1) % 2}"
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "m8",
        "pool": "default",
        "rack": rack,
        "topology.kubernetes.io/region": "eu-1",
        "topology.kubernetes.io/zone": f"eu-1{zone}",
    }
    amounts = {
        "cpu": str(CORES),
        "ephemeral-storage": "103081248Ki",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        "memory": f"{MEMORY_KI}Ki",
        "pods": "110",
    }
    conditions = [
        {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": text,
            "lastHeartbeatTime": rfc3339(now),
            "lastTransitionTime": rfc3339(now),
        }
        for kind, status, reason, text in CONDITIONS
    ]
    addresses = [{"type": "InternalIP", "address": nodes.address(name)}, {"type": "Hostname", "address": name}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": {"node.alpha.kubernetes.io/ttl": "0"}},
        "spec": {
            "podCIDR": f"10.244.{number}.0/24",
            "podCIDRs": [f"10.244.{number}.0/24"],
            "providerID": f"sim://default/{name}",
        },
        "status": {
            "addresses": addresses,
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": conditions,
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": _info(nodes, name),
        },
    }
