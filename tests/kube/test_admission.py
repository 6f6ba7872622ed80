"""Admission: namespaces, accounts, priority, limits, quotas."""

from typing import Any

import pytest

from itbench.core.ids import Ids
from itbench.kube.client import ApiError, Obj
from itbench.kube.local import LocalClient
from itbench.kube.registry import Registry
from itbench.kube.requests import Options, PatchBody
from itbench.kube.store import Store


@pytest.fixture
def client() -> LocalClient:
    """A client with a namespace and its default account."""
    client = LocalClient(Registry(store=Store(), ids=Ids(3), now=lambda: 0.0), "me")
    client.create("namespaces", {"metadata": {"name": "t"}})
    client.create("serviceaccounts", {"metadata": {"name": "default"}}, "t")
    return client


def _pod(name: str = "p", resources: Obj | None = None, **spec: Any) -> Obj:
    container = {"name": "c", "image": "i:1", "resources": resources or {}}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def _refusal(client: LocalClient, body: Obj, resource: str = "pods") -> str:
    with pytest.raises(ApiError) as caught:
        client.create(resource, body, "t")
    assert (caught.value.code, caught.value.reason) == (403, "Forbidden")
    return str(caught.value)


def test_terminating_namespaces_take_nothing_new(client: LocalClient) -> None:
    """403 with the NamespaceTerminating cause; the namespace stays until it is finalized."""
    client.delete("namespaces", "t")
    found = client.get("namespaces", "t")
    assert found["status"]["phase"] == "Terminating"
    text = _refusal(client, {"metadata": {"name": "c"}}, "configmaps")
    assert text == (
        'configmaps "c" is forbidden: unable to create new content in namespace t because it is being terminated'
    )
    client.update("namespaces", {**found, "spec": {"finalizers": []}}, subresource="finalize")
    with pytest.raises(ApiError):
        client.get("namespaces", "t")


def test_built_in_namespaces_stay(client: LocalClient) -> None:
    """default cannot be deleted."""
    client.create("namespaces", {"metadata": {"name": "default"}})
    with pytest.raises(ApiError, match="this namespace may not be deleted"):
        client.delete("namespaces", "default")


def test_pods_need_their_account(client: LocalClient) -> None:
    """An unknown account is refused by name; one without automount mounts nothing."""
    text = _refusal(client, _pod(serviceAccountName="nope"))
    assert text == 'pods "p" is forbidden: error looking up service account t/nope: serviceaccount "nope" not found'
    client.create("serviceaccounts", {"metadata": {"name": "bare"}, "automountServiceAccountToken": False}, "t")
    pod = client.create("pods", _pod(serviceAccountName="bare"), "t")
    assert "volumes" not in pod["spec"]


def test_priority_is_resolved_and_unknown_classes_refused(client: LocalClient) -> None:
    """The class's value and policy reach the pod; the global default is used without a class."""
    assert _refusal(client, _pod(priorityClassName="nope")) == (
        'pods "p" is forbidden: no PriorityClass with name nope was found'
    )
    client.create(
        "priorityclasses.scheduling.k8s.io", {"metadata": {"name": "high"}, "value": 7, "globalDefault": True}
    )
    spec = client.create("pods", _pod(), "t")["spec"]
    assert (spec["priorityClassName"], spec["priority"], spec["preemptionPolicy"]) == (
        "high",
        7,
        "PreemptLowerPriority",
    )


def test_limit_ranges_default_and_bound(client: LocalClient) -> None:
    """Defaults are noted in an annotation; too much is refused with the numbers."""
    limits = [
        {
            "type": "Container",
            "max": {"memory": "256Mi"},
            "default": {"memory": "128Mi"},
            "defaultRequest": {"memory": "64Mi"},
        }
    ]
    client.create("limitranges", {"metadata": {"name": "l"}, "spec": {"limits": limits}}, "t")
    pod = client.create("pods", _pod(), "t")
    assert pod["spec"]["containers"][0]["resources"] == {"limits": {"memory": "128Mi"}, "requests": {"memory": "64Mi"}}
    assert pod["metadata"]["annotations"] == {
        "kubernetes.io/limit-ranger": "LimitRanger plugin set: memory request for container c; memory limit for container c"
    }
    text = _refusal(client, _pod("q", {"limits": {"memory": "1Gi"}}))
    assert text == 'pods "q" is forbidden: maximum memory usage per Container is 256Mi, but limit is 1Gi'


def test_quotas_count_and_refuse(client: LocalClient) -> None:
    """Used is charged at once; what is missing and what is exceeded is said."""
    hard = {"pods": "2", "requests.cpu": "1"}
    client.create("resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": hard}}, "t")
    assert _refusal(client, _pod()) == 'pods "p" is forbidden: failed quota: q: must specify requests.cpu for: c'
    cpu = {"requests": {"cpu": "400m"}}
    client.create("pods", _pod("a", cpu), "t")
    client.create("pods", _pod("b", cpu), "t")
    assert client.get("resourcequotas", "q", "t")["status"]["used"] == {"pods": "2", "requests.cpu": "800m"}
    assert _refusal(client, _pod("c", cpu)) == (
        'pods "c" is forbidden: exceeded quota: q, requested: pods=1,requests.cpu=400m, '
        "used: pods=2,requests.cpu=800m, limited: pods=2,requests.cpu=1"
    )


def test_claims_are_protected_and_get_the_default_class(client: LocalClient) -> None:
    """The protection finalizer and the default storage class are added."""
    note = {"storageclass.kubernetes.io/is-default-class": "true"}
    client.create(
        "storageclasses.storage.k8s.io", {"metadata": {"name": "std", "annotations": note}, "provisioner": "x.y/z"}
    )
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = client.create("persistentvolumeclaims", {"metadata": {"name": "c"}, "spec": spec}, "t")
    assert claim["spec"]["storageClassName"] == "std"
    assert claim["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]


def test_pod_security_refuses_and_warns_in_the_real_words(client: LocalClient) -> None:
    """Enforce is a 403 that lists every violation; warn is a warning; a pod that is restricted passes both."""
    label = {"pod-security.kubernetes.io/enforce": "restricted"}
    client.patch("namespaces", "t", "", {"metadata": {"labels": label}})
    assert _refusal(client, _pod(hostNetwork=True)) == (
        'pods "p" is forbidden: violates PodSecurity "restricted:latest": host namespaces (hostNetwork=true), '
        'allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false), '
        'unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]), '
        'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true), '
        'seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")'
    )
    safe = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    context = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    container = {"name": "c", "image": "i:1", "securityContext": safe}
    client.create(
        "pods", {"metadata": {"name": "ok"}, "spec": {"containers": [container], "securityContext": context}}, "t"
    )


def test_tightening_a_namespace_warns_about_its_pods(client: LocalClient) -> None:
    """Labelling is allowed; the pods that would be refused are named."""
    client.create("pods", _pod("old"), "t")
    registry = client.registry
    label = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    done = registry.patch(registry.table.named("namespaces"), "t", "", PatchBody("merge", label), Options("me"))
    assert (
        done.warnings[0]
        == 'existing pods in namespace "t" violate the new PodSecurity enforce level "restricted:latest"'
    )
    assert done.warnings[1].startswith("old: allowPrivilegeEscalation != false, unrestricted capabilities")
