"""Deployments roll, scale, pause, fail and remember as on a real control plane."""

import re
from typing import Any

import pytest
from fake_kubelet import FakeKubelets, Obj, cluster, deployment
from hypothesis import given
from hypothesis import strategies as st

from itbench.kube.controllers.base import stable_hash
from itbench.kube.controllers.deployment.scaling import fenceposts, new_size, old_sizes, proportional_sizes, size


def image_of(pod: Obj) -> str:
    return str(pod["spec"]["containers"][0]["image"])


def by_image(pod: Obj) -> str:
    """The image decides how a pod fares: `stuck:*` never starts, `unready:*` never becomes ready."""
    name = image_of(pod).split(":")[0]
    return {"stuck": "stuck", "unready": "running"}.get(name, "ready")


def set_image(k: FakeKubelets, name: str, image: str) -> None:
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}}
    k.client.patch("deployments.apps", name, "default", patch, kind="strategic")


def sets(k: FakeKubelets, name: str) -> dict[int, Obj]:
    found = {}
    for obj in k.client.list("replicasets.apps", "default"):
        if obj["metadata"]["ownerReferences"][0]["name"] == name:
            found[int(obj["metadata"]["annotations"]["deployment.kubernetes.io/revision"])] = obj
    return found


def conditions(k: FakeKubelets, name: str) -> list[tuple[str, str, str]]:
    status = k.client.get("deployments.apps", name, "default")["status"]
    return [(c["type"], c["status"], c["reason"]) for c in status["conditions"]]


def messages(k: FakeKubelets, reason: str) -> list[str]:
    return [e["message"] for e in k.client.list("events", "default") if e["reason"] == reason]


def test_a_new_deployment_ends_with_the_status_and_annotations_of_a_real_one() -> None:
    k = cluster()
    k.client.create("deployments.apps", deployment("web"))
    k.settle()
    web = k.client.get("deployments.apps", "web", "default")
    assert {key: value for key, value in web["status"].items() if key != "conditions"} == {
        "observedGeneration": 1,
        "replicas": 3,
        "updatedReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
    }
    assert web["metadata"]["generation"] == 1
    assert web["metadata"]["annotations"] == {"deployment.kubernetes.io/revision": "1"}
    assert conditions(k, "web") == [
        ("Available", "True", "MinimumReplicasAvailable"),
        ("Progressing", "True", "NewReplicaSetAvailable"),
    ]
    (owned,) = sets(k, "web").values()
    assert owned["metadata"]["annotations"] == {
        "deployment.kubernetes.io/desired-replicas": "3",
        "deployment.kubernetes.io/max-replicas": "4",
        "deployment.kubernetes.io/revision": "1",
    }
    digest = owned["metadata"]["labels"]["pod-template-hash"]
    assert owned["metadata"]["name"] == f"web-{digest}" and len(digest) <= 10
    assert messages(k, "ScalingReplicaSet") == [f"Scaled up replica set web-{digest} from 0 to 3"]


def test_a_rollout_never_exceeds_the_surge_nor_undercuts_availability() -> None:
    k = cluster(verdict=by_image)
    k.client.create("deployments.apps", deployment("web", 8))
    k.settle()
    set_image(k, "web", "app:2")
    for _ in range(60):
        k.plane.run(k.plane.now)
        pods = [p for p in k.client.list("pods", "default") if not p["metadata"].get("deletionTimestamp")]
        ready = [
            p for p in pods if any(c["type"] == "Ready" and c["status"] == "True" for c in p["status"]["conditions"])
        ]
        assert len(pods) <= 10 and len(ready) >= 6
        if not k.step():
            break
    assert {image_of(p) for p in k.client.list("pods", "default")} == {"app:2"}
    assert {n: size(s) for n, s in sets(k, "web").items()} == {1: 0, 2: 8}


