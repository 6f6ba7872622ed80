"""Server-side apply and managedFields: laws of ownership, and cases checked against a real server."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from itbench.core.clock import rfc3339
from itbench.core.ids import Ids
from itbench.kube.client import ApiError, Obj
from itbench.kube.patch.fields import difference, intersection, union, with_parents
from itbench.kube.plane import ControlPlane
from itbench.kube.registry import Registry
from itbench.kube.requests import Options, PatchBody
from itbench.kube.store import Store

KEYS = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}'])
FIELDS = st.recursive(
    st.just({}),
    lambda inner: st.dictionaries(KEYS, inner, min_size=1, max_size=3),
    max_leaves=6,
).filter(bool)


def _members(fields: dict, prefix: tuple = ()) -> set[tuple]:
    found = set()
    for key, value in fields.items():
        if key == ".":
            continue
        if not value or "." in value:
            found.add((*prefix, key))
        found |= _members(value, (*prefix, key))
    return found


@settings(max_examples=100, deadline=None)
@given(FIELDS, FIELDS)
def test_field_sets_obey_set_algebra(left: dict, right: dict) -> None:
    """Union, difference and intersection of path sets are those of their members."""
    assert _members(union(left, right)) == _members(left) | _members(right)
    assert _members(difference(left, right)) == _members(left) - _members(right)
    assert _members(intersection(left, right)) == _members(left) & _members(right)
    assert _members(left) <= _members(with_parents(left))


class Cluster:
    """A registry with one namespace and the verbs of these tests."""

    def __init__(self) -> None:
        self.time = 0.0
        self.registry = Registry(store=Store(), ids=Ids(1), now=lambda: self.time)
        table = self.registry.table
        self.maps, self.deployments = table.named("configmaps"), table.named("deployments.apps")
        self.registry.create(table.named("namespaces"), {"metadata": {"name": "t"}}, "", Options())

    def apply(self, manager: str, data: dict[str, str], *, force: bool = False) -> Obj:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}
        return self.registry.patch(self.maps, "c", "t", PatchBody("apply", body), Options(manager, force=force)).object

    def apply_deployment(self, manager: str, spec: dict[str, Any], *, force: bool = False) -> Obj:
        body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}
        options = Options(manager, force=force)
        return self.registry.patch(self.deployments, "d", "t", PatchBody("apply", body), options).object


DATA = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["1", "2"]), max_size=3)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["m1", "m2"]), DATA), min_size=1, max_size=6))
def test_forced_applies_leave_exactly_what_is_still_sent(steps: list[tuple[str, dict]]) -> None:
    """After any forced applies a key is there just if somebody's last configuration names it, with the latest value sent."""
    cluster = Cluster()
    last: dict[str, dict] = {}
    expected: dict[str, str] = {}
    for manager, data in steps:
        out = cluster.apply(manager, data, force=True)
        lost = {key for key in last.get(manager, {}) if key not in data}
        for other, known in last.items():
            if other != manager:
                last[other] = {key: value for key, value in known.items() if data.get(key, value) == value}
        last[manager] = dict(data)
        expected.update(data)
        for key in lost:
            if not any(key in known for known in last.values()):
                expected.pop(key, None)
        assert out.get("data", {}) == expected


@settings(max_examples=40, deadline=None)
@given(DATA)
def test_applying_the_same_again_changes_nothing(data: dict[str, str]) -> None:
    """No new revision, no new time."""
    cluster = Cluster()
    first = copy.deepcopy(cluster.apply("m", data))
    cluster.time = 500.0
    assert cluster.apply("m", data) == first


@settings(max_examples=40, deadline=None)
@given(DATA.filter(bool), DATA)
def test_an_apply_is_dated_just_if_it_changed_the_object(data: dict[str, str], more: dict[str, str]) -> None:
    """Whoever joins in what is there already has no time; who changed something has the time of the last change."""
    cluster = Cluster()
    cluster.apply("m", data)
    cluster.time = 500.0
    joined = _entries(cluster.apply("n", data))
    assert "time" not in joined["n"]
    assert joined["m"]["time"] == rfc3339(0.0)
    cluster.time = 900.0
    forced = {**data, **more}
    row = _entries(cluster.apply("n", forced, force=True))["n"]
    assert row.get("time") == (None if forced == data else rfc3339(900.0))


