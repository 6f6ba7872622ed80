"""The least kubelet that controllers can live with: scheduled pods run and are ready at once, terminating ones go."""

from collections.abc import Callable
from typing import Any

from itbench.core.clock import rfc3339
from itbench.core.ids import Ids
from itbench.kube.plane import ControlPlane

Obj = dict[str, Any]


def node(name: str, *, cpu: str = "4", memory: str = "8Gi", pods: str = "110", **labels: str) -> Obj:
    """A Node object with capacity and a Ready condition."""
    room = {"cpu": cpu, "memory": memory, "pods": pods}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [
                {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": rfc3339(0)}
            ],
        },
    }


class FakeKubelets:
    """All nodes of a plane. `verdict(pod)` says `ready`, `running`, `stuck`, `done` or `fail`."""

    def __init__(self, plane: ControlPlane, verdict: Callable[[Obj], str] = lambda pod: "ready") -> None:
        self.plane, self.verdict = plane, verdict
        self.client = plane.client("kubelet", "system:node")
        self.position = 0
        self.serial = 0
        self.down: set[str] = set()

    def add_nodes(self, *names: str, **options: Any) -> None:
        """Register nodes."""
        for name in names:
            self.client.create("nodes", node(name, **options))
            self.renew(name)

    def renew(self, *names: str) -> None:
        """Renew the node leases."""
        for name in names:
            body = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": name, "namespace": "kube-node-lease"},
                "spec": {
                    "holderIdentity": name,
                    "leaseDurationSeconds": 40,
                    "renewTime": rfc3339(self.plane.now, micro=True),
                },
            }
            if any(lease["metadata"]["name"] == name for lease in self.client.list("leases.coordination.k8s.io")):
                self.client.update("leases.coordination.k8s.io", body)
            else:
                self.client.create("leases.coordination.k8s.io", body)

    def step(self) -> bool:
        """Act once on what changed; says whether anything was written."""
        before = self.plane.revision
        changes, self.position = self.client.changes(self.position, ["pods"])
        latest = {(c.object["metadata"]["namespace"], c.object["metadata"]["name"]): c for c in changes}
        for change in latest.values():
            if change.type != "DELETED" and change.object["spec"].get("nodeName", "") not in ("", *self.down):
                self._act(change.object)
        return self.plane.revision != before

    def _act(self, pod: Obj) -> None:
        meta = pod["metadata"]
        if meta.get("deletionTimestamp"):
            self.client.delete("pods", meta["name"], meta["namespace"], grace_s=0)
        elif pod["status"].get("phase", "Pending") == "Pending" and (verdict := self.verdict(pod)) != "stuck":
            self.client.patch(
                "pods", meta["name"], meta["namespace"], {"status": self._status(pod, verdict)}, subresource="status"
            )

    def _status(self, pod: Obj, verdict: str) -> Obj:
        now = rfc3339(self.plane.now)
        self.serial += 1
        phase = {"done": "Succeeded", "fail": "Failed"}.get(verdict, "Running")
        ready = "True" if verdict == "ready" else "False"
        kept = [c for c in pod["status"].get("conditions", []) if c["type"] == "PodScheduled"]
        new = [{"type": t, "status": ready, "lastTransitionTime": now} for t in ("Ready", "ContainersReady")]
        state: Obj = {"running": {"startedAt": now}}
        if phase != "Running":
            code = 0 if verdict == "done" else 1
            state = {"terminated": {"exitCode": code, "startedAt": now, "finishedAt": now}}
        containers = [
            {
                "name": c["name"],
                "image": c["image"],
                "imageID": "",
                "ready": ready == "True",
                "restartCount": 0,
                "state": state,
            }
            for c in pod["spec"]["containers"]
        ]
        ip = f"10.244.{self.serial // 250}.{self.serial % 250 + 1}"
        found = {"phase": phase, "conditions": [*kept, *new], "containerStatuses": containers, "startTime": now}
        return {**found, "podIP": ip, "podIPs": [{"ip": ip}]}

    def settle(self, limit: int = 200) -> None:
        """Controllers and kubelets in turn until both are at rest at this second."""
        for _ in range(limit):
            self.plane.run(self.plane.now)
            if not self.step():
                return
        raise AssertionError("does not settle")

    def advance(self, until: float, *, lease_every: float = 10.0) -> None:
        """Let time pass: timers of the plane, kubelets after each, leases renewed."""
        renewed = self.plane.now
        self.settle()
        while self.plane.now < until:
            due = min(self.plane.due(), renewed + lease_every, until)
            self.plane.run(max(due, self.plane.now))
            if self.plane.now >= renewed + lease_every:
                renewed = self.plane.now
                names = [n["metadata"]["name"] for n in self.client.list("nodes")]
                self.renew(*(n for n in names if n not in self.down))
            self.settle()


def cluster(*, seed: int = 1, nodes: int = 3, verdict: Callable[[Obj], str] = lambda pod: "ready") -> FakeKubelets:
    """A plane with nodes n1..nN, settled."""
    kubelets = FakeKubelets(ControlPlane(ids=Ids(seed)), verdict)
    kubelets.add_nodes(*(f"n{i + 1}" for i in range(nodes)))
    kubelets.settle()
    return kubelets


def deployment(name: str, replicas: int = 3, image: str = "app:1", namespace: str = "default", **spec: Any) -> Obj:
    """A Deployment with one container."""
    labels = {"app": name}
    pod = {"containers": [{"name": "c", "image": image, "ports": [{"name": "http", "containerPort": 8080}]}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
            **spec,
        },
    }
