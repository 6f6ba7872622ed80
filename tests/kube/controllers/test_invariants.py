"""Whatever happens in whatever order: numbers converge, owners are right, nothing is orphaned, revisions grow, copies agree."""

from random import Random
from typing import Any

import orjson
import pytest
from fake_kubelet import FakeKubelets, Obj, cluster, deployment

from itbench.core import codec
from itbench.kube.client import ApiError
from itbench.kube.plane import ControlPlane

NAMES = ("a", "b", "c")
IMAGES = ("app:1", "app:2", "slow:3", "broken:4")
STEPS = 40


def verdict(pod: Obj) -> str:
    image = pod["spec"]["containers"][0]["image"]
    return {"slow:3": "running", "broken:4": "stuck"}.get(image, "ready")


def contents(plane: ControlPlane) -> bytes:
    return orjson.dumps(
        {r: [e.object for e in plane.store.list(r)] for r in plane.store.resources()}, option=orjson.OPT_SORT_KEYS
    )


def create(k: FakeKubelets, rng: Random) -> None:
    strategy = rng.choice([{"type": "Recreate"}, {"type": "RollingUpdate"}])
    body = deployment(rng.choice(NAMES), rng.randint(0, 5), rng.choice(IMAGES), strategy=strategy)
    k.client.create("deployments.apps", body)


def scale(k: FakeKubelets, rng: Random) -> None:
    patch = {"spec": {"replicas": rng.randint(0, 6)}}
    k.client.patch("deployments.apps", rng.choice(NAMES), "default", patch, subresource="scale")


def image(k: FakeKubelets, rng: Random) -> None:
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": rng.choice(IMAGES)}]}}}}
    k.client.patch("deployments.apps", rng.choice(NAMES), "default", patch, kind="strategic")


def pause(k: FakeKubelets, rng: Random) -> None:
    patch = {"spec": {"paused": rng.choice([True, None])}}
    k.client.patch("deployments.apps", rng.choice(NAMES), "default", patch)


def kill(k: FakeKubelets, rng: Random) -> None:
    pods = k.client.list("pods", "default")
    if pods:
        k.client.delete("pods", rng.choice(pods)["metadata"]["name"], "default")


def remove(k: FakeKubelets, rng: Random) -> None:
    how: Any = rng.choice(["Background", "Foreground"])
    k.client.delete("deployments.apps", rng.choice(NAMES), "default", propagation=how)


def cordon(k: FakeKubelets, rng: Random) -> None:
    k.client.patch("nodes", rng.choice(["n1", "n2"]), "", {"spec": {"unschedulable": rng.choice([True, None])}})


def think(k: FakeKubelets, rng: Random) -> None:
    k.plane.run(k.plane.now)


def work(k: FakeKubelets, rng: Random) -> None:
    k.step()


def wait(k: FakeKubelets, rng: Random) -> None:
    k.advance(k.plane.now + rng.choice([1.0, 7.0, 40.0]))


MOVES = (create, create, scale, image, image, pause, kill, remove, cordon, think, think, work, work, wait)


def play(k: FakeKubelets, seed: int, steps: int = STEPS) -> None:
    rng = Random(seed)
    for _ in range(steps):
        try:
            rng.choice(MOVES)(k, rng)
        except ApiError as error:
            assert error.code in (404, 409, 422), error
        check_always(k)


def check_always(k: FakeKubelets) -> None:
    revisions = [int(o["metadata"]["resourceVersion"]) for r in k.plane.store.resources() for o in k.client.list(r)]
    assert k.plane.defects == []
    assert max(revisions) <= k.plane.revision and len(set(revisions)) == len(revisions)


def come_to_rest(k: FakeKubelets) -> None:
    for name in ("n1", "n2"):
        k.client.patch("nodes", name, "", {"spec": {"unschedulable": None}})
    for found in k.client.list("deployments.apps", "default"):
        patch = {"spec": {"paused": None, "template": {"spec": {"containers": [{"name": "c", "image": "app:9"}]}}}}
        k.client.patch("deployments.apps", found["metadata"]["name"], "default", patch, kind="strategic")
    k.advance(k.plane.now + 30.0)


def check_rest(k: FakeKubelets) -> None:
    uids = {o["metadata"]["uid"]: o for r in ("deployments.apps", "replicasets.apps") for o in k.client.list(r)}
    pods = k.client.list("pods", "default")
    for found in [*k.client.list("replicasets.apps", "default"), *pods]:
        (ref,) = found["metadata"]["ownerReferences"]
        assert uids[ref["uid"]]["metadata"]["name"] == ref["name"]
        assert found["metadata"]["name"].startswith(ref["name"] + "-")
    for found in k.client.list("deployments.apps", "default"):
        wanted, name = found["spec"]["replicas"], found["metadata"]["name"]
        mine = [p for p in pods if p["metadata"]["labels"]["app"] == name]
        assert [p["spec"]["containers"][0]["image"] for p in mine] == ["app:9"] * wanted
        status = found["status"]
        assert (status.get("replicas", 0), status.get("availableReplicas", 0)) == (wanted, wanted)
        numbers = [
            int(s["metadata"]["annotations"]["deployment.kubernetes.io/revision"])
            for s in k.client.list("replicasets.apps", "default")
            if s["metadata"]["labels"]["app"] == name
        ]
        assert len(set(numbers)) == len(numbers)
        assert int(found["metadata"]["annotations"]["deployment.kubernetes.io/revision"]) == max(numbers)
    names = {d["metadata"]["name"] for d in k.client.list("deployments.apps", "default")}
    assert {p["metadata"]["labels"]["app"] for p in pods} <= names


@pytest.mark.parametrize("seed", range(8))
def test_any_history_comes_to_the_state_that_was_asked_for(seed: int) -> None:
    k = cluster(nodes=2, verdict=verdict)
    play(k, seed)
    come_to_rest(k)
    check_rest(k)


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_equal_histories_give_equal_bytes_even_through_a_save_at_any_moment(seed: int) -> None:
    first, second = cluster(nodes=2, verdict=verdict), cluster(nodes=2, verdict=verdict)
    play(first, seed, 15)
    play(second, seed, 15)
    assert contents(first.plane) == contents(second.plane)
    second = FakeKubelets(ControlPlane.load(codec.loads(codec.dumps(second.plane.save()))), verdict)
    second.serial, first.position, second.position = first.serial, -1, -1
    play(first, seed + 100, 15)
    play(second, seed + 100, 15)
    assert contents(first.plane) == contents(second.plane)
