"""Claims grow where their class lets them, and their file systems where a pod mounts them."""

from typing import Any

import pytest
from fake_kubelet import FakeKubelets, cluster

from itbench.kube.client import ApiError

GROWN = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}


def claimed(provisioner: str, *, allowed: bool = True, pod: bool = True) -> FakeKubelets:
    """A claim that is bound, and a pod that mounts it."""
    k = cluster()
    kind = {"metadata": {"name": "fast"}, "provisioner": provisioner, "allowVolumeExpansion": allowed}
    k.client.create("storageclasses.storage.k8s.io", kind)
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast", **_size("1Gi")}
    k.client.create("persistentvolumeclaims", {"metadata": {"name": "data"}, "spec": spec}, "default")
    if pod:
        mount(k)
    k.settle()
    k.advance(5.0)
    return k


def _size(text: str) -> dict[str, Any]:
    return {"resources": {"requests": {"storage": text}}}


def mount(k: FakeKubelets) -> None:
    """A pod that uses the claim."""
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    spec = {"containers": [{"name": "c", "image": "nginx:1.27"}], "volumes": [volume]}
    k.client.create("pods", {"metadata": {"name": "user"}, "spec": spec}, "default")


def state(k: FakeKubelets) -> tuple[str, list[str]]:
    """Size and conditions of the claim."""
    found = k.client.get("persistentvolumeclaims", "data", "default")["status"]
    return found["capacity"]["storage"], [c["type"] for c in found.get("conditions", [])]


def test_a_mounted_claim_grows_volume_first() -> None:
    k = claimed("ebs.csi.aws.com")
    k.client.patch("persistentvolumeclaims", "data", "default", GROWN)
    k.settle()
    assert state(k) == ("1Gi", [])
    k.advance(k.plane.now + 4.0)
    assert state(k) == ("1Gi", ["FileSystemResizePending"])
    assert k.client.list("persistentvolumes")[0]["spec"]["capacity"]["storage"] == "2Gi"
    k.advance(k.plane.now + 4.0)
    assert state(k) == ("2Gi", [])
    reasons = [e["reason"] for e in k.client.list("events", "default") if e["involvedObject"]["name"] == "data"]
    assert {"Resizing", "FileSystemResizeRequired", "FileSystemResizeSuccessful"} <= set(reasons)


def test_the_file_system_waits_for_a_pod() -> None:
    k = claimed("ebs.csi.aws.com", pod=False)
    k.client.patch("persistentvolumeclaims", "data", "default", GROWN)
    k.advance(k.plane.now + 60.0)
    assert state(k) == ("1Gi", ["FileSystemResizePending"])
    mount(k)
    k.advance(k.plane.now + 10.0)
    assert state(k) == ("2Gi", [])


def test_a_provisioner_that_cannot_expand_leaves_the_claim_waiting() -> None:
    k = claimed("rancher.io/local-path")
    k.client.patch("persistentvolumeclaims", "data", "default", GROWN)
    k.advance(k.plane.now + 60.0)
    assert state(k) == ("1Gi", [])
    assert "ExternalExpanding" in [e["reason"] for e in k.client.list("events", "default")]


def test_a_class_that_does_not_allow_it_refuses() -> None:
    k = claimed("ebs.csi.aws.com", allowed=False)
    with pytest.raises(ApiError, match="the storageclass that provisions the pvc must support resize"):
        k.client.patch("persistentvolumeclaims", "data", "default", GROWN)
