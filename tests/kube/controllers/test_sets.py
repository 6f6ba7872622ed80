"""StatefulSets go in order, DaemonSets cover the nodes."""

from typing import Any

import orjson
import pytest
from fake_kubelet import FakeKubelets, Obj, cluster


def stateful(name: str = "db", replicas: int = 3, **spec: Any) -> Obj:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "app:1"}]}}
    body = {
        "replicas": replicas,
        "serviceName": name,
        "selector": {"matchLabels": labels},
        "template": template,
        **spec,
    }
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta, "spec": body}


def daemon(name: str = "agent", **spec: Any) -> Obj:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "app:1"}]}}
    body = {"selector": {"matchLabels": labels}, "template": template, **spec}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": meta, "spec": body}


def set_image(k: FakeKubelets, resource: str, name: str, image: str) -> None:
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}}
    k.client.patch(resource, name, "default", patch, kind="strategic")


def images(k: FakeKubelets) -> dict[str, str]:
    return {p["metadata"]["name"]: p["spec"]["containers"][0]["image"] for p in k.client.list("pods", "default")}


def counts(k: FakeKubelets, resource: str, name: str) -> dict[str, Any]:
    found = k.client.get(resource, name, "default")["status"]
    return {key: value for key, value in found.items() if isinstance(value, int)}


def test_pods_of_a_stateful_set_come_one_after_the_other() -> None:
    k = cluster()
    k.client.create("statefulsets.apps", stateful())
    seen = []
    for _ in range(10):
        k.plane.run(k.plane.now)
        seen.append(sorted(images(k)))
        if not k.step():
            break
    assert seen[:3] == [["db-0"], ["db-0", "db-1"], ["db-0", "db-1", "db-2"]]
    pod = k.client.get("pods", "db-1", "default")
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("db-1", "db")
    assert pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] == "db-1"
    assert counts(k, "statefulsets.apps", "db") == {
        "observedGeneration": 1,
        "replicas": 3,
        "readyReplicas": 3,
        "currentReplicas": 3,
        "updatedReplicas": 3,
        "availableReplicas": 3,
        "collisionCount": 0,
    }
    texts = [e["message"] for e in k.client.list("events", "default") if e["reason"] == "SuccessfulCreate"]
    assert sorted(texts) == [f"create Pod db-{i} in StatefulSet db successful" for i in range(3)]


def test_an_unready_member_holds_back_the_next_and_an_update_stops_at_it() -> None:
    k = cluster(verdict=lambda pod: "running" if pod["spec"]["containers"][0]["image"] == "bad:1" else "ready")
    k.client.create("statefulsets.apps", stateful())
    k.settle()
    set_image(k, "statefulsets.apps", "db", "bad:1")
    k.settle()
    assert images(k) == {"db-0": "app:1", "db-1": "app:1", "db-2": "bad:1"}
    status = k.client.get("statefulsets.apps", "db", "default")["status"]
    assert status["currentRevision"] != status["updateRevision"]
    assert (status["currentReplicas"], status["updatedReplicas"]) == (2, 1)


def test_a_partition_keeps_the_lower_members_and_an_update_ends_with_one_revision() -> None:
    k = cluster()
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    k.client.create("statefulsets.apps", stateful(updateStrategy=strategy))
    k.settle()
    set_image(k, "statefulsets.apps", "db", "app:2")
    k.settle()
    assert images(k) == {"db-0": "app:1", "db-1": "app:1", "db-2": "app:2"}
    k.client.delete("pods", "db-0", "default")
    k.settle()
    assert images(k)["db-0"] == "app:1"
    k.client.patch(
        "statefulsets.apps", "db", "default", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}}
    )
    k.settle()
    assert set(images(k).values()) == {"app:2"}
    status = k.client.get("statefulsets.apps", "db", "default")["status"]
    assert status["currentRevision"] == status["updateRevision"]
    assert len(k.client.list("controllerrevisions.apps", "default")) == 2


def test_scaling_down_takes_the_highest_number_and_keeps_the_claims() -> None:
    k = cluster()
    k.client.create(
        "storageclasses.storage.k8s.io",
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "standard"},
            "provisioner": "rancher.io/local-path",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    )
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "standard",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    k.client.create("statefulsets.apps", stateful(volumeClaimTemplates=[claim]))
    k.settle()
    assert {p["status"]["phase"] for p in k.client.list("persistentvolumeclaims", "default")} == {"Bound"}
    assert len(k.client.list("persistentvolumes")) == 3
    k.client.patch("statefulsets.apps", "db", "default", {"spec": {"replicas": 1}}, subresource="scale")
    k.settle()
    assert sorted(images(k)) == ["db-0"]
    names = [c["metadata"]["name"] for c in k.client.list("persistentvolumeclaims", "default")]
    assert names == ["data-db-0", "data-db-1", "data-db-2"]


