"""Pods land where rules and room allow, and those that cannot are told why in the real words."""

from typing import Any

import pytest
from fake_kubelet import FakeKubelets, Obj, cluster, deployment
from hypothesis import given, settings
from hypothesis import strategies as st

from itbench.kube.scheduler.nodes import requests


def pod(name: str, cpu: str = "", labels: dict[str, str] | None = None, **spec: Any) -> Obj:
    container: Obj = {"name": "c", "image": "app:1"}
    if cpu:
        container["resources"] = {"requests": {"cpu": cpu}}
    meta = {"name": name, "namespace": "default", "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container], **spec}}


def told(k: FakeKubelets, name: str) -> str:
    """The PodScheduled message, which must equal the last FailedScheduling event."""
    found = k.client.get("pods", name, "default")
    (scheduled,) = [c for c in found["status"]["conditions"] if c["type"] == "PodScheduled"]
    assert (scheduled["status"], scheduled["reason"]) == ("False", "Unschedulable")
    events = [
        e
        for e in k.client.list("events", "default")
        if e["involvedObject"]["name"] == name and e["reason"] == "FailedScheduling"
    ]
    assert scheduled["message"] in {e["message"] for e in events}
    return str(scheduled["message"])


def where(k: FakeKubelets, name: str) -> str:
    return str(k.client.get("pods", name, "default")["spec"].get("nodeName", ""))


HELPLESS = (
    " no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
)
NOBODY = (
    " no new claims to deallocate, preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod."
)
ANTI = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}
        ]
    }
}
NEAR = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "nobody"}}}
        ]
    }
}


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (pod("p", cpu="100"), "0/3 nodes are available: 3 Insufficient cpu." + HELPLESS),
        (pod("p", cpu="3"), "0/3 nodes are available: 3 Insufficient cpu." + NOBODY),
        (
            pod("p", nodeSelector={"disk": "ssd"}),
            "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector." + HELPLESS,
        ),
        (pod("p", affinity=NEAR), "0/3 nodes are available: 3 node(s) didn't match pod affinity rules." + HELPLESS),
        (
            pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "nope"}}]),
            '0/3 nodes are available: persistentvolumeclaim "nope" not found. not found',
        ),
        (
            pod("p", cpu="3", preemptionPolicy="Never"),
            "0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate, preemption: not eligible due to "
            "preemptionPolicy=Never.",
        ),
    ],
    ids=["too big", "full", "selector", "affinity", "claim", "never"],
)
def test_an_unschedulable_pod_is_told_why(body: Obj, sentence: str) -> None:
    k = cluster()
    for index in range(3):
        k.client.create("pods", pod(f"filler-{index}", cpu="2"))
    k.settle()
    if "preemptionPolicy" in body["spec"]:
        body = {**body, "spec": {k_: v for k_, v in body["spec"].items() if k_ != "preemptionPolicy"}}
        k.client.create("priorityclasses.scheduling.k8s.io", priority("polite", 5, "Never"))
        body["spec"]["priorityClassName"] = "polite"
        k.settle()
    k.client.create("pods", body)
    k.settle()
    assert told(k, "p") == sentence


def priority(name: str, value: int, policy: str = "PreemptLowerPriority") -> Obj:
    meta = {"name": name}
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": meta,
        "value": value,
        "preemptionPolicy": policy,
    }


def test_anti_affinity_leaves_the_fourth_replica_pending() -> None:
    k = cluster()
    spec = deployment("x", 4)
    spec["spec"]["template"]["spec"]["affinity"] = ANTI
    k.client.create("deployments.apps", spec)
    k.settle()
    pods = k.client.list("pods", "default")
    assert sorted(p["spec"].get("nodeName", "") for p in pods) == ["", "n1", "n2", "n3"]
    (waiting,) = [p["metadata"]["name"] for p in pods if not p["spec"].get("nodeName")]
    assert told(k, waiting) == "0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules." + NOBODY


def test_taints_and_cordons_are_named_and_their_removal_helps() -> None:
    k = cluster(nodes=2)
    k.client.patch("nodes", "n1", "", {"spec": {"unschedulable": True}})
    k.client.patch(
        "nodes", "n2", "", {"spec": {"taints": [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}]}}
    )
    k.settle()
    k.client.create("pods", pod("p"))
    k.settle()
    head = "0/2 nodes are available: "
    assert told(k, "p").startswith(head + "1 node(s) had untolerated taint(s), 1 node(s) were unschedulable. no new")
    k.client.patch("nodes", "n1", "", {"spec": {"unschedulable": None}})
    k.advance(3.0)
    assert where(k, "p") == "n1"


def test_a_pod_waits_for_a_node_that_comes_later() -> None:
    k = cluster(nodes=0)
    k.client.create("pods", pod("p"))
    k.settle()
    assert told(k, "p") == "no nodes available to schedule pods"
    k.add_nodes("n9")
    k.advance(5.0)
    assert where(k, "p") == "n9"


