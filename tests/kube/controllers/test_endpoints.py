"""Endpoints and EndpointSlices show the pods behind a Service, their ports and their states."""

from typing import Any

from fake_kubelet import FakeKubelets, Obj, cluster, deployment


def service(k: FakeKubelets, name: str, **spec: Any) -> None:
    k.client.create(
        "services",
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"}, "spec": spec},
    )


def slices(k: FakeKubelets, name: str) -> list[Obj]:
    return k.client.list("endpointslices.discovery.k8s.io", "default", labels=f"kubernetes.io/service-name={name}")


def unready(pod: Obj) -> str:
    return "running" if pod["spec"]["containers"][0]["image"].startswith("unready") else "ready"


def test_a_slice_has_the_shape_labels_and_owner_of_a_real_one() -> None:
    k = cluster(nodes=0)
    k.add_nodes("n1", **{"topology.kubernetes.io/zone": "z1"})
    service(k, "web", selector={"app": "web"}, ports=[{"name": "http", "port": 80, "targetPort": "http"}])
    k.client.create("deployments.apps", deployment("web", 1))
    k.settle()
    (found,) = slices(k, "web")
    (pod,) = k.client.list("pods", "default")
    assert found["endpoints"] == [
        {
            "addresses": [pod["status"]["podIP"]],
            "conditions": {"ready": True, "serving": True, "terminating": False},
            "nodeName": "n1",
            "targetRef": {
                "kind": "Pod",
                "namespace": "default",
                "name": pod["metadata"]["name"],
                "uid": pod["metadata"]["uid"],
            },
            "zone": "z1",
        }
    ]
    assert found["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]
    assert found["metadata"]["name"].startswith("web-") and len(found["metadata"]["name"]) == 9
    assert found["metadata"]["labels"] == {
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    assert found["metadata"]["ownerReferences"][0]["kind"] == "Service"


def test_a_service_without_pods_has_one_empty_slice_and_empty_endpoints() -> None:
    k = cluster(nodes=1)
    service(k, "web", selector={"app": "nothing"}, ports=[{"port": 80}])
    k.settle()
    (found,) = slices(k, "web")
    assert not found.get("endpoints") and not found.get("ports")
    assert "subsets" not in k.client.get("endpoints", "web", "default")


def test_unready_pods_are_listed_apart_and_published_where_asked() -> None:
    k = cluster(nodes=1, verdict=unready)
    service(k, "web", selector={"app": "web"}, ports=[{"port": 80, "targetPort": 8080}])
    service(k, "peers", selector={"app": "web"}, ports=[{"port": 80}], clusterIP="None", publishNotReadyAddresses=True)
    k.client.create("deployments.apps", deployment("web", 1, image="unready:1"))
    k.settle()
    (plain,), (peers,) = slices(k, "web"), slices(k, "peers")
    assert plain["endpoints"][0]["conditions"] == {"ready": False, "serving": False, "terminating": False}
    assert peers["endpoints"][0]["conditions"] == {"ready": True, "serving": False, "terminating": False}
    assert peers["metadata"]["labels"]["service.kubernetes.io/headless"] == ""
    subset = k.client.get("endpoints", "web", "default")["subsets"][0]
    assert "addresses" not in subset and len(subset["notReadyAddresses"]) == 1


def test_a_terminating_pod_serves_but_is_not_ready() -> None:
    k = cluster(nodes=1)
    service(k, "web", selector={"app": "web"}, ports=[{"port": 80}])
    k.client.create("deployments.apps", deployment("web", 1))
    k.settle()
    k.client.delete("pods", k.client.list("pods", "default")[0]["metadata"]["name"], "default")
    k.plane.run(k.plane.now)
    states = [e["conditions"] for s in slices(k, "web") for e in s["endpoints"]]
    assert states == [{"ready": False, "serving": True, "terminating": True}]


def test_a_port_name_that_no_container_has_leaves_the_port_out() -> None:
    k = cluster(nodes=1)
    service(k, "web", selector={"app": "web"}, ports=[{"name": "x", "port": 80, "targetPort": "htpp"}])
    k.client.create("deployments.apps", deployment("web", 1))
    k.settle()
    (found,) = slices(k, "web")
    assert len(found["endpoints"]) == 1 and not found.get("ports")


def test_a_changed_selector_and_a_deleted_service_take_their_endpoints_with_them() -> None:
    k = cluster(nodes=1)
    service(k, "web", selector={"app": "web"}, ports=[{"port": 80}])
    k.client.create("deployments.apps", deployment("web", 2))
    k.settle()
    assert len(slices(k, "web")[0]["endpoints"]) == 2
    k.client.patch("services", "web", "default", {"spec": {"selector": {"app": "wbe"}}})
    k.settle()
    assert not slices(k, "web")[0].get("endpoints")
    k.client.delete("services", "web", "default")
    k.settle()
    assert slices(k, "web") == []
    assert [e["metadata"]["name"] for e in k.client.list("endpoints", "default")] == ["kubernetes"]
