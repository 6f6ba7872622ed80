"""Nodes that fall silent, taints, evictions, and pods whose node is gone."""

from fake_kubelet import FakeKubelets, Obj, cluster, deployment


def ready_of(obj: Obj) -> Obj:
    return next(c for c in obj["status"]["conditions"] if c["type"] == "Ready")


def taints(k: FakeKubelets, name: str) -> list[tuple[str, str]]:
    return [(t["key"].split("/")[1], t["effect"]) for t in k.client.get("nodes", name)["spec"].get("taints", [])]


def said(k: FakeKubelets, reason: str) -> list[str]:
    return [e["message"] for e in k.client.list("events") if e["reason"] == reason]


def test_a_new_node_is_registered_and_annotated() -> None:
    k = cluster(nodes=1)
    assert said(k, "RegisteredNode") == ["Node n1 event: Registered Node n1 in Controller"]
    assert k.client.get("nodes", "n1")["metadata"]["annotations"] == {"node.alpha.kubernetes.io/ttl": "0"}


def test_a_silent_node_turns_unknown_after_its_grace_and_its_pods_leave_after_their_tolerance() -> None:
    k = cluster()
    k.client.create("deployments.apps", deployment("web", 3))
    k.settle()
    k.down.add("n3")
    k.advance(49.0)
    assert ready_of(k.client.get("nodes", "n3"))["status"] == "True"
    k.advance(51.0)
    condition = ready_of(k.client.get("nodes", "n3"))
    assert (condition["status"], condition["reason"]) == ("Unknown", "NodeStatusUnknown")
    assert condition["message"] == "Kubelet stopped posting node status."
    assert taints(k, "n3") == [("unreachable", "NoSchedule"), ("unreachable", "NoExecute")]
    (lost,) = [p for p in k.client.list("pods", "default") if p["spec"]["nodeName"] == "n3"]
    assert ready_of(lost)["status"] == "False"
    assert said(k, "NodeNotReady") == ["Node n3 status is now: NodeNotReady", "Node is not ready"] or set(
        said(k, "NodeNotReady")
    ) == {"Node n3 status is now: NodeNotReady", "Node is not ready"}
    k.advance(349.0)
    assert "deletionTimestamp" not in k.client.get("pods", lost["metadata"]["name"], "default")["metadata"]
    k.advance(351.0)
    gone = k.client.get("pods", lost["metadata"]["name"], "default")
    assert gone["metadata"]["deletionTimestamp"]
    target = next(c for c in gone["status"]["conditions"] if c["type"] == "DisruptionTarget")
    assert (target["reason"], target["message"]) == (
        "DeletionByTaintManager",
        "Taint manager: deleting due to NoExecute taint",
    )
    assert said(k, "TaintManagerEviction") == [f"Marking for deletion Pod default/{lost['metadata']['name']}"]
    alive = [p for p in k.client.list("pods", "default") if not p["metadata"].get("deletionTimestamp")]
    assert len(alive) == 3 and {p["spec"]["nodeName"] for p in alive} <= {"n1", "n2"}


def test_a_node_that_comes_back_loses_its_taints_and_cancels_evictions() -> None:
    k = cluster()
    k.client.create("deployments.apps", deployment("web", 3))
    k.settle()
    k.down.add("n3")
    k.advance(100.0)
    assert taints(k, "n3")
    k.down.clear()
    node = k.client.get("nodes", "n3")
    conditions = [c if c["type"] != "Ready" else {**c, "status": "True"} for c in node["status"]["conditions"]]
    k.client.patch("nodes", "n3", "", {"status": {"conditions": conditions}}, subresource="status")
    k.renew("n3")
    k.advance(400.0)
    assert taints(k, "n3") == []
    assert said(k, "TaintManagerEviction")[0].startswith("Cancelling deletion of Pod default/web-")
    assert len(k.client.list("pods", "default")) == 3


def test_nothing_is_evicted_while_the_whole_cluster_is_silent() -> None:
    k = cluster()
    k.client.create("deployments.apps", deployment("web", 3))
    k.settle()
    k.down |= {"n1", "n2", "n3"}
    k.advance(600.0)
    assert all(effect == "NoSchedule" for n in ("n1", "n2", "n3") for _, effect in taints(k, n)[:1])
    assert sum(("unreachable", "NoExecute") in taints(k, n) for n in ("n1", "n2", "n3")) == 0


def test_pods_of_a_deleted_node_are_collected_within_a_minute() -> None:
    k = cluster()
    k.client.create("deployments.apps", deployment("web", 3))
    k.advance(13.0)
    k.client.delete("nodes", "n3")
    k.down.add("n3")
    k.advance(59.0)
    assert any(p["spec"].get("nodeName") == "n3" for p in k.client.list("pods", "default"))
    k.advance(75.0)
    assert all(p["spec"].get("nodeName") in ("n1", "n2") for p in k.client.list("pods", "default"))
    assert len(k.client.list("pods", "default")) == 3


def test_cordon_is_a_taint_and_pressure_is_too() -> None:
    k = cluster(nodes=2)
    k.client.patch("nodes", "n1", "", {"spec": {"unschedulable": True}})
    ready = ready_of(k.client.get("nodes", "n2"))
    pressure = {"type": "MemoryPressure", "status": "True"}
    k.client.patch("nodes", "n2", "", {"status": {"conditions": [ready, pressure]}}, subresource="status")
    k.settle()
    assert taints(k, "n1") == [("unschedulable", "NoSchedule")]
    assert taints(k, "n2") == [("memory-pressure", "NoSchedule")]
    k.client.patch("nodes", "n1", "", {"spec": {"unschedulable": None}})
    k.settle()
    assert taints(k, "n1") == []


def test_a_taint_that_somebody_sets_evicts_after_the_tolerated_time() -> None:
    k = cluster(nodes=2)
    body = deployment("web", 2)
    spec = body["spec"]["template"]["spec"]
    spec["tolerations"] = [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 20}]
    k.client.create("deployments.apps", body)
    k.advance(5.0)
    k.client.patch("nodes", "n1", "", {"spec": {"taints": [{"key": "k", "value": "v", "effect": "NoExecute"}]}})
    before = {p["metadata"]["name"] for p in k.client.list("pods", "default")}
    k.advance(24.0)
    assert {p["metadata"]["name"] for p in k.client.list("pods", "default")} == before
    k.advance(26.0)
    assert len(before - {p["metadata"]["name"] for p in k.client.list("pods", "default")}) == 1
