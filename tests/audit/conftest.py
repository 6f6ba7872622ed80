"""An estate with one workload of each sort, for the audit to find."""

import pytest

PAUSE = {"name": "c", "image": "registry.k8s.io/pause:3.10.1"}


def deployment(name, namespace, **pod):
    labels = {"app": name}
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [dict(PAUSE)], **pod}},
    }
    meta = {"name": name, "namespace": namespace}
    return ("deployments.apps", {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec})


@pytest.fixture
def estate():
    """(resource, object) pairs to create."""
    hardened = {
        **PAUSE,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "runAsNonRoot": True,
            "runAsUser": 65535,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    wild = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "wild"},
        "rules": [wild],
    }
    return [
        ("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}),
        deployment("spy", "shop", hostPID=True),
        deployment("fine", "shop", containers=[hardened], automountServiceAccountToken=False),
        ("clusterroles.rbac.authorization.k8s.io", role),
    ]


EXPECTED = {
    ("5.1.3", "ClusterRole/wild"): "not_satisfied",
    ("5.2.3", "Deployment/shop/spy"): "not_satisfied",
    ("5.2.3", "Deployment/shop/fine"): "satisfied",
    ("5.2.4", "Deployment/shop/spy"): "satisfied",
    ("5.2.6", "Deployment/shop/spy"): "not_satisfied",
    ("5.2.6", "Deployment/shop/fine"): "satisfied",
    ("5.2.7", "Deployment/shop/fine"): "satisfied",
    ("5.3.2", "Namespace/shop"): "not_satisfied",
    ("5.6.2", "Deployment/shop/fine"): "satisfied",
}


@pytest.fixture
def expected():
    """(control, subject) -> state that any audit of the estate must give."""
    return EXPECTED
