"""The published retry quadruple through the whole world: manifests, StressChaos, kubelets, flow, probes.

Huang et al., OSDI 2022, section 5.2: of four nearly equal CPU cuts exactly one leaves the service down.
"""

from typing import Any

import pytest
import yaml

from itbench.core.documents.app import App
from itbench.world.estate import World

SHOP = """
schema: itbench/app/v1
id: small-shop
namespace: shop
programs:
  frontend: {image: example.com/frontend, tags: ["1"], listens: [{port: 8080}], process: /frontend}
  checkout: {image: example.com/checkout, tags: ["1"], listens: [{port: 8080, protocol: grpc}], process: /checkout}
services:
  deployment/frontend:
    program: frontend
    capacity: {workers: 2}
    operations:
      POST /api/checkout:
        service_ms: 40
        calls: [{to: deployment/checkout, operation: PlaceOrder, address: {env: CHECKOUT_ADDR}, timeout_s: 3, retries: 4}]
  deployment/checkout:
    program: checkout
    protocol: grpc
    capacity: {workers: 1, grain: 62}
    queue_s: 10
    operations: {PlaceOrder: {service_ms: 124, cpu_ms: 62}}
journeys:
  buy: {entry: {service: frontend, port: 8080, workload: deployment/frontend, operation: POST /api/checkout}, rate: 10}
"""


def deployment(name: str, env: list[dict[str, str]], resources: dict[str, Any]) -> dict[str, Any]:
    """Two pods of one container."""
    labels = {"app": name}
    container = {"name": name, "image": f"example.com/{name}:1", "env": env, "resources": resources}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": spec,
    }


@pytest.fixture(scope="module")
def shop() -> dict[str, Any]:
    """The saved state of the shop under its load."""
    world = World.create(App.model_validate(yaml.safe_load(SHOP)), seed=0, nodes=2)
    client = world.planes["main"].client("kubectl", "system:admin")
    client.create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    client.create("deployments.apps", deployment("checkout", [], {"limits": {"cpu": "1"}}), "shop")
    client.create(
        "deployments.apps", deployment("frontend", [{"name": "CHECKOUT_ADDR", "value": "checkout:8080"}], {}), "shop"
    )
    for name in ("checkout", "frontend"):
        spec = {"selector": {"app": name}, "ports": [{"port": 8080}]}
        client.create(
            "services",
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "shop"}, "spec": spec},
            "shop",
        )
    world.settle()
    world.set_load({"buy": 10.0})
    world.advance(world.now + 60)
    return world.save()


@pytest.mark.parametrize(
    ("load", "seconds", "scale", "recovers"),
    [(78, 10, 1.0, True), (80, 10, 1.0, False), (80, 9, 1.0, True), (80, 10, 0.68, True)],
)
def test_only_the_full_cut_leaves_checkout_down(
    shop: dict[str, Any], load: int, seconds: int, scale: float, recovers: bool
) -> None:
    world = World.load(shop)
    world.set_load({"buy": 10.0 * scale})
    world.advance(world.now + 20)
    selector = {"namespaces": ["shop"], "labelSelectors": {"app": "checkout"}}
    spec = {
        "mode": "all",
        "selector": selector,
        "stressors": {"cpu": {"workers": 1, "load": load}},
        "duration": f"{seconds}s",
    }
    chaos = {
        "apiVersion": "chaos-mesh.org/v1alpha1",
        "kind": "StressChaos",
        "metadata": {"name": "x", "namespace": "shop"},
        "spec": spec,
    }
    world.planes["main"].client("kubectl", "system:admin").create("stresschaos.chaos-mesh.org", chaos, "shop")
    start = world.now
    world.advance(start + 120)
    assert max(sample.p99 for sample in world.journeys(start, start + 15)["buy"]) > 0.3  # users felt it in every case
    end = [sample.ok for sample in world.journeys(start + 90, start + 120)["buy"]]
    assert sum(end) / len(end) == pytest.approx(1.0 if recovers else 0.0, abs=0.01)
