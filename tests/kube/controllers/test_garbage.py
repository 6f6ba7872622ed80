"""Owners and dependents: background, foreground and orphan deletion, and namespaces that go."""

import pytest
from fake_kubelet import FakeKubelets, cluster, deployment

from itbench.kube.client import ApiError


def names(k: FakeKubelets, resource: str, namespace: str = "default") -> list[str]:
    return [o["metadata"]["name"] for o in k.client.list(resource, namespace)]


def test_background_deletion_leaves_no_dependent() -> None:
    k = cluster()
    k.client.create("deployments.apps", deployment("web"))
    k.settle()
    k.client.delete("deployments.apps", "web", "default")
    k.settle()
    assert names(k, "replicasets.apps") == [] and names(k, "pods") == []


def test_foreground_deletion_keeps_the_owner_until_its_dependents_are_gone() -> None:
    k = cluster()
    k.client.create("deployments.apps", deployment("web"))
    k.settle()
    k.client.delete("deployments.apps", "web", "default", propagation="Foreground")
    k.plane.run(k.plane.now)
    web = k.client.get("deployments.apps", "web", "default")
    assert web["metadata"]["finalizers"] == ["foregroundDeletion"]
    (owned,) = k.client.list("replicasets.apps", "default")
    assert owned["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert all(p["metadata"]["deletionTimestamp"] for p in k.client.list("pods", "default"))
    k.settle()
    assert names(k, "deployments.apps") + names(k, "replicasets.apps") + names(k, "pods") == []


def test_orphaned_dependents_live_on() -> None:
    k = cluster()
    k.client.create("deployments.apps", deployment("web", 2))
    k.settle()
    k.client.delete("deployments.apps", "web", "default", propagation="Orphan")
    k.settle()
    assert names(k, "deployments.apps") == []
    assert len(names(k, "replicasets.apps")) == 1 and len(names(k, "pods")) == 2


def test_an_object_goes_only_with_its_last_owner() -> None:
    k = cluster(nodes=0)
    owners = [
        k.client.create(
            "configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": n, "namespace": "default"}}
        )
        for n in ("a", "b")
    ]
    refs = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": o["metadata"]["name"], "uid": o["metadata"]["uid"]}
        for o in owners
    ]
    child = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "default", "ownerReferences": refs},
    }
    k.client.create("configmaps", child)
    k.client.delete("configmaps", "a", "default")
    k.settle()
    left = k.client.get("configmaps", "c", "default")["metadata"]["ownerReferences"]
    assert [r["name"] for r in left] == ["b"]
    k.client.delete("configmaps", "b", "default")
    k.settle()
    assert names(k, "configmaps") == ["kube-root-ca.crt"]


def test_a_namespace_takes_everything_along_and_says_what_holds_it() -> None:
    k = cluster()
    k.client.create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    k.settle()
    assert names(k, "serviceaccounts", "shop") == ["default"] and names(k, "configmaps", "shop") == ["kube-root-ca.crt"]
    k.client.create("deployments.apps", deployment("web", namespace="shop"))
    held = {"name": "held", "namespace": "shop", "finalizers": ["a.b/c"]}
    k.client.create("configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": held})
    k.settle()
    k.client.delete("namespaces", "shop")
    k.settle()
    assert names(k, "pods", "shop") + names(k, "deployments.apps", "shop") + names(k, "events", "shop") == []
    shop = k.client.get("namespaces", "shop")
    texts = {c["type"]: (c["status"], c["reason"], c["message"]) for c in shop["status"]["conditions"]}
    assert texts["NamespaceContentRemaining"] == (
        "True",
        "SomeResourcesRemain",
        "Some resources are remaining: configmaps. has 1 resource instances",
    )
    assert texts["NamespaceFinalizersRemaining"] == (
        "True",
        "SomeFinalizersRemain",
        "Some content in the namespace has finalizers remaining: a.b/c in 1 resource instances",
    )
    assert texts["NamespaceDeletionContentFailure"][0] == "False"
    k.client.patch("configmaps", "held", "shop", {"metadata": {"finalizers": None}})
    k.settle()
    with pytest.raises(ApiError) as caught:
        k.client.get("namespaces", "shop")
    assert caught.value.code == 404