def _entries(obj: Obj) -> dict[str, Obj]:
    return {row["manager"]: row for row in obj["metadata"]["managedFields"]}


LAST = "kubectl.kubernetes.io/last-applied-configuration"


@pytest.mark.parametrize(
    ("manager", "notes", "expected"),
    [
        (
            "kubectl",
            {LAST: "old"},
            '{"apiVersion":"v1","data":{"a":"\\u003c1\\u003e"},"kind":"ConfigMap","metadata":{"name":"c"}}\n',
        ),
        ("kubectl", {}, None),
        ("kubectl", {LAST: "old", "big": "x" * (256 * 1024 - 100)}, None),
        ("other", {LAST: "old"}, "old"),
    ],
)
def test_kubectl_keeps_the_annotation_of_client_side_apply(manager: str, notes: dict, expected: str | None) -> None:
    """It is set to what was sent, without annotations that are not there; others leave it alone."""
    cluster = Cluster()
    body = {"metadata": {"name": "c", "annotations": notes}, "data": {"a": "<1>"}}
    cluster.registry.create(cluster.maps, body, "t", Options("kubectl-create"))
    found = cluster.apply(manager, {"a": "<1>"})["metadata"].get("annotations", {})
    assert found.get(LAST) == expected


@pytest.mark.parametrize(("noted", "live"), [("1", "1"), ("1", "2")])
def test_kubectl_takes_over_what_its_annotation_still_tells(noted: str, live: str) -> None:
    """Fields that client-side apply set and nobody changed are no conflict for kubectl; others, and for others, are."""
    cluster = Cluster()
    text = f'{{"data":{{"a":"{noted}"}},"metadata":{{"name":"c"}}}}'
    body = {"metadata": {"name": "c", "annotations": {LAST: text}}, "data": {"a": live, "b": "1"}}
    cluster.registry.create(cluster.maps, body, "t", Options("kubectl-client-side-apply"))
    with pytest.raises(ApiError, match="conflict with"):
        cluster.apply("other", {"a": "9"})
    with pytest.raises(ApiError, match=r"conflict with .*: \.data\.b$"):
        cluster.apply("kubectl", {"a": live, "b": "9"})
    if noted == live:
        assert cluster.apply("kubectl", {"a": "9"})["data"]["a"] == "9"
    else:
        with pytest.raises(ApiError, match=r"conflict with .*: \.data\.a$"):
            cluster.apply("kubectl", {"a": "9"})


def test_conflicts_name_manager_and_paths() -> None:
    """Another value for what somebody else applied is a 409; equal values are shared; force takes over."""
    cluster = Cluster()
    cluster.apply("m1", {"a": "1", "b": "2"})
    with pytest.raises(ApiError) as caught:
        cluster.apply("m2", {"a": "9", "b": "8"})
    assert caught.value.code == 409
    assert str(caught.value) == 'Apply failed with 2 conflicts: conflicts with "m1":\n- .data.a\n- .data.b'
    assert [row["field"] for row in caught.value.status["details"]["causes"]] == [".data.a", ".data.b"]
    cluster.apply("m2", {"b": "2"})
    taken = cluster.apply("m2", {"a": "9", "b": "2"}, force=True)
    owners = {row["manager"]: row["fieldsV1"]["f:data"] for row in taken["metadata"]["managedFields"]}
    assert owners == {"m1": {"f:b": {}}, "m2": {"f:a": {}, "f:b": {}}}


def test_update_managers_conflict_with_their_version() -> None:
    """What an Update wrote belongs to its manager, shown with the API version; scale shows its subresource."""
    cluster = Cluster()
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}},
    }
    cluster.apply_deployment("m1", spec)
    scale = PatchBody("merge", {"spec": {"replicas": 5}})
    cluster.registry.patch(cluster.deployments, "d", "t", scale, Options("scaler"), "scale")
    with pytest.raises(
        ApiError, match=r'conflict with "scaler" with subresource "scale" using apps/v1: \.spec\.replicas'
    ):
        cluster.apply_deployment("m1", spec)