def test_the_important_pod_evicts_the_cheapest_victims() -> None:
    k = cluster(nodes=2)
    for index in range(4):
        k.client.create("pods", pod(f"low-{index}", cpu="1900m"))
    k.settle()
    k.client.create("priorityclasses.scheduling.k8s.io", priority("high", 1000))
    k.settle()
    k.client.create("pods", pod("high", cpu="1500m", priorityClassName="high"))
    k.advance(5.0)
    assert where(k, "high")
    preempted = [e for e in k.client.list("events", "default") if e["reason"] == "Preempted"]
    uid = k.client.get("pods", "high", "default")["metadata"]["uid"]
    assert [e["message"] for e in preempted] == [f"Preempted by pod {uid} on node {where(k, 'high')}"]
    assert sum(p["metadata"]["name"].startswith("low") for p in k.client.list("pods", "default")) == 3


def test_hard_spread_keeps_the_skew_and_soft_spread_prefers_it() -> None:
    k = cluster()
    spec = deployment("web", 7)
    spec["spec"]["template"]["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
    ]
    k.client.create("deployments.apps", spec)
    k.client.create("deployments.apps", deployment("plain", 6))
    k.settle()
    for name, counts in (("web", [2, 2, 3]), ("plain", [2, 2, 2])):
        nodes = [p["spec"]["nodeName"] for p in k.client.list("pods", "default", labels=f"app={name}")]
        assert sorted(nodes.count(n) for n in ("n1", "n2", "n3")) == counts


def test_gated_pods_wait_for_their_gates() -> None:
    k = cluster(nodes=1)
    k.client.create("pods", pod("p", schedulingGates=[{"name": "a.b/c"}]))
    k.settle()
    assert where(k, "p") == ""
    k.client.patch("pods", "p", "default", {"spec": {"schedulingGates": None}})
    k.settle()
    assert where(k, "p") == "n1"


def test_scheduled_events_have_the_form_of_the_newer_api() -> None:
    k = cluster(nodes=1)
    k.client.create("pods", pod("p"))
    k.settle()
    (event,) = [e for e in k.client.list("events", "default") if e["reason"] == "Scheduled"]
    assert event["message"] == "Successfully assigned default/p to n1"
    assert event["reportingComponent"] == "default-scheduler" and event["action"] == "Binding"
    assert event["eventTime"] == "2026-01-12T08:00:00.000000Z" and not event.get("firstTimestamp")


def test_host_ports_are_taken_once_per_node() -> None:
    k = cluster(nodes=2)
    for index in range(3):
        body = pod(f"p{index}")
        body["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080}]
        k.client.create("pods", body)
    k.settle()
    assert sorted(where(k, f"p{i}") for i in range(3)) == ["", "n1", "n2"]
    waiting = next(f"p{i}" for i in range(3) if not where(k, f"p{i}"))
    assert told(k, waiting).startswith(
        "0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod ports."
    )


@settings(deadline=None, max_examples=15)
@given(st.lists(st.integers(1, 8), min_size=1, max_size=12), st.integers(1, 3))
def test_no_node_is_ever_filled_beyond_its_room(cpus: list[int], nodes: int) -> None:
    k = cluster(nodes=nodes)
    for index, cpu in enumerate(cpus):
        k.client.create("pods", pod(f"p{index}", cpu=f"{cpu * 500}m"))
    k.settle()
    used: dict[str, int] = {}
    for found in k.client.list("pods", "default"):
        used[found["spec"].get("nodeName", "")] = (
            used.get(found["spec"].get("nodeName", ""), 0) + requests(found)["cpu"]
        )
    waiting = [requests(p)["cpu"] for p in k.client.list("pods", "default") if not p["spec"].get("nodeName")]
    for name in (f"n{i + 1}" for i in range(nodes)):
        assert used.get(name, 0) <= 4000
        assert all(used.get(name, 0) + cpu > 4000 for cpu in waiting)


def test_requests_count_sidecars_with_containers_and_init_containers_by_their_peak() -> None:
    def part(cpu: str, **more: Any) -> Obj:
        return {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}, **more}

    body = pod("p")
    body["spec"]["containers"] = [part("100m"), part("200m")]
    body["spec"]["initContainers"] = [part("50m", restartPolicy="Always"), part("1")]
    assert requests(body) == {"cpu": 1050}
    body["spec"]["initContainers"][1] = part("10m")
    assert requests(body) == {"cpu": 350}


def test_room_that_was_made_is_kept_for_whom_it_was_made() -> None:
    k = cluster(nodes=1)
    body = deployment("low", 4)
    body["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    k.client.create("deployments.apps", body)
    k.client.create("priorityclasses.scheduling.k8s.io", priority("high", 1000))
    k.settle()
    k.client.create("pods", pod("high", cpu="2", priorityClassName="high"))
    k.advance(20.0)
    assert where(k, "high") == "n1"
    assert sum(e["reason"] == "Preempted" for e in k.client.list("events", "default")) == 2
    assert sorted(p["spec"].get("nodeName", "") for p in k.client.list("pods", "default", labels="app=low")) == [
        "",
        "",
        "n1",
        "n1",
    ]
