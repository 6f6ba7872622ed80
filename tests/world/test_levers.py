"""Objects pull the levers of the flow: what an operator or a fault changes is what users feel."""

from collections.abc import Callable
from typing import Any

import pytest

from itbench.core.documents.app import Setting
from itbench.kube.client import Client
from itbench.kube.door import LogQuery
from itbench.world.estate import World
from itbench.world.levers import parse_flags
from itbench.world.settings import evaluate

Measure = Callable[[World, float], float]
Pods = Callable[[Client, str], list[dict[str, Any]]]


def set_env(kubectl: Client, name: str, **env: str) -> None:
    """kubectl set env."""
    items = [{"name": key, "value": value} for key, value in env.items()]
    patch = {"spec": {"template": {"spec": {"containers": [{"name": name, "env": items}]}}}}
    kubectl.patch("deployments.apps", name, "toy", patch, kind="strategic")


def test_a_healthy_app_serves_every_request(world: World, measure: Measure) -> None:
    assert measure(world, 60) == pytest.approx(1.0)


@pytest.mark.parametrize("address", ["api:9001", "apis:9000", "web:80", "nonsense"])
def test_a_wrong_address_in_env_breaks_the_journey(
    world: World, kubectl: Client, measure: Measure, address: str
) -> None:
    set_env(kubectl, "web", API_ADDR=address)
    world.advance(world.now + 40)
    assert measure(world, 30) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("timeout_ms", ["500", "off"])
def test_looking_again_at_a_cluster_that_has_not_changed_pulls_no_lever(
    world: World, kubectl: Client, timeout_ms: str
) -> None:
    """A restored estate looks again where the one that went on did not: both must come to the same levers."""
    set_env(kubectl, "web", API_TIMEOUT_MS=timeout_ms)
    world.advance(world.now + 40)
    assert world.running is not None
    levers = world.running.levers
    for port in (9001, 9000, 9002):  # swallowed, healed, swallowed
        kubectl.patch("services", "api", "toy", {"spec": {"ports": [{"port": port, "targetPort": 9000}]}})
        world.clusters["main"].step(world.now)
        levers.update()
        seen = dict(levers.applied)
        levers.update()
        assert levers.applied == seen, port


def test_callers_log_why_they_cannot_reach_a_service(world: World, kubectl: Client, pods: Pods) -> None:
    set_env(kubectl, "web", API_ADDR="apis:9000")
    world.advance(world.now + 40)
    name = pods(kubectl, "web")[0]["metadata"]["name"]
    lines = [text for _, text in world.door().logs(LogQuery("toy", name, "web"))]
    assert any("GET / failed: could not reach api: lookup apis: no such host" in line for line in lines)


def test_a_selector_that_matches_nothing_breaks_the_journey_and_its_repair_heals_it(
    world: World, kubectl: Client, measure: Measure
) -> None:
    kubectl.patch("services", "api", "toy", {"spec": {"selector": {"version": "v2"}}})
    world.advance(world.now + 5)
    assert measure(world, 20) == pytest.approx(0.0, abs=1e-6)
    kubectl.patch("services", "api", "toy", {"spec": {"selector": {"version": None}}})
    world.advance(world.now + 5)
    assert measure(world, 20) == pytest.approx(1.0)


def test_scaling_to_zero_stops_the_journey(world: World, kubectl: Client, measure: Measure) -> None:
    kubectl.patch("deployments.apps", "api", "toy", {"spec": {"replicas": 0}})
    world.advance(world.now + 10)
    assert measure(world, 20) == pytest.approx(0.0, abs=1e-6)


def test_more_pods_than_slots_still_add_capacity(world: World, kubectl: Client, measure: Measure) -> None:
    for name, replicas in (("api", 8), ("web", 4)):
        kubectl.patch("deployments.apps", name, "toy", {"spec": {"replicas": replicas}})
    world.advance(world.now + 30)
    world.set_load({"home": 340.0})
    world.advance(world.now + 10)
    # Eight pods of two workers at 40 ms serve 400 a second; six would serve 300.
    assert measure(world, 30) == pytest.approx(1.0, abs=1e-3)


def test_the_edge_limit_sheds_at_once_and_lets_all_through_again(
    world: World, kubectl: Client, measure: Measure
) -> None:
    kubectl.patch("configmaps", "edge-limits", "toy", {"data": {"home": "5"}})
    assert measure(world, 30) == pytest.approx(0.25, abs=0.02)
    kubectl.patch("configmaps", "edge-limits", "toy", {"data": {"home": "off"}})
    world.advance(world.now + 5)
    assert measure(world, 20) == pytest.approx(1.0)


def test_a_flag_in_the_config_map_acts_only_after_a_restart(world: World, kubectl: Client, measure: Measure) -> None:
    text = '{"flags": {"apiFailure": {"state": "ENABLED", "variants": {"on": true, "off": false}, "defaultVariant": "on"}}}'
    kubectl.patch("configmaps", "flags", "toy", {"data": {"flags.json": text}})
    world.advance(world.now + 90)
    assert measure(world, 20) == pytest.approx(1.0)
    stamp = {"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}}}}
    kubectl.patch("deployments.apps", "flagd", "toy", stamp)
    world.advance(world.now + 20)
    assert measure(world, 20) == pytest.approx(0.0, abs=1e-6)
    set_env(kubectl, "api", FLAGD_HOST="nowhere")
    world.advance(world.now + 60)
    assert measure(world, 20) == pytest.approx(1.0), "a service that cannot ask works as if the flag were off"


def test_a_program_of_another_image_does_not_serve(world: World, kubectl: Client, measure: Measure) -> None:
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "api", "image": "nginx:1.27"}]}}}}
    kubectl.patch("deployments.apps", "api", "toy", patch, kind="strategic")
    world.advance(world.now + 30)
    assert measure(world, 20) == pytest.approx(0.0, abs=1e-6)


def test_retries_and_timeouts_come_from_the_callers_environment(world: World, kubectl: Client) -> None:
    assert world.running is not None
    set_env(kubectl, "web", API_RETRIES="3", API_TIMEOUT_MS="250")
    world.advance(world.now + 40)
    applied = world.running.levers.applied
    assert applied["retries/1/-1"] == 3
    assert applied["timeout/1/-1"] == 0.25


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("250", "ms", 0.25),
        ("3s", "ms", 3.0),
        ("10", "percent", 0.1),
        ("10%", "percent", 0.1),
        ("off", "s", -1.0),
        ("junk", "s", 7.0),
        ("", "s", -1.0),
    ],
)
def test_settings_are_read_as_operators_write_them(text: str, unit: str, expected: float) -> None:
    setting = Setting.model_validate({"env": "X", "default": 7, "unit": unit})
    assert evaluate(setting, {"X": text}, lambda name, key: None, off=-1.0) == pytest.approx(expected)


def test_only_enabled_flags_with_a_known_variant_count() -> None:
    flags = """{"flags": {"a": {"state": "ENABLED", "variants": {"on": true}, "defaultVariant": "on"},
      "b": {"state": "DISABLED", "variants": {"on": true}, "defaultVariant": "on"},
      "c": {"state": "ENABLED", "variants": {"10%": 0.1}, "defaultVariant": "10%"}, "d": 3}}"""
    assert parse_flags(flags) == {"a": 1.0, "c": 0.1}
    assert parse_flags("not json") == {}
