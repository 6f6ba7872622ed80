"""Discovery, OpenAPI, version and health: what clients read before anything else."""

from typing import Any

import pytest

from itbench.kube.discovery import wanted_version

V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
V2BETA1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"


@pytest.mark.parametrize(
    ("accept", "version"),
    [
        (f"{V2},{V2BETA1},application/json", "v2"),
        (f"{V2BETA1},application/json", "v2beta1"),
        ("application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io", "v2"),
        ("application/json", ""),
        ("application/json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList", ""),
        ("", ""),
    ],
)
def test_the_discovery_version_is_the_first_that_both_know(accept: str, version: str) -> None:
    """The wrong version would mean `the server doesn't have a resource type`."""
    assert wanted_version(accept) == version


@pytest.mark.parametrize(("accept", "version"), [(V2, "v2"), (V2BETA1, "v2beta1")])
async def test_aggregated_discovery_is_served_in_the_version_asked_for(site: Any, accept: str, version: str) -> None:
    """Content type, Vary and apiVersion name it; eviction, scale and token have the kinds of other groups."""
    core = await site.http("GET", "/api", headers={"Accept": accept})
    assert core.headers["Content-Type"] == accept
    assert core.headers["Vary"] == "Accept"
    assert core.json["apiVersion"] == f"apidiscovery.k8s.io/{version}"
    resources = {row["resource"]: row for row in core.json["items"][0]["versions"][0]["resources"]}
    subs = {row["subresource"]: row["responseKind"] for row in resources["pods"]["subresources"]}
    assert subs["eviction"] == {"group": "policy", "version": "v1", "kind": "Eviction"}
    assert resources["pods"]["responseKind"] == {"group": "", "version": "", "kind": "Pod"}
    groups = (await site.http("GET", "/apis", headers={"Accept": accept})).json
    names = [item["metadata"]["name"] for item in groups["items"]]
    assert {"apps", "metrics.k8s.io", "chaos-mesh.org"} <= set(names)
    scaling = next(item for item in groups["items"] if item["metadata"]["name"] == "autoscaling")
    assert [v["version"] for v in scaling["versions"]] == ["v2", "v1"]


async def test_plain_discovery_is_served_to_everybody_else(site: Any) -> None:
    """APIVersions, APIGroupList, APIGroup and APIResourceList."""
    assert (await site.http("GET", "/api")).json["versions"] == ["v1"]
    assert (await site.http("GET", "/apis")).json["kind"] == "APIGroupList"
    assert (await site.http("GET", "/apis/apps")).json["preferredVersion"]["groupVersion"] == "apps/v1"
    rows = {row["name"]: row for row in (await site.http("GET", "/api/v1")).json["resources"]}
    assert (rows["pods/eviction"]["group"], rows["pods/eviction"]["version"]) == ("policy", "v1")
    assert (await site.http("GET", "/apis/nosuch")).status == 404
    assert (await site.http("GET", "/apis/apps/v9")).status == 404


async def test_discovery_may_be_cached_by_its_tag(site: Any) -> None:
    """A second request with If-None-Match is answered 304 without body."""
    first = await site.http("GET", "/apis", headers={"Accept": V2})
    again = await site.http("GET", "/apis", headers={"Accept": V2, "If-None-Match": first.headers["ETag"]})
    assert (again.status, again.body) == (304, b"")


async def test_openapi_documents_serve_apply_and_explain(site: Any) -> None:
    """Patch operations name their parameters and kind; schemas have descriptions, merge keys and enums."""
    index = (await site.http("GET", "/openapi/v3")).json["paths"]
    assert index["apis/apps/v1"]["serverRelativeURL"].startswith("/openapi/v3/apis/apps/v1?hash=")
    document = (await site.http("GET", index["apis/apps/v1"]["serverRelativeURL"])).json
    patch = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert {row["name"] for row in patch["parameters"]} >= {"dryRun", "fieldManager", "fieldValidation", "force"}
    assert patch["x-kubernetes-group-version-kind"] == {"group": "apps", "version": "v1", "kind": "Deployment"}
    everywhere = document["paths"]["/apis/apps/v1/deployments"]["get"]
    assert everywhere["x-kubernetes-group-version-kind"]["kind"] == "Deployment"
    pods = document["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert pods["x-kubernetes-patch-merge-key"] == "name"
    assert pods["description"]
    assert (await site.http("GET", "/openapi/v3/apis/nosuch/v1")).status == 404


async def test_openapi_v2_is_there_for_old_and_new_clients(site: Any) -> None:
    """Protobuf gets an empty 200, which kubectl 1.27 needs; JSON gets a swagger 2.0 document."""
    accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    empty = await site.http("GET", "/openapi/v2", headers={"Accept": accept})
    assert (empty.status, empty.body) == (200, b"")
    assert empty.headers["Content-Type"] == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    full = (await site.http("GET", "/openapi/v2")).json
    assert full["swagger"] == "2.0"
    assert "io.k8s.api.core.v1.Pod" in full["definitions"]


async def test_version_and_health_answer(site: Any) -> None:
    """1.34, three health paths, a root with all paths, and 404 for the rest."""
    version = (await site.http("GET", "/version")).json
    assert (version["major"], version["minor"]) == ("1", "34")
    for path in ("/healthz", "/livez", "/readyz"):
        assert (await site.http("GET", path)).body == b"ok"
    assert "check passed" in (await site.http("GET", "/readyz?verbose")).body.decode()
    assert "/apis/apps/v1" in (await site.http("GET", "/")).json["paths"]
    lost = await site.http("GET", "/nosuch")
    assert (lost.status, lost.body) == (404, b"404 page not found\n")


CHECKS = {"healthz": 32, "livez": 32, "readyz": 35}


@pytest.mark.parametrize("name", CHECKS)
async def test_health_lists_its_checks_and_answers_for_each(site: Any, name: str) -> None:
    """Every check that is listed has a path of its own; what is left out says so; others are not found."""
    lines = (await site.http("GET", f"/{name}?verbose&exclude=etcd")).body.decode().splitlines()
    assert lines[:3] == ["[+]ping ok", "[+]log ok", "[+]etcd excluded: ok"]
    assert lines[-1] == f"{name} check passed"
    assert len(lines) == CHECKS[name] + 1
    for line in lines[:-1]:
        assert (await site.http("GET", f"/{name}/{line[3:].split()[0]}")).body == b"ok"
    assert (await site.http("GET", f"/{name}/nosuch")).status == 404
