"""What a fresh cluster holds before anybody asks for anything. Installed once by `kube.plane`."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

from itbench.kube.client import Obj, Objs
from itbench.kube.controllers import apiservices
from itbench.kube.controllers.serviceaccounts import CA_BUNDLE

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
API_ADDRESS = "10.96.0.1"
API_PORT = 6443
COMPONENTS = {"scheduler": "ok", "controller-manager": "ok", "etcd-0": "ok"}
"""What `kubectl get componentstatuses` says of each part of a control plane."""

RESOURCES = {
    "ClusterRole": "clusterroles.rbac.authorization.k8s.io",
    "ClusterRoleBinding": "clusterrolebindings.rbac.authorization.k8s.io",
    "Role": "roles.rbac.authorization.k8s.io",
    "RoleBinding": "rolebindings.rbac.authorization.k8s.io",
    "FlowSchema": "flowschemas.flowcontrol.apiserver.k8s.io",
    "PriorityLevelConfiguration": "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
    "ServiceCIDR": "servicecidrs.networking.k8s.io",
    "ServiceAccount": "serviceaccounts",
}
"""Kinds of the recorded defaults."""


def defaults() -> Objs:
    """What a fresh cluster holds for its own working, without server-set metadata (as recorded from Kubernetes 1.34)."""
    file = Path(__file__).parents[1] / "data" / "defaults.json.gz"
    items: Objs = json.loads(gzip.decompress(file.read_bytes()))
    return items


def objects() -> Iterator[tuple[str, Obj]]:
    """(resource, object) in the order of creation."""
    for name in NAMESPACES:
        yield "namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    yield from _priorities()
    yield "configmaps", _authentication()
    for obj in defaults():
        yield RESOURCES[obj["kind"]], obj
    for name, message in COMPONENTS.items():
        healthy = {"type": "Healthy", "status": "True", "message": message}
        yield (
            "componentstatuses",
            {"apiVersion": "v1", "kind": "ComponentStatus", "metadata": {"name": name}, "conditions": [healthy]},
        )
    yield from _api_service()
    yield from apiservices.objects()


def _authentication() -> Obj:
    """How aggregated API servers tell who is asking: authorities, and headers of the front proxy."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system"},
        "data": {
            "client-ca-file": CA_BUNDLE,
            "requestheader-allowed-names": '["front-proxy-client"]',
            "requestheader-client-ca-file": CA_BUNDLE,
            "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
            "requestheader-group-headers": '["X-Remote-Group"]',
            "requestheader-username-headers": '["X-Remote-User"]',
        },
    }


def _priorities() -> Iterator[tuple[str, Obj]]:
    rows = (
        (
            "system-cluster-critical",
            2000000000,
            "Used for system critical pods that must run in the cluster, "
            "but can be moved to another node if necessary.",
        ),
        (
            "system-node-critical",
            2000001000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
    )
    for name, value, text in rows:
        yield (
            "priorityclasses.scheduling.k8s.io",
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
                "description": text,
                "preemptionPolicy": "PreemptLowerPriority",
            },
        )


def _api_service() -> Iterator[tuple[str, Obj]]:
    """The Service `kubernetes` and the address behind it (no pod stands there)."""
    meta = {"name": "kubernetes", "namespace": "default"}
    port = {"name": "https", "port": API_PORT, "protocol": "TCP"}
    yield (
        "services",
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {**meta, "labels": {"component": "apiserver", "provider": "kubernetes"}},
            "spec": {
                "clusterIP": API_ADDRESS,
                "clusterIPs": [API_ADDRESS],
                "ipFamilies": ["IPv4"],
                "ipFamilyPolicy": "SingleStack",
                "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": API_PORT}],
                "type": "ClusterIP",
            },
        },
    )
    yield (
        "endpoints",
        {
            "apiVersion": "v1",
            "kind": "Endpoints",
            "metadata": {**meta, "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
            "subsets": [{"addresses": [{"ip": "10.0.0.1"}], "ports": [port]}],
        },
    )
    yield (
        "endpointslices.discovery.k8s.io",
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {**meta, "labels": {"kubernetes.io/service-name": "kubernetes"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": True}}],
            "ports": [port],
        },
    )
