"""A kubelet refuses pods that name its node and do not fit there."""

from typing import Any

import pytest

from itbench.world.estate import World


def start(world: World, name: str, node: str, **spec: Any) -> dict[str, Any]:
    """A pod that names its node, given time to start."""
    client = world.planes["main"].client("test")
    container = {"name": "c", "image": "registry.k8s.io/pause:3.10", **spec.pop("container", {})}
    body = {"metadata": {"name": name}, "spec": {"nodeName": node, "containers": [container], **spec}}
    client.create("pods", body, "default")
    world.advance(world.now + 10.0)
    return client.get("pods", name, "default")["status"]


@pytest.fixture
def empty() -> World:
    """A cluster without an app."""
    return World.create(None, seed=1, nodes=2)


def test_a_host_port_that_is_taken_fails_the_pod_until_it_is_free(empty: World) -> None:
    port = {"ports": [{"containerPort": 80, "hostPort": 8080}]}
    assert start(empty, "a", "node-1", container=port)["phase"] == "Running"
    assert start(empty, "elsewhere", "node-2", container=port)["phase"] == "Running"
    refused = start(empty, "b", "node-1", container=port)
    text = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
    assert (refused["phase"], refused["reason"], refused["message"]) == (
        "Failed",
        "NodePorts",
        f"Pod was rejected: {text}",
    )
    client = empty.planes["main"].client("test")
    assert [e["message"] for e in client.list("events", "default") if e["reason"] == "NodePorts"] == [text]
    for name in ("a", "b"):
        client.delete("pods", name, "default")
    empty.advance(empty.now + 40.0)
    assert start(empty, "b", "node-1", container=port)["phase"] == "Running"


def test_what_the_node_has_not_is_named_with_numbers(empty: World) -> None:
    refused = start(empty, "big", "node-1", container={"resources": {"requests": {"cpu": "1000"}}})
    assert refused["reason"] == "OutOfcpu"
    assert "requested: 1000000, used: 0, capacity: " in refused["message"]


def test_a_node_that_a_selector_does_not_mean_refuses(empty: World) -> None:
    assert start(empty, "lost", "node-1", nodeSelector={"disk": "ssd"})["reason"] == "NodeAffinity"


def test_a_stateful_set_makes_a_refused_member_again_until_it_fits(empty: World) -> None:
    port = {"ports": [{"containerPort": 80, "hostPort": 8080}]}
    start(empty, "first", "node-1", container=port)
    client = empty.planes["main"].client("test")
    labels = {"app": "set"}
    pod = {"nodeName": "node-1", "containers": [{"name": "c", "image": "registry.k8s.io/pause:3.10", **port}]}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    client.create("statefulsets.apps", {"metadata": {"name": "set"}, "spec": {**spec, "serviceName": "set"}}, "default")
    empty.advance(empty.now + 10.0)
    uids = {e["involvedObject"]["uid"] for e in client.list("events", "default") if e["reason"] == "NodePorts"}
    assert len(uids) > 1
    client.delete("pods", "first", "default")
    empty.advance(empty.now + 60.0)
    assert client.get("pods", "set-0", "default")["status"]["phase"] == "Running"
