"""Verbs over HTTP: codes, forms, bodies, options."""

from typing import Any

import pytest
import yaml

CM = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c1"}, "data": {"a": "1"}}
MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


async def test_an_object_is_created_read_changed_and_deleted(site: Any) -> None:
    """POST 201, GET, PATCH and PUT 200, DELETE answers a Status, then 404."""
    made = await site.http("POST", MAPS, CM)
    assert made.status == 201
    assert made.json["metadata"]["uid"]
    assert (await site.http("GET", f"{MAPS}/c1")).json["data"] == {"a": "1"}
    merge = {"Content-Type": "application/merge-patch+json"}
    patched = await site.http("PATCH", f"{MAPS}/c1", {"data": {"b": "2"}}, headers=merge)
    assert patched.json["data"] == {"a": "1", "b": "2"}
    put = await site.http("PUT", f"{MAPS}/c1", {**patched.json, "data": {"z": "9"}})
    assert (put.status, put.json["data"]) == (200, {"z": "9"})
    gone = await site.http("DELETE", f"{MAPS}/c1")
    assert (gone.status, gone.json["status"]) == (200, "Success")
    missing = await site.http("GET", f"{MAPS}/c1")
    assert (missing.status, missing.json["message"]) == (404, 'configmaps "c1" not found')


async def test_a_stale_update_is_a_conflict(site: Any) -> None:
    """A PUT with an old resourceVersion is 409 Conflict."""
    first = (await site.http("POST", MAPS, CM)).json
    await site.http("PUT", f"{MAPS}/c1", {**first, "data": {"b": "1"}})
    stale = await site.http("PUT", f"{MAPS}/c1", {**first, "data": {"c": "1"}})
    assert (stale.status, stale.json["reason"]) == (409, "Conflict")


async def test_dry_runs_keep_nothing(site: Any) -> None:
    """dryRun=All answers the object and stores none."""
    assert (await site.http("POST", f"{MAPS}?dryRun=All", CM)).status == 201
    assert (await site.http("GET", f"{MAPS}/c1")).status == 404
    assert (await site.http("POST", f"{MAPS}?dryRun=Some", CM)).status == 422


async def test_unknown_fields_are_errors_warnings_or_dropped(site: Any) -> None:
    """fieldValidation decides between 400, a Warning header, and silence."""
    odd = {**CM, "dota": {}}
    strict = await site.http("POST", f"{MAPS}?fieldValidation=Strict", odd)
    assert strict.status == 400
    assert 'unknown field "dota"' in strict.json["message"]
    warned = await site.http("POST", f"{MAPS}?fieldValidation=Warn", odd)
    assert warned.headers["Warning"] == '299 - "unknown field \\"dota\\""'
    quiet = await site.http("PUT", f"{MAPS}/c1?fieldValidation=Ignore", odd)
    assert "Warning" not in quiet.headers


async def test_the_manager_comes_from_the_user_agent(site: Any) -> None:
    """Without fieldManager the text before the slash of User-Agent owns the fields."""
    made = await site.http("POST", MAPS, CM, headers={"User-Agent": "my-tool/1.0 (linux)"})
    assert made.json["metadata"]["managedFields"][0]["manager"] == "my-tool"
    named = await site.http("PUT", f"{MAPS}/c1?fieldManager=boss", {**CM, "data": {"x": "y"}})
    assert {row["manager"] for row in named.json["metadata"]["managedFields"]} >= {"boss"}


async def test_bodies_may_be_yaml(site: Any) -> None:
    """A YAML body is read, times in it staying text; a YAML answer is given to who asks for it."""
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c1, annotations: {at: 2026-01-01T00:00:00Z}}\n"
    made = await site.http("POST", MAPS, text, headers={"Content-Type": "application/yaml"})
    assert made.json["metadata"]["annotations"] == {"at": "2026-01-01T00:00:00Z"}
    read = await site.http("GET", f"{MAPS}/c1", headers={"Accept": "application/yaml"})
    assert read.headers["Content-Type"] == "application/yaml"
    assert yaml.safe_load(read.body)["metadata"]["name"] == "c1"


