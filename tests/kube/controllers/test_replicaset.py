"""ReplicaSets keep their number, and delete the pods that are missed least."""

from fake_kubelet import cluster, deployment
from hypothesis import given
from hypothesis import strategies as st

from itbench.core.clock import rfc3339
from itbench.kube.controllers.pods import deletion_rank


def pod(
    name: str,
    *,
    node: str = "n1",
    phase: str = "Running",
    ready_at: float | None = 0.0,
    cost: int = 0,
    restarts: int = 0,
):
    conditions = []
    if ready_at is not None:
        conditions.append({"type": "Ready", "status": "True", "lastTransitionTime": rfc3339(ready_at)})
    meta = {"name": name, "uid": name, "creationTimestamp": rfc3339(0)}
    if cost:
        meta["annotations"] = {"controller.kubernetes.io/pod-deletion-cost": str(cost)}
    state = {"phase": phase, "conditions": conditions, "containerStatuses": [{"restartCount": restarts}]}
    return {"metadata": meta, "spec": {"nodeName": node}, "status": state}


def test_deletion_order_is_unassigned_pending_unready_cheap_crowded_young_restarted() -> None:
    pods = [
        pod("old"),
        pod("restarted", restarts=3),
        pod("young", ready_at=990.0),
        pod("crowded", node="n2"),
        pod("cheap", cost=-1),
        pod("unready", ready_at=None),
        pod("pending", phase="Pending", ready_at=None),
        pod("unassigned", node="", phase="Pending", ready_at=None),
    ]
    rank = deletion_rank(lambda p: 5 if p["metadata"]["name"] == "crowded" else 1, 1000.0)
    order = [p["metadata"]["name"] for p in sorted(pods, key=rank)]
    assert order == ["unassigned", "pending", "unready", "cheap", "crowded", "young", "restarted", "old"]


@given(st.permutations([f"p{i}" for i in range(6)]))
def test_deletion_order_does_not_depend_on_the_order_of_listing(names: list[str]) -> None:
    rank = deletion_rank(lambda p: 1, 100.0)
    pods = [pod(name, ready_at=float(name[1:])) for name in names]
    order = [p["metadata"]["name"] for p in sorted(pods, key=rank)]
    straight = [pod(name, ready_at=float(name[1:])) for name in sorted(names)]
    assert order == [p["metadata"]["name"] for p in sorted(straight, key=rank)]


def test_a_deleted_pod_is_replaced_and_a_relabelled_one_released() -> None:
    k = cluster()
    k.client.create("deployments.apps", deployment("web", 2))
    k.settle()
    first, second = (p["metadata"]["name"] for p in k.client.list("pods", "default"))
    k.client.delete("pods", first, "default")
    k.settle()
    assert len(k.client.list("pods", "default")) == 2
    k.client.patch("pods", second, "default", {"metadata": {"labels": {"app": "quarantine"}}})
    k.settle()
    released = k.client.get("pods", second, "default")
    assert "ownerReferences" not in released["metadata"]
    assert len(k.client.list("pods", "default", labels="app=web")) == 2


def test_scaling_down_says_which_pods_went() -> None:
    k = cluster()
    k.client.create("deployments.apps", deployment("web", 3))
    k.settle()
    before = {p["metadata"]["name"] for p in k.client.list("pods", "default")}
    k.client.patch("deployments.apps", "web", "default", {"spec": {"replicas": 1}}, subresource="scale")
    k.settle()
    gone = before - {p["metadata"]["name"] for p in k.client.list("pods", "default")}
    texts = {e["message"] for e in k.client.list("events", "default") if e["reason"] == "SuccessfulDelete"}
    assert texts == {f"Deleted pod: {name}" for name in gone} and len(gone) == 2


def test_pods_become_available_only_after_min_ready_seconds() -> None:
    k = cluster()
    k.client.create("deployments.apps", deployment("web", 2, minReadySeconds=30))
    k.settle()
    status = k.client.get("deployments.apps", "web", "default")["status"]
    assert status["readyReplicas"] == 2 and "availableReplicas" not in status
    k.advance(30.0)
    assert k.client.get("deployments.apps", "web", "default")["status"]["availableReplicas"] == 2


def controller(name: str, replicas: int) -> dict:
    labels = {"app": name}
    container = {"name": "c", "image": "nginx:1.27", "terminationMessagePolicy": "File"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": labels, "template": template}
    return {"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": name}, "spec": spec}


def test_a_replication_controller_keeps_its_number_adopts_and_releases() -> None:
    k = cluster()
    orphan = {
        "metadata": {"name": "orphan", "labels": {"app": "old"}},
        "spec": {"containers": [{"name": "c", "image": "x:1"}]},
    }
    k.client.create("pods", orphan, "default")
    k.client.create("replicationcontrollers", controller("old", 2), "default")
    k.settle()
    pods = k.client.list("pods", "default")
    assert len(pods) == 2
    assert all(p["metadata"]["ownerReferences"][0]["kind"] == "ReplicationController" for p in pods)
    assert k.client.get("replicationcontrollers", "old", "default")["status"]["readyReplicas"] == 2
    k.client.patch("pods", "orphan", "default", {"metadata": {"labels": {"app": "free"}}})
    k.settle()
    assert "ownerReferences" not in k.client.get("pods", "orphan", "default")["metadata"]
    assert len(k.client.list("pods", "default")) == 3
