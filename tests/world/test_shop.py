"""The shipped apps on the world: every journey green at rest, and a lost service breaks exactly the journeys that need it."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from itbench.core.documents.app import App
from itbench.core.documents.base import load
from itbench.kube.client import Client
from itbench.world.estate import World

PLAYBOOKS = Path(__file__).parents[2] / "playbooks"
APPS = PLAYBOOKS / "apps"
STORAGE = PLAYBOOKS / "roles" / "platform" / "files" / "storage.yaml"


def stand_up(name: str) -> World:
    """The app's manifests applied, settled, under its default load for a minute."""
    world = World.create(load(App, APPS / name / "app.yaml"), seed=0, nodes=3)
    plane = world.planes["main"]
    client = plane.client("kubectl", "system:admin")
    for file in (STORAGE, *sorted((APPS / name / "manifests").glob("*.yaml"))):
        for obj in yaml.load_all(file.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            if obj:
                row = plane.registry.table.by_kind(obj["apiVersion"], obj["kind"])
                assert row is not None, obj["kind"]
                client.create(f"{row.plural}.{row.group}".rstrip("."), obj, obj["metadata"].get("namespace", ""))
    world.settle()
    world.set_load(world.default_load())
    world.advance(world.now + 60)
    return world


@pytest.fixture(scope="module")
def shop() -> dict[str, Any]:
    """The saved astronomy shop."""
    return stand_up("astronomy-shop").save()


def broken(world: World, seconds: float) -> set[str]:
    """Journeys that fail over the next seconds."""
    start = world.now
    world.advance(start + seconds)
    series = world.journeys(start, world.now)
    return {name for name, samples in series.items() if min((s.ok for s in samples if s.rate > 0), default=1.0) < 0.99}


def client_of(world: World) -> Client:
    """kubectl."""
    return world.planes["main"].client("kubectl", "system:admin")


def test_every_pod_of_the_shop_runs_and_every_journey_is_green(shop: dict[str, Any]) -> None:
    world = World.load(shop)
    for pod in client_of(world).list("pods", "shop"):
        assert pod["status"]["phase"] == "Running"
        assert all(c["ready"] for c in pod["status"]["containerStatuses"]), pod["metadata"]["name"]
    assert broken(world, 60) == set()
    last = world.journeys(0, world.now)["buy"][-1]
    assert last.rate == pytest.approx(10.0)
    assert last.p99 < 0.5


def test_no_alert_fires_in_a_healthy_shop(shop: dict[str, Any]) -> None:
    world = World.load(shop)
    world.advance(world.now + 600)
    assert world.scrapes.rule_problems == {}
    assert world.rules.alerts() == []


@pytest.mark.parametrize(
    ("lost", "journeys"),
    [
        ("ad", set()),
        ("email", set()),
        ("accounting", {"orders-booked"}),
        ("product-reviews", {"reviews"}),
        ("recommendation", {"suggestions"}),
        ("payment", {"buy"}),
        ("cart", {"browse", "cart", "buy"}),
        ("frontend-proxy", {"browse", "cart", "buy", "reviews", "suggestions"}),
    ],
)
def test_a_lost_service_breaks_exactly_the_journeys_that_need_it(
    shop: dict[str, Any], lost: str, journeys: set[str]
) -> None:
    world = World.load(shop)
    client_of(world).patch("deployments.apps", lost, "shop", {"spec": {"replicas": 0}})
    world.advance(world.now + 10)
    assert broken(world, 20) == journeys


def test_bookinfo_loses_its_page_when_details_are_not_selected() -> None:
    world = stand_up("bookinfo")
    assert broken(world, 30) == set()
    client_of(world).patch("services", "details", "bookinfo", {"spec": {"selector": {"version": "v2"}}})
    world.advance(world.now + 5)
    assert broken(world, 20) == {"page"}


@pytest.fixture(scope="module")
def hotel() -> dict[str, Any]:
    """The saved hotel site."""
    return stand_up("hotel-reservation").save()


@pytest.mark.parametrize(
    ("lost", "journeys"),
    [
        ("consul", set()),
        ("mongodb-geo", set()),
        ("recommendation", {"recommend"}),
        ("user", {"reserve", "login"}),
        ("mongodb-rate", {"search", "mobile"}),
        ("memcached-rate", set()),
        ("profile", {"search", "recommend", "mobile"}),
        ("frontend", {"search", "recommend", "reserve", "login", "mobile"}),
    ],
)
def test_a_lost_part_of_the_hotel_breaks_exactly_the_journeys_that_need_it(
    hotel: dict[str, Any], lost: str, journeys: set[str]
) -> None:
    world = World.load(hotel)
    assert broken(world, 30) == set()
    client_of(world).patch("deployments.apps", lost, "hotel", {"spec": {"replicas": 0}})
    world.advance(world.now + 10)
    assert broken(world, 20) == journeys


@pytest.fixture(scope="module")
def social() -> dict[str, Any]:
    """The saved social network."""
    return stand_up("social-network").save()


@pytest.mark.parametrize(
    ("lost", "journeys"),
    [
        ("user-memcached", set()),
        ("unique-id-service", {"compose"}),
        ("user-service", {"compose", "login"}),
        ("media-mongodb", {"picture"}),
        ("home-timeline-redis", {"compose", "read-home"}),
        ("post-storage-service", {"compose", "read-home", "read-user"}),
        ("nginx-thrift", {"compose", "read-home", "read-user", "login"}),
    ],
)
def test_a_lost_part_of_the_social_network_breaks_exactly_the_journeys_that_need_it(
    social: dict[str, Any], lost: str, journeys: set[str]
) -> None:
    world = World.load(social)
    assert broken(world, 30) == set()
    client_of(world).patch("deployments.apps", lost, "social", {"spec": {"replicas": 0}})
    world.advance(world.now + 10)
    assert broken(world, 20) == journeys


def test_a_peers_address_counts_from_the_next_start_of_the_process_that_reads_it(social: dict[str, Any]) -> None:
    world = World.load(social)
    client = client_of(world)
    config = client.get("configmaps", "service-config", "social")["data"]["service-config.json"]
    wrong = config.replace('"addr": "unique-id-service"', '"addr": "unique-ids"')
    client.patch("configmaps", "service-config", "social", {"data": {"service-config.json": wrong}})
    world.advance(world.now + 120)
    assert broken(world, 20) == set()
    pods = [pod for pod in client.list("pods", "social") if pod["metadata"]["labels"]["app"] == "compose-post-service"]
    for pod in pods:
        client.delete("pods", pod["metadata"]["name"], "social")
    world.advance(world.now + 60)
    assert broken(world, 20) == {"compose"}


def test_a_name_that_the_dns_servers_deny_is_lost_once_they_have_read_so_and_comes_back() -> None:
    world = stand_up("bookinfo")
    client, plane = client_of(world), world.planes["main"]
    for obj in yaml.safe_load_all((STORAGE.parent / "coredns.yaml").read_text()):
        row = plane.registry.table.by_kind(obj["apiVersion"], obj["kind"])
        assert row is not None
        client.create(f"{row.plural}.{row.group}".rstrip("."), obj, obj["metadata"].get("namespace", ""))
    world.settle()
    world.advance(world.now + 60)
    assert broken(world, 20) == set()
    before = client.get("configmaps", "coredns", "kube-system")["data"]["Corefile"]
    block = '    template ANY ANY cluster.local {\n       match "^details[.]"\n       rcode NXDOMAIN\n    }\n'
    after = before.replace("    kubernetes", f"{block}    kubernetes")
    client.patch("configmaps", "coredns", "kube-system", {"data": {"Corefile": after}})
    world.advance(world.now + 100)
    assert broken(world, 20) == {"page"}
    client.patch("configmaps", "coredns", "kube-system", {"data": {"Corefile": before}})
    world.advance(world.now + 100)
    assert broken(world, 20) == set()
    client.patch("deployments.apps", "coredns", "kube-system", {"spec": {"replicas": 0}})
    world.advance(world.now + 30)
    assert broken(world, 20) == {"page"}


def test_users_come_by_the_rules_of_the_ingress_as_they_are_now(hotel: dict[str, Any]) -> None:
    world = World.load(hotel)
    client = client_of(world)
    paths = client.get("ingresses.networking.k8s.io", "hotel-ingress", "hotel")["spec"]["rules"][0]["http"]["paths"]
    wrong = {**paths[0], "backend": {"service": {"name": "recommendation", "port": {"number": 8085}}}}
    for rules, journeys in (
        ([wrong, paths[1]], {"mobile"}),
        ([paths[1]], set()),
        ([paths[0]], {"search", "recommend", "reserve", "login"}),
    ):
        client.patch(
            "ingresses.networking.k8s.io", "hotel-ingress", "hotel", {"spec": {"rules": [{"http": {"paths": rules}}]}}
        )
        world.advance(world.now + 10)
        assert broken(world, 20) == journeys
    client.delete("ingresses.networking.k8s.io", "hotel-ingress", "hotel")
    world.advance(world.now + 10)
    assert broken(world, 20) == {"search", "recommend", "reserve", "login", "mobile"}