@pytest.mark.parametrize(
    ("method", "path", "content", "code"),
    [
        ("POST", MAPS, "text/plain", 415),
        ("PATCH", f"{MAPS}/c1", "application/json", 415),
        ("POST", f"{MAPS}/c1", "application/json", 405),
        ("DELETE", "/api/v1/namespaces/default/pods/x/log", "application/json", 405),
        ("PUT", "/api/v1/namespaces/default/nosuch/x", "application/json", 404),
    ],
)
async def test_wrong_requests_have_the_code_of_a_real_server(
    site: Any, method: str, path: str, content: str, code: int
) -> None:
    """415 for unknown content, 405 for verbs that a resource has not, 404 for unknown resources."""
    answer = await site.http(method, path, CM, headers={"Content-Type": content})
    assert answer.status == code


async def test_a_body_that_is_no_object_is_a_bad_request(site: Any) -> None:
    """Broken JSON and JSON that is no object are 400 with a Status."""
    for body in (b"{", b"[1]", b"k8s\x00\xff\xff"):
        kind = "application/vnd.kubernetes.protobuf" if body.startswith(b"k8s") else "application/json"
        answer = await site.http("POST", MAPS, body, headers={"Content-Type": kind})
        assert (answer.status, answer.json["reason"]) == (400, "BadRequest")


async def test_an_unacceptable_form_is_406(site: Any) -> None:
    """Accept without any form that we serve is refused, as on a real server."""
    answer = await site.http("GET", MAPS, headers={"Accept": "text/html"})
    assert (answer.status, answer.json["reason"]) == (406, "NotAcceptable")


async def test_lists_have_kind_first_and_items_without_kind(site: Any) -> None:
    """Key order and item form are those of typed lists; limit and continue page through them."""
    for name in ("a", "b", "c"):
        await site.http("POST", MAPS, {**CM, "metadata": {"name": name, "labels": {"own": "yes"}}})
    full = await site.http("GET", f"{MAPS}?labelSelector=own%3Dyes")
    assert full.body.startswith(b'{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"')
    assert "kind" not in full.json["items"][0]
    page = (await site.http("GET", f"{MAPS}?limit=2")).json
    rest = (await site.http("GET", f"{MAPS}?limit=20&continue={page['metadata']['continue']}")).json
    names = [item["metadata"]["name"] for item in page["items"] + rest["items"]]
    assert names == ["a", "b", "c", "kube-root-ca.crt"]
    assert page["metadata"]["remainingItemCount"] == 2


async def test_selectors_are_checked(site: Any) -> None:
    """A field selector that a resource has not is the 400 that kubectl expects."""
    answer = await site.http("GET", f"{MAPS}?fieldSelector=foo%3Dbar")
    text = '"foo" is not a known field selector: only "metadata.name", "metadata.namespace"'
    assert (answer.status, answer.json["message"]) == (400, text)


async def test_tables_have_rows_with_metadata(site: Any) -> None:
    """The Table form has columns, and rows whose object is metadata, the whole object or nothing."""
    await site.http("POST", MAPS, CM)
    table = (await site.http("GET", MAPS, headers={"Accept": TABLE})).json
    assert table["kind"] == "Table"
    assert table["columnDefinitions"][0]["format"] == "name"
    row = next(row for row in table["rows"] if row["cells"][0] == "c1")
    assert row["object"]["kind"] == "PartialObjectMetadata"
    whole = (await site.http("GET", f"{MAPS}/c1?includeObject=Object", headers={"Accept": TABLE})).json
    assert whole["rows"][0]["object"]["data"] == {"a": "1"}


