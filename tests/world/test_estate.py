"""The world as a whole: deterministic, saveable, right at rest, and disturbed by what disturbs a real estate."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from itbench.core import codec
from itbench.core.errors import UsageError
from itbench.kube.client import Client
from itbench.world.estate import World

Measure = Callable[[World, float], float]
Pods = Callable[[Client, str], list[dict[str, Any]]]


def stress(workers: int, load: int, duration: str) -> dict[str, Any]:
    """A StressChaos on every api pod."""
    selector = {"namespaces": ["toy"], "labelSelectors": {"app": "api"}}
    spec = {
        "mode": "all",
        "selector": selector,
        "duration": duration,
        "stressors": {"cpu": {"workers": workers, "load": load}},
    }
    meta = {"name": "trial-load", "namespace": "toy"}
    return {"apiVersion": "chaos-mesh.org/v1alpha1", "kind": "StressChaos", "metadata": meta, "spec": spec}


def plain(value: object, path: str = "") -> None:
    """Fails at the first thing that is not plain data."""
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return
    if isinstance(value, np.ndarray):
        assert not value.dtype.hasobject, path
        return
    if isinstance(value, dict):
        for key, item in value.items():
            assert isinstance(key, str | int), f"{path}: key {key!r}"
            plain(item, f"{path}.{key}")
        return
    assert isinstance(value, list | tuple), f"{path}: {type(value)}"
    for index, item in enumerate(value):
        plain(item, f"{path}[{index}]")


def test_saved_state_is_plain_data(world: World) -> None:
    world.advance(world.now + 40)
    plain(world.save())


def test_a_restored_world_goes_on_bit_for_bit(world: World, kubectl: Client) -> None:
    world.advance(world.now + 20)
    kubectl.create("stresschaos.chaos-mesh.org", stress(2, 95, "15s"), "toy")
    kubectl.patch("deployments.apps", "web", "toy", {"spec": {"replicas": 3}})
    world.advance(world.now + 3.3)
    other = World.load(codec.loads(codec.dumps(world.save())))
    for each in (world, other):
        each.advance(each.now + 70)
    assert codec.dumps(world.save()) == codec.dumps(other.save())


def test_equal_seeds_give_equal_worlds(new_world: Callable[..., World]) -> None:
    first, second, third = new_world(seed=3), new_world(seed=3), new_world(seed=4)
    for each in (first, second, third):
        each.advance(each.now + 60)
    assert codec.dumps(first.save()) == codec.dumps(second.save())
    names = [sorted(pod.name for pod in each.pods()) for each in (first, third)]
    assert names[0] != names[1]


def test_advancing_in_small_steps_changes_nothing_for_the_cluster(settled: dict[str, Any]) -> None:
    whole, pieces = World.load(settled), World.load(settled)
    whole.advance(whole.now + 30)
    while pieces.now < whole.now:
        pieces.advance(min(pieces.now + 0.7, whole.now))
    # Memory follows the flow, whose last digits depend on where its steps are cut.
    assert {**whole.main.save(), "memory": {}} == {**pieces.main.save(), "memory": {}}


def test_a_cpu_cut_slows_the_app_and_passes(world: World, kubectl: Client, measure: Measure) -> None:
    kubectl.create("stresschaos.chaos-mesh.org", stress(2, 95, "30s"), "toy")
    world.advance(world.now + 10)
    assert measure(world, 15) < 0.1
    status = kubectl.get("stresschaos.chaos-mesh.org", "trial-load", "toy")["status"]
    assert {c["type"]: c["status"] for c in status["conditions"]}["AllInjected"] == "True"
    assert len(status["experiment"]["containerRecords"]) == 2
    world.advance(world.now + 60)
    assert measure(world, 20) == pytest.approx(1.0)
    status = kubectl.get("stresschaos.chaos-mesh.org", "trial-load", "toy")["status"]
    assert {c["type"]: c["status"] for c in status["conditions"]}["AllRecovered"] == "True"


def test_a_stress_that_is_deleted_stops_at_once(world: World, kubectl: Client, measure: Measure) -> None:
    kubectl.create("stresschaos.chaos-mesh.org", stress(2, 95, "10m"), "toy")
    world.advance(world.now + 10)
    kubectl.delete("stresschaos.chaos-mesh.org", "trial-load", "toy")
    world.advance(world.now + 30)
    assert measure(world, 20) == pytest.approx(1.0)


def test_a_pod_kill_replaces_one_pod(world: World, kubectl: Client, pods: Pods) -> None:
    before = {pod["metadata"]["name"] for pod in pods(kubectl, "api")}
    spec = {"action": "pod-kill", "mode": "one", "selector": {"namespaces": ["toy"], "labelSelectors": {"app": "api"}}}
    chaos = {
        "apiVersion": "chaos-mesh.org/v1alpha1",
        "kind": "PodChaos",
        "metadata": {"name": "k", "namespace": "toy"},
        "spec": spec,
    }
    kubectl.create("podchaos.chaos-mesh.org", chaos, "toy")
    world.advance(world.now + 15)
    after = {pod["metadata"]["name"] for pod in pods(kubectl, "api")}
    assert len(before & after) == 1
    assert len(after) == 2


def test_a_pod_failure_takes_its_pods_out_until_it_ends(world: World, kubectl: Client, measure: Measure) -> None:
    selector = {"namespaces": ["toy"], "labelSelectors": {"app": "api"}}
    spec = {"action": "pod-failure", "mode": "all", "selector": selector, "duration": "20s"}
    chaos = {
        "apiVersion": "chaos-mesh.org/v1alpha1",
        "kind": "PodChaos",
        "metadata": {"name": "f", "namespace": "toy"},
        "spec": spec,
    }
    kubectl.create("podchaos.chaos-mesh.org", chaos, "toy")
    world.advance(world.now + 5)
    assert measure(world, 10) == pytest.approx(0.0, abs=1e-6)
    world.advance(world.now + 40)
    assert measure(world, 20) == pytest.approx(1.0)


def test_less_cpu_by_resize_lowers_capacity_without_a_restart(
    world: World, kubectl: Client, pods: Pods, measure: Measure
) -> None:
    for pod in pods(kubectl, "api"):
        patch = {
            "spec": {
                "containers": [{"name": "api", "resources": {"limits": {"cpu": "100m"}, "requests": {"cpu": "100m"}}}]
            }
        }
        kubectl.patch("pods", pod["metadata"]["name"], "toy", patch, kind="strategic", subresource="resize")
    world.advance(world.now + 20)
    # Two pods of 0.1 cores at 20 ms of CPU a call serve 10 of 20 calls a second.
    assert measure(world, 30) < 0.6
    assert all(c["restartCount"] == 0 for pod in pods(kubectl, "api") for c in pod["status"]["containerStatuses"])


def test_two_control_planes_live_side_by_side() -> None:
    world = World.create(None, seed=0, nodes=1, planes=("main", "audit"))
    world.advance(30)
    names = [[n["metadata"]["name"] for n in p.client("kubectl").list("nodes")] for p in world.planes.values()]
    assert names == [["node-1"], ["node-1"]]
    plain(world.save())


def test_load_on_an_unknown_journey_names_the_known_ones(world: World) -> None:
    with pytest.raises(UsageError, match="one of home"):
        world.set_load({"hom": 1.0})
