"""Everything at once: sets, jobs, budgets, claims, services, namespaces and failing nodes in random order."""

from random import Random
from typing import Any

import orjson
import pytest
from fake_kubelet import FakeKubelets, Obj, cluster

from itbench.core import codec
from itbench.kube.client import ApiError
from itbench.kube.plane import ControlPlane

SPACES = ("default", "shop")
KINDS = {
    "deployments.apps": "Deployment",
    "statefulsets.apps": "StatefulSet",
    "daemonsets.apps": "DaemonSet",
    "jobs.batch": "Job",
    "cronjobs.batch": "CronJob",
    "services": "Service",
    "poddisruptionbudgets.policy": "PodDisruptionBudget",
    "resourcequotas": "ResourceQuota",
    "persistentvolumeclaims": "PersistentVolumeClaim",
}
VERSIONS = {"apps": "apps/v1", "batch": "batch/v1", "policy": "policy/v1", "": "v1"}


def verdict(pod: Obj) -> str:
    return {"done": "done", "fail": "fail", "slow": "running"}.get(pod["spec"]["containers"][0]["image"], "ready")


def template(rng: Random, app: str, **spec: Any) -> Obj:
    container: Obj = {"name": "c", "image": rng.choice(["app:1", "app:2", "slow"])}
    container["resources"] = {"requests": {"cpu": rng.choice(["100m", "1"])}}
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": [container], **spec}}


def spec_of(resource: str, rng: Random, app: str) -> Obj:
    selector = {"matchLabels": {"app": app}}
    end = template(rng, app, restartPolicy="Never")
    end["spec"]["containers"][0]["image"] = rng.choice(["done", "fail"])
    storage = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "standard",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    claims = [{"metadata": {"name": "d"}, "spec": storage}] if rng.random() < 0.3 else []
    return {
        "deployments.apps": {"replicas": rng.randint(0, 4), "selector": selector, "template": template(rng, app)},
        "statefulsets.apps": {
            "replicas": rng.randint(0, 3),
            "serviceName": app,
            "selector": selector,
            "template": template(rng, app),
            "volumeClaimTemplates": claims,
        },
        "daemonsets.apps": {"selector": selector, "template": template(rng, app)},
        "jobs.batch": {"completions": rng.randint(1, 3), "backoffLimit": 1, "template": end},
        "cronjobs.batch": {"schedule": "* * * * *", "jobTemplate": {"spec": {"backoffLimit": 0, "template": end}}},
        "services": {"selector": {"app": app}, "ports": [{"port": 80}]},
        "poddisruptionbudgets.policy": {"selector": selector, "minAvailable": rng.choice([1, "50%"])},
        "resourcequotas": {"hard": {"pods": str(rng.randint(3, 12))}},
        "persistentvolumeclaims": storage,
    }[resource]


def create(k: FakeKubelets, rng: Random) -> None:
    resource, space, app = rng.choice(sorted(KINDS)), rng.choice(SPACES), rng.choice("ab")
    group = resource.partition(".")[2]
    body = {"apiVersion": VERSIONS[group], "kind": KINDS[resource], "metadata": {"name": app, "namespace": space}}
    k.client.create(resource, {**body, "spec": spec_of(resource, rng, app)})


def change(k: FakeKubelets, rng: Random) -> None:
    resource = rng.choice(["deployments.apps", "statefulsets.apps", "daemonsets.apps"])
    space, app = rng.choice(SPACES), rng.choice("ab")
    patch: Obj = {"spec": {"template": template(rng, app)}}
    if resource != "daemonsets.apps":
        patch["spec"]["replicas"] = rng.randint(0, 4)
    k.client.patch(resource, app, space, patch, kind="strategic")


def delete(k: FakeKubelets, rng: Random) -> None:
    how: Any = rng.choice(["Background", "Foreground", "Orphan"])
    k.client.delete(rng.choice(sorted(KINDS)), rng.choice("ab"), rng.choice(SPACES), propagation=how)


def kill(k: FakeKubelets, rng: Random) -> None:
    pods = k.client.list("pods", rng.choice(SPACES))
    if pods:
        pod = rng.choice(pods)["metadata"]
        k.client.evict(pod["name"], pod["namespace"])


def space(k: FakeKubelets, rng: Random) -> None:
    if rng.random() < 0.5:
        k.client.delete("namespaces", "shop")
    else:
        k.client.create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})


def outage(k: FakeKubelets, rng: Random) -> None:
    if k.down:
        revive(k)
    else:
        k.down.add(rng.choice(["n1", "n2", "n3"]))


def revive(k: FakeKubelets) -> None:
    k.down.clear()
    k.position = -1
    for node in k.client.list("nodes"):
        others = [c for c in node["status"]["conditions"] if c["type"] != "Ready"]
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-12T08:00:00Z"}
        status = {"status": {"conditions": [*others, ready]}}
        k.client.patch("nodes", node["metadata"]["name"], "", status, subresource="status")
        k.renew(node["metadata"]["name"])


def wait(k: FakeKubelets, rng: Random) -> None:
    k.advance(k.plane.now + rng.choice([0.5, 5.0, 70.0]))


def work(k: FakeKubelets, rng: Random) -> None:
    k.plane.run(k.plane.now)
    k.step()


MOVES = (create, create, create, change, change, delete, kill, kill, space, outage, wait, work, work)


def play(k: FakeKubelets, seed: int, steps: int) -> None:
    rng = Random(seed)
    for _ in range(steps):
        try:
            rng.choice(MOVES)(k, rng)
        except ApiError as error:
            assert error.code in (400, 403, 404, 409, 422, 429), error
        assert k.plane.defects == []


def start() -> FakeKubelets:
    k = cluster(verdict=verdict)
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "standard"}}
    k.client.create(
        "storageclasses.storage.k8s.io",
        {**kind, "provisioner": "rancher.io/local-path", "volumeBindingMode": "WaitForFirstConsumer"},
    )
    return k


def contents(plane: ControlPlane) -> bytes:
    return orjson.dumps(
        {r: [e.object for e in plane.store.list(r)] for r in plane.store.resources()}, option=orjson.OPT_SORT_KEYS
    )


def check(k: FakeKubelets) -> None:
    everything = [o for r in k.plane.store.resources() for o in k.client.list(r)]
    uids = {o["metadata"]["uid"] for o in everything}
    spaces = {n["metadata"]["name"] for n in k.client.list("namespaces")}
    for obj in everything:
        refs = obj["metadata"].get("ownerReferences", [])
        assert not refs or any(ref["uid"] in uids for ref in refs), obj["metadata"]
        assert obj["metadata"].get("namespace", "default") in spaces, obj["metadata"]


@pytest.mark.parametrize("seed", range(6))
def test_no_mixture_of_requests_breaks_a_controller_or_leaves_orphans(seed: int) -> None:
    k = start()
    play(k, seed, 40)
    revive(k)
    k.advance(k.plane.now + 90.0)
    check(k)


@pytest.mark.parametrize("seed", [21, 22])
def test_a_copy_of_any_mixture_goes_on_like_the_original(seed: int) -> None:
    first = start()
    play(first, seed, 25)
    second = FakeKubelets(ControlPlane.load(codec.loads(codec.dumps(first.plane.save()))), verdict)
    second.serial, second.down, first.position, second.position = first.serial, set(first.down), -1, -1
    for k in (first, second):
        play(k, seed + 1, 20)
    assert contents(first.plane) == contents(second.plane)