def test_a_stuck_rollout_times_out_one_second_after_its_deadline_and_undo_recovers() -> None:
    k = cluster(verdict=by_image)
    k.client.create("deployments.apps", deployment("web", 4, progressDeadlineSeconds=60))
    k.settle()
    set_image(k, "web", "unready:2")
    k.settle()
    assert {n: size(s) for n, s in sets(k, "web").items()} == {1: 3, 2: 2}
    k.advance(60.0)
    assert ("Progressing", "True", "ReplicaSetUpdated") in conditions(k, "web")
    k.advance(61.5)
    assert conditions(k, "web")[-1] == ("Progressing", "False", "ProgressDeadlineExceeded")
    set_image(k, "web", "app:1")
    k.settle()
    assert conditions(k, "web")[-1] == ("Progressing", "True", "NewReplicaSetAvailable")
    assert {n: size(s) for n, s in sets(k, "web").items()} == {2: 0, 3: 4}
    history = sets(k, "web")[3]["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"]
    assert history == "1"


def test_recreate_waits_until_the_last_old_pod_is_gone() -> None:
    k = cluster()
    k.client.create("deployments.apps", deployment("web", 2, strategy={"type": "Recreate"}))
    k.settle()
    set_image(k, "web", "app:2")
    k.plane.run(k.plane.now)
    assert {image_of(p) for p in k.client.list("pods", "default")} == {"app:1"}
    assert all(p["metadata"].get("deletionTimestamp") for p in k.client.list("pods", "default"))
    k.settle()
    assert [image_of(p) for p in k.client.list("pods", "default")] == ["app:2", "app:2"]


def test_a_paused_deployment_scales_but_does_not_roll() -> None:
    k = cluster()
    k.client.create("deployments.apps", deployment("web", 2))
    k.settle()
    k.client.patch("deployments.apps", "web", "default", {"spec": {"paused": True}})
    set_image(k, "web", "app:2")
    k.client.patch("deployments.apps", "web", "default", {"spec": {"replicas": 5}}, subresource="scale")
    k.settle()
    assert {image_of(p) for p in k.client.list("pods", "default")} == {"app:1"}
    assert len(k.client.list("pods", "default")) == 5
    assert ("Progressing", "Unknown", "DeploymentPaused") in conditions(k, "web")
    k.client.patch("deployments.apps", "web", "default", {"spec": {"paused": None}})
    k.settle()
    assert {image_of(p) for p in k.client.list("pods", "default")} == {"app:2"}


def test_history_beyond_the_limit_is_deleted_oldest_first() -> None:
    k = cluster()
    k.client.create("deployments.apps", deployment("web", 1, revisionHistoryLimit=2))
    for number in range(2, 7):
        k.settle()
        set_image(k, "web", f"app:{number}")
    k.settle()
    assert sorted(sets(k, "web")) == [4, 5, 6]


def test_replicas_refused_by_a_quota_show_as_replica_failure_and_as_combined_events() -> None:
    k = cluster()
    quota = {"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": {"pods": "2"}}}
    k.client.create("resourcequotas", {"apiVersion": "v1", "kind": "ResourceQuota", **quota})
    k.settle()
    k.client.create("deployments.apps", deployment("web", 3))
    k.advance(30.0)
    found = {c[0]: c for c in conditions(k, "web")}
    assert found["ReplicaFailure"][1:] == ("True", "FailedCreate")
    texts = messages(k, "FailedCreate")
    assert (
        len(texts) == 10 and sum(t.startswith("(combined from similar events): Error creating: ") for t in texts) == 1
    )
    k.client.delete("resourcequotas", "q", "default")
    k.advance(60.0)
    assert "ReplicaFailure" not in {c[0] for c in conditions(k, "web")}


def test_an_orphaned_replica_set_is_adopted_and_its_pods_survive() -> None:
    k = cluster()
    k.client.create("deployments.apps", deployment("web", 2))
    k.settle()
    before = {p["metadata"]["uid"] for p in k.client.list("pods", "default")}
    k.client.delete("deployments.apps", "web", "default", propagation="Orphan")
    k.settle()
    assert "ownerReferences" not in k.client.list("replicasets.apps", "default")[0]["metadata"]
    k.client.create("deployments.apps", deployment("web", 2))
    k.settle()
    assert {p["metadata"]["uid"] for p in k.client.list("pods", "default")} == before
    assert len(sets(k, "web")) == 1


def fake(replicas: int, **strategy: Any) -> Obj:
    return {"metadata": {"generation": 1}, "spec": {"replicas": replicas, "strategy": {"rollingUpdate": strategy}}}