def test_dropping_a_probe_removes_its_defaults_too() -> None:
    """A removed struct goes as a whole, defaults of its fields included, and list items only others own stay."""
    cluster = Cluster()
    container = {
        "name": "c",
        "image": "i:1",
        "livenessProbe": {"httpGet": {"port": 80}},
        "env": [{"name": "A", "value": "1"}],
    }
    spec = {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}},
    }
    cluster.apply_deployment("m1", spec)
    cluster.apply_deployment(
        "m2", {"template": {"spec": {"containers": [{"name": "c", "env": [{"name": "B", "value": "2"}]}]}}}
    )
    bare = {"name": "c", "image": "i:1"}
    smaller = {**spec, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [bare]}}}
    (left,) = cluster.apply_deployment("m1", smaller)["spec"]["template"]["spec"]["containers"]
    assert "livenessProbe" not in left
    assert left["env"] == [{"name": "B", "value": "2"}]


def test_managed_fields_written_by_the_client_are_kept() -> None:
    """The migration from client-side apply replaces entries by JSON patch; an empty entry resets them."""
    cluster = Cluster()
    cluster.apply("m1", {"a": "1"})
    mine = [
        {
            "manager": "x",
            "operation": "Apply",
            "apiVersion": "v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {"f:a": {}}},
        }
    ]
    replace = [{"op": "replace", "path": "/metadata/managedFields", "value": mine}]
    out = cluster.registry.patch(cluster.maps, "c", "t", PatchBody("json", replace), Options("k")).object
    assert out["metadata"]["managedFields"] == mine
    reset = [{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}]
    out = cluster.registry.patch(cluster.maps, "c", "t", PatchBody("json", reset), Options("k")).object
    assert "managedFields" not in out["metadata"]


def test_an_apply_body_may_not_carry_managed_fields_or_unknown_fields() -> None:
    """Both are refused with the server's own words."""
    cluster = Cluster()
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "managedFields": [{}]}}
    with pytest.raises(ApiError, match=r"metadata\.managedFields must be nil"):
        cluster.registry.patch(cluster.maps, "c", "t", PatchBody("apply", body), Options("m"))
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "dato": {}}
    with pytest.raises(ApiError, match=r"failed to create typed patch object .*: \.dato: field not declared in schema"):
        cluster.registry.patch(cluster.maps, "c", "t", PatchBody("apply", body), Options("m"))


KINDS = {"a published schema": ("configmaps", "data"), "metadata alone known": ("stresschaos.chaos-mesh.org", "spec")}


@pytest.mark.parametrize(("named", "part"), KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("metadata", [{"name": "x"}, {}, None])
def test_dropping_all_that_a_manager_owned_of_the_metadata_keeps_the_rest_of_it(
    named: str, part: str, metadata: Any
) -> None:
    """The labels go, the object keeps its name, whatever the configuration says of its metadata."""
    registry = ControlPlane(ids=Ids(1)).registry
    resource = registry.table.named(named)
    body = {"apiVersion": resource.api_version, "kind": resource.kind, part: {"mode": "one"}}
    for sent in ({"name": "x", "labels": {"a": "b"}}, metadata):
        config = PatchBody("apply", {**body, "metadata": sent})
        out = registry.patch(resource, "x", "default", config, Options("m")).object
    assert out["metadata"]["name"] == "x"
    assert "labels" not in out["metadata"]


@pytest.mark.parametrize(("name", "why"), [("", "undeterminable"), ("y", "does not match the name on the URL")])
@pytest.mark.parametrize("exists", [True, False])
def test_a_configuration_of_another_name_is_refused(name: str, why: str, exists: bool) -> None:
    """400, whether the object is there or not."""
    cluster = Cluster()
    if exists:
        cluster.apply("m", {"a": "1"})
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    with pytest.raises(ApiError, match=why) as caught:
        cluster.registry.patch(cluster.maps, "c", "t", PatchBody("apply", body), Options("m"))
    assert caught.value.code == 400
