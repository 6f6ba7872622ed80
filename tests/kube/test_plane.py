"""The control plane as a whole: bootstrap, determinism, saving, coming to rest, audit."""

import orjson
import pytest
from fake_kubelet import FakeKubelets, cluster, deployment

from itbench.core import codec
from itbench.core.errors import EnvironmentFault
from itbench.core.ids import Ids
from itbench.kube.plane import ControlPlane


def contents(plane: ControlPlane) -> bytes:
    return orjson.dumps(
        {r: [e.object for e in plane.store.list(r)] for r in plane.store.resources()}, option=orjson.OPT_SORT_KEYS
    )


def test_a_fresh_plane_has_what_a_fresh_cluster_has() -> None:
    client = ControlPlane(ids=Ids(1)).client("test")
    spaces = [n["metadata"]["name"] for n in client.list("namespaces")]
    assert spaces == ["default", "kube-node-lease", "kube-public", "kube-system"]
    for space in spaces:
        assert [s["metadata"]["name"] for s in client.list("serviceaccounts", space)].count("default") == 1
        assert client.get("configmaps", "kube-root-ca.crt", space)["data"]["ca.crt"].startswith("-----BEGIN CERT")
    proxies = client.get("configmaps", "extension-apiserver-authentication", "kube-system")["data"]
    assert proxies["requestheader-allowed-names"] == '["front-proxy-client"]'
    assert {key for key, text in proxies.items() if "BEGIN CERT" in text} == {
        "client-ca-file",
        "requestheader-client-ca-file",
    }
    assert client.get("services", "kubernetes", "default")["spec"]["clusterIP"] == "10.96.0.1"
    assert [p["value"] for p in client.list("priorityclasses.scheduling.k8s.io")] == [2000000000, 2000001000]
    admin = client.get("clusterroles.rbac.authorization.k8s.io", "admin")
    assert any("deployments" in rule["resources"] for rule in admin["rules"])


def test_equal_seeds_and_requests_give_equal_bytes_and_other_seeds_other_names() -> None:
    def play(seed: int) -> bytes:
        k = cluster(seed=seed)
        k.client.create("deployments.apps", deployment("web", 5))
        k.advance(20.0)
        k.client.delete("pods", k.client.list("pods", "default")[0]["metadata"]["name"], "default")
        k.advance(40.0)
        return contents(k.plane)

    first = play(3)
    assert first == play(3)
    assert first != play(4)


def test_a_plane_saved_in_mid_rollout_goes_on_as_the_original() -> None:
    k = cluster()
    k.client.create("deployments.apps", deployment("web", 6))
    k.settle()
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "app:2"}]}}}}
    k.client.patch("deployments.apps", "web", "default", patch, kind="strategic")
    k.plane.run(k.plane.now)
    k.step()
    saved = codec.dumps(k.plane.save())
    other = FakeKubelets(ControlPlane.load(codec.loads(saved)))
    # The change log is not saved: both kubelets list again.
    k.position, other.position, other.serial = -1, -1, k.serial
    assert codec.dumps(other.plane.save()) == saved
    for kubelets in (k, other):
        kubelets.client.create("deployments.apps", deployment("late", 2))
        kubelets.advance(100.0)
    assert contents(k.plane) == contents(other.plane)
    assert codec.dumps(k.plane.save()) == codec.dumps(other.plane.save())


def test_running_without_work_changes_nothing() -> None:
    k = cluster()
    revision, due = k.plane.revision, k.plane.due()
    k.plane.run(k.plane.now + 5.0)
    assert (k.plane.revision, k.plane.due(), k.plane.now) == (revision, due, 5.0)


def test_due_is_now_while_changes_wait_and_the_next_timer_afterwards() -> None:
    k = cluster(nodes=1)
    assert k.plane.due() == 50.0
    k.client.create("deployments.apps", deployment("web", 1))
    assert k.plane.due() == k.plane.now


def test_two_who_undo_each_others_work_are_named() -> None:
    k = cluster(nodes=0)

    def undo(write: object) -> None:
        if write.key == "deployments.apps" and write.subresource == "status":  # type: ignore[attr-defined]
            write.object["status"]["replicas"] = k.plane.revision  # type: ignore[attr-defined]

    k.plane.registry.mutating.append(undo)
    k.client.create("deployments.apps", deployment("web", 1))
    with pytest.raises(EnvironmentFault, match=r"do not come to rest: 'deployment-controller reconciled default/web"):
        k.settle()


def test_only_requests_of_people_are_audited() -> None:
    plane = ControlPlane(ids=Ids(1))
    assert plane.audit == []
    client = plane.client("kubectl", "oncall")
    client.create(
        "configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}
    )
    client.patch("configmaps", "a", "default", {"data": {"x": "1"}})
    client.delete("configmaps", "a", "default")
    client.list("pods", "default")
    seen = [(r.user, r.verb, r.resource, r.name, bool(r.before), bool(r.after), r.code) for r in plane.audit]
    assert seen == [
        ("oncall", "create", "configmaps", "a", False, True, 200),
        ("oncall", "patch", "configmaps", "a", True, True, 200),
        ("oncall", "delete", "configmaps", "a", True, False, 200),
        ("oncall", "list", "pods", "", False, False, 200),
    ]
    assert ControlPlane.load(plane.save()).audit == plane.audit


def test_a_controller_that_breaks_is_noted_and_the_others_go_on() -> None:
    k = cluster()
    k.client.create("deployments.apps", deployment("web", 1))
    k.settle()
    broken = {"timeAdded": "2026-01-12T08:00:00Z", "key": "k", "effect": "NoExecute"}
    k.client.patch("nodes", "n1", "", {"spec": {"taints": [broken]}})

    def break_taints(write: object) -> None:
        if write.key == "nodes" and write.object["spec"].get("taints"):  # type: ignore[attr-defined]
            raise ZeroDivisionError("of the test")

    k.plane.registry.mutating.append(break_taints)
    k.client.create("deployments.apps", deployment("other", 1))
    k.client.patch("deployments.apps", "other", "default", {"spec": {"replicas": 2}}, subresource="scale")
    k.down |= {"n1", "n2", "n3"}
    k.advance(120.0)
    assert len(k.client.list("pods", "default", labels="app=other")) == 2
    assert k.plane.defects and all(text.startswith("node-lifecycle-controller /n") for text in k.plane.defects)