def test_a_daemon_set_follows_the_nodes() -> None:
    k = cluster(nodes=2)
    k.client.create("daemonsets.apps", daemon())
    k.settle()
    assert sorted(p["spec"]["nodeName"] for p in k.client.list("pods", "default")) == ["n1", "n2"]
    k.add_nodes("n3")
    k.client.patch("nodes", "n1", "", {"spec": {"unschedulable": True}})
    k.settle()
    assert sorted(p["spec"]["nodeName"] for p in k.client.list("pods", "default")) == ["n1", "n2", "n3"]
    k.client.patch("nodes", "n2", "", {"spec": {"taints": [{"key": "k", "value": "v", "effect": "NoExecute"}]}})
    k.settle()
    assert sorted(p["spec"]["nodeName"] for p in k.client.list("pods", "default")) == ["n1", "n3"]
    assert counts(k, "daemonsets.apps", "agent") == {
        "currentNumberScheduled": 2,
        "desiredNumberScheduled": 2,
        "numberMisscheduled": 0,
        "numberReady": 2,
        "numberAvailable": 2,
        "updatedNumberScheduled": 2,
        "observedGeneration": 1,
    }


def test_a_daemon_set_update_leaves_at_most_one_node_without_a_pod() -> None:
    k = cluster()
    k.client.create("daemonsets.apps", daemon())
    k.settle()
    set_image(k, "daemonsets.apps", "agent", "app:2")
    for _ in range(40):
        k.plane.run(k.plane.now)
        ready = [
            p
            for p in k.client.list("pods", "default")
            if not p["metadata"].get("deletionTimestamp") and p["status"].get("phase") == "Running"
        ]
        assert len(ready) >= 2
        if not k.step():
            break
    assert list(images(k).values()) == ["app:2"] * 3


def test_a_failed_daemon_pod_is_buried_and_replaced() -> None:
    k = cluster(nodes=1)
    k.client.create("daemonsets.apps", daemon())
    k.settle()
    (pod,) = k.client.list("pods", "default")
    name = pod["metadata"]["name"]
    k.client.patch("pods", name, "default", {"status": {"phase": "Failed"}}, subresource="status")
    k.settle()
    texts = [e["message"] for e in k.client.list("events", "default") if e["reason"] == "FailedDaemonPod"]
    assert texts == [f"Found failed daemon pod default/{name} on node n1, will try to kill it"]
    assert [p["status"]["phase"] for p in k.client.list("pods", "default")] == ["Running"]


def test_the_bytes_of_a_revision_are_sorted() -> None:
    k = cluster()
    k.client.create("statefulsets.apps", stateful(replicas=1))
    k.settle()
    (revision,) = k.client.list("controllerrevisions.apps", "default")
    assert orjson.dumps(revision["data"]) == orjson.dumps(revision["data"], option=orjson.OPT_SORT_KEYS)


def test_scaling_down_waits_while_more_than_one_member_is_not_well() -> None:
    k = cluster()
    k.client.create("statefulsets.apps", stateful())
    k.settle()
    for pod in k.client.list("pods", "default")[1:]:
        rows = [{**c, "status": "False"} if c["type"] == "Ready" else c for c in pod["status"]["conditions"]]
        k.client.update("pods", {**pod, "status": {**pod["status"], "conditions": rows}}, subresource="status")
    k.client.patch("statefulsets.apps", "db", "default", {"spec": {"replicas": 0}})
    k.settle()
    assert len(k.client.list("pods", "default")) == 3


@pytest.mark.parametrize(
    ("when_scaled", "when_deleted", "after_scaling", "after_deleting"),
    [("Retain", "Retain", 3, 3), ("Delete", "Retain", 1, 1), ("Retain", "Delete", 3, 0), ("Delete", "Delete", 1, 0)],
)
def test_claims_go_when_the_policy_says_so(
    when_scaled: str, when_deleted: str, after_scaling: int, after_deleting: int
) -> None:
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}}
    claim["spec"]["resources"] = {"requests": {"storage": "1Gi"}}
    policy = {"whenScaled": when_scaled, "whenDeleted": when_deleted}
    k = cluster()
    for number in range(3):
        volume = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": f"/v{number}"}}
        k.client.create("persistentvolumes", {"metadata": {"name": f"v{number}"}, "spec": volume})
    k.client.create(
        "statefulsets.apps", stateful(volumeClaimTemplates=[claim], persistentVolumeClaimRetentionPolicy=policy)
    )
    k.settle()
    assert len(k.client.list("persistentvolumeclaims", "default")) == len(k.client.list("pods", "default")) == 3
    k.client.patch("statefulsets.apps", "db", "default", {"spec": {"replicas": 1}}, subresource="scale")
    k.settle()
    assert len(k.client.list("persistentvolumeclaims", "default")) == after_scaling
    k.client.delete("statefulsets.apps", "db", "default")
    k.settle()
    assert len(k.client.list("pods", "default")) == 0
    assert len(k.client.list("persistentvolumeclaims", "default")) == after_deleting
