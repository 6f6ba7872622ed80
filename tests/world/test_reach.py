"""One truth for reachability: every way in which a connection can fail, from the objects alone."""

from typing import Any

import pytest

from itbench.kube.client import Client
from itbench.world.cluster import Cluster
from itbench.world.estate import World


@pytest.fixture
def cluster(world: World) -> Cluster:
    """The toy's cluster."""
    return world.main


def verdict(cluster: Cluster, host: str, port: int, app: str = "web") -> str:
    """What a pod of `app` gets when it connects."""
    source = next(p for p in cluster.objects.within("pods", "toy") if p["metadata"]["labels"].get("app") == app)
    return cluster.reach_from(source, host, port).verdict


def policy(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    """A NetworkPolicy."""
    meta = {"name": name, "namespace": "toy"}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": meta, "spec": spec}


@pytest.mark.parametrize("host", ["api", "api.toy", "api.toy.svc", "api.toy.svc.cluster.local"])
def test_a_service_answers_under_all_its_names(cluster: Cluster, host: str) -> None:
    assert verdict(cluster, host, 9000) == "ok"


@pytest.mark.parametrize(
    ("host", "port", "expected"),
    [
        ("api", 9001, "timeout"),  # no such port: the packet leaves for an address that nobody owns
        ("apis", 9000, "nxdomain"),
        ("api.other", 9000, "nxdomain"),
        ("example.org", 443, "nxdomain"),
        ("10.244.9.9", 80, "timeout"),
        ("localhost", 8080, "ok"),
        ("localhost", 9000, "refused"),
        ("", 80, "nxdomain"),
    ],
)
def test_each_wrong_destination_fails_in_its_own_way(cluster: Cluster, host: str, port: int, expected: str) -> None:
    assert verdict(cluster, host, port) == expected


def test_a_pod_answers_at_its_address_on_open_ports_only(cluster: Cluster) -> None:
    pod = next(p for p in cluster.objects.within("pods", "toy") if p["metadata"]["labels"].get("app") == "api")
    assert verdict(cluster, pod["status"]["podIP"], 9000) == "ok"
    assert verdict(cluster, pod["status"]["podIP"], 9001) == "refused"


def test_a_service_without_ready_endpoints_refuses(world: World, cluster: Cluster, kubectl: Client) -> None:
    kubectl.patch("services", "api", "toy", {"spec": {"selector": {"version": "v2"}}})
    world.advance(world.now + 2)
    assert verdict(cluster, "api", 9000) == "refused"


def test_a_wrong_target_port_refuses(world: World, cluster: Cluster, kubectl: Client) -> None:
    kubectl.patch("services", "api", "toy", {"spec": {"ports": [{"port": 9000, "targetPort": 9999}]}})
    world.advance(world.now + 2)
    assert verdict(cluster, "api", 9000) == "refused"


def test_an_ingress_policy_denies_all_but_the_peers_it_names(world: World, cluster: Cluster, kubectl: Client) -> None:
    deny = {"podSelector": {"matchLabels": {"app": "api"}}, "policyTypes": ["Ingress"]}
    kubectl.create("networkpolicies.networking.k8s.io", policy("deny", deny), "toy")
    world.advance(world.now + 1)
    assert verdict(cluster, "api", 9000) == "denied"
    peer = [{"from": [{"podSelector": {"matchLabels": {"app": "web"}}}], "ports": [{"port": 9000}]}]
    kubectl.create("networkpolicies.networking.k8s.io", policy("allow", {**deny, "ingress": peer}), "toy")
    world.advance(world.now + 1)
    assert verdict(cluster, "api", 9000) == "ok"
    assert verdict(cluster, "api", 9000, app="flagd") == "denied"


def test_an_egress_policy_holds_back_what_its_pods_send(world: World, cluster: Cluster, kubectl: Client) -> None:
    spec = {"podSelector": {"matchLabels": {"app": "web"}}, "policyTypes": ["Egress"]}
    kubectl.create("networkpolicies.networking.k8s.io", policy("quiet", spec), "toy")
    world.advance(world.now + 1)
    assert verdict(cluster, "api", 9000) == "denied"
    assert verdict(cluster, "web", 80, app="flagd") == "ok"


def test_a_name_resolves_to_the_cluster_address(cluster: Cluster) -> None:
    service = cluster.objects.get("services", "toy", "api")
    assert service is not None
    assert cluster.resolve_from(None, "api.toy") == (service["spec"]["clusterIP"],)
    assert cluster.resolve_from(None, "nobody.toy") == ()