async def test_metadata_alone_is_served(site: Any) -> None:
    """PartialObjectMetadata for one object and for lists."""
    await site.http("POST", MAPS, CM)
    accept = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
    one = (await site.http("GET", f"{MAPS}/c1", headers=accept)).json
    assert (one["kind"], "data" in one) == ("PartialObjectMetadata", False)
    accept = {"Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}
    assert (await site.http("GET", MAPS, headers=accept)).json["kind"] == "PartialObjectMetadataList"


async def test_a_collection_is_deleted_by_selector(site: Any) -> None:
    """deletecollection removes what the selector names and answers the list of it."""
    for name, mark in (("a", "1"), ("b", "2")):
        await site.http("POST", MAPS, {**CM, "metadata": {"name": name, "labels": {"m": mark}}})
    answer = await site.http("DELETE", f"{MAPS}?labelSelector=m%3D1")
    assert [item["metadata"]["name"] for item in answer.json["items"]] == ["a"]
    assert (await site.http("GET", f"{MAPS}/a")).status == 404
    assert (await site.http("GET", f"{MAPS}/b")).status == 200


async def test_scale_is_a_subresource(site: Any) -> None:
    """GET and PATCH of scale speak autoscaling/v1."""
    path = "/apis/apps/v1/namespaces/default/deployments"
    await site.http("POST", path, _deployment("web"))
    assert (await site.http("GET", f"{path}/web/scale")).json["kind"] == "Scale"
    merge = {"Content-Type": "application/merge-patch+json"}
    scaled = await site.http("PATCH", f"{path}/web/scale", {"spec": {"replicas": 3}}, headers=merge)
    assert scaled.json["spec"] == {"replicas": 3}
    assert (await site.http("GET", f"{path}/web")).json["spec"]["replicas"] == 3


async def test_writes_settle_before_they_are_answered(site: Any) -> None:
    """After the answer to a create, its pods already run: staging with `wait: true` does not wait."""
    path = "/apis/apps/v1/namespaces/default/deployments"
    await site.http("POST", path, _deployment("web"))
    assert (await site.http("GET", f"{path}/web")).json["status"]["availableReplicas"] == 1


async def test_people_with_curl_get_indented_json(site: Any) -> None:
    """curl and browsers get pretty JSON unless they refuse it, programs compact JSON."""
    await site.http("POST", MAPS, CM)
    pretty = await site.http("GET", f"{MAPS}/c1", headers={"User-Agent": "curl/8.0"})
    assert b'\n  "kind"' in pretty.body
    assert b"\n" not in (await site.http("GET", f"{MAPS}/c1?pretty=false", headers={"User-Agent": "curl/8.0"})).body


async def test_an_eviction_ends_a_pod(site: Any) -> None:
    """POST of policy/v1 Eviction answers 201 and the pod goes."""
    await site.http("POST", "/apis/apps/v1/namespaces/default/deployments", _deployment("web"))
    pods = (await site.http("GET", "/api/v1/namespaces/default/pods")).json["items"]
    name = pods[0]["metadata"]["name"]
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    assert (await site.http("POST", f"/api/v1/namespaces/default/pods/{name}/eviction", body)).status == 201
    assert (await site.http("GET", f"/api/v1/namespaces/default/pods/{name}")).status == 404


def _deployment(name: str) -> dict[str, Any]:
    labels = {"app": name}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod},
    }


async def test_protobuf_bodies_are_read(site: Any) -> None:
    """A typed body as kubectl 1.32 and later send it creates the same object as JSON."""
    key_value = b"\x0a\x01a\x12\x011"
    config_map = b"\x0a\x04\x0a\x02pb" + b"\x12" + bytes([len(key_value)]) + key_value
    kind = b"\x0a\x02v1\x12\x09ConfigMap"
    unknown = b"\x0a" + bytes([len(kind)]) + kind + b"\x12" + bytes([len(config_map)]) + config_map
    headers = {"Content-Type": "application/vnd.kubernetes.protobuf"}
    made = await site.http("POST", MAPS, b"k8s\x00" + unknown, headers=headers)
    assert (made.status, made.json["data"]) == (201, {"a": "1"})


async def test_a_review_has_no_table(site: Any) -> None:
    """406 for a client that takes nothing else, the plain answer for one that does."""
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    body = {"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}}
    only = await site.http("POST", path, body, headers={"Accept": TABLE.split(",")[0]})
    assert (only.status, only.json["reason"]) == (406, "NotAcceptable")
    assert (await site.http("POST", path, body, headers={"Accept": TABLE})).json["status"]["allowed"]