def fake_set(name: str, replicas: int, available: int, maximum: int = 0) -> Obj:
    annotations = {"deployment.kubernetes.io/max-replicas": str(maximum)} if maximum else {}
    meta = {"name": name, "creationTimestamp": f"2026-01-12T08:00:0{len(name)}Z", "annotations": annotations}
    return {"metadata": meta, "spec": {"replicas": replicas}, "status": {"availableReplicas": available}}


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        (10, "25%", "25%", (3, 2)),
        (1, "25%", "25%", (1, 0)),
        (4, 0, 0, (0, 1)),
        (3, 2, "50%", (2, 1)),
        (0, "25%", "25%", (0, 1)),
    ],
)
def test_fenceposts_round_surge_up_and_unavailable_down(
    replicas: int, surge: Any, unavailable: Any, expected: Any
) -> None:
    assert fenceposts(fake(replicas, maxSurge=surge, maxUnavailable=unavailable)) == expected


@given(
    replicas=st.integers(1, 30),
    surge=st.integers(0, 10),
    unavailable=st.integers(0, 10),
    old=st.integers(0, 30),
    new=st.integers(0, 30),
    ready=st.data(),
)
def test_no_step_of_the_arithmetic_breaks_the_limits(
    replicas: int, surge: int, unavailable: int, old: int, new: int, ready: Any
) -> None:
    target = fake(replicas, maxSurge=surge, maxUnavailable=unavailable)
    new = min(new, replicas)
    a = fake_set("a", old, ready.draw(st.integers(0, old)))
    b = fake_set("bb", new, ready.draw(st.integers(0, new)))
    grown = new_size(target, [a, b], b)
    surge, missing = fenceposts(target)
    assert new <= grown <= replicas
    assert grown == new or old + grown <= replicas + surge
    (left,) = old_sizes(target, b, [a])
    available = a["status"]["availableReplicas"]
    assert 0 <= left <= old
    lost = max(0, available - left)
    floor = min(replicas - min(missing, replicas), available + b["status"]["availableReplicas"])
    assert available - lost + b["status"]["availableReplicas"] >= floor


@given(old=st.integers(1, 40), new=st.integers(1, 40), wanted=st.integers(0, 80))
def test_proportional_scaling_fills_exactly_what_is_allowed(old: int, new: int, wanted: int) -> None:
    target = fake(wanted, maxSurge=3, maxUnavailable=2)
    both = [fake_set("a", old, old, old + new), fake_set("bb", new, 0, old + new)]
    sizes = proportional_sizes(target, both)
    assert sum(sizes.values()) == (wanted + 3 if wanted else 0)
    assert all(value >= 0 for value in sizes.values())


def test_nonsense_in_annotations_harms_nobody() -> None:
    k = cluster()
    k.client.create("deployments.apps", deployment("web", 3))
    k.settle()
    nonsense = {"deployment.kubernetes.io/revision": "x", "deployment.kubernetes.io/max-replicas": "y"}
    k.client.patch("deployments.apps", "web", "default", {"metadata": {"annotations": nonsense}})
    (owned,) = k.client.list("replicasets.apps", "default")
    k.client.patch("replicasets.apps", owned["metadata"]["name"], "default", {"metadata": {"annotations": nonsense}})
    for pod in k.client.list("pods", "default"):
        cost = {"controller.kubernetes.io/pod-deletion-cost": "cheap"}
        k.client.patch("pods", pod["metadata"]["name"], "default", {"metadata": {"annotations": cost}})
    set_image(k, "web", "app:2")
    k.settle()
    k.client.patch("deployments.apps", "web", "default", {"spec": {"replicas": 1}}, subresource="scale")
    k.settle()
    assert k.plane.defects == []
    assert [image_of(p) for p in k.client.list("pods", "default")] == ["app:2"]


@given(st.text())
def test_template_hashes_look_like_those_of_a_real_controller(template: str) -> None:
    """Up to ten characters, only of those that decimal digits map to, as seen on every real ReplicaSet."""
    assert re.fullmatch(r"[4-9bcdf]{1,10}", stable_hash(template, 0))
