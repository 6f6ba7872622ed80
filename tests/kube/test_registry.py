"""The registry's verbs: what a client may count on, with the texts of the real server."""

from typing import Any

import pytest

from itbench.core.ids import Ids
from itbench.kube.client import ApiError, Obj
from itbench.kube.local import LocalClient
from itbench.kube.registry import Registry
from itbench.kube.requests import DeleteOptions, ListQuery, Options, PatchBody
from itbench.kube.store import Store

ME = Options("me")
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}
SPEC = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}


class Clock:
    """Time that tests move."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    """World time."""
    return Clock()


@pytest.fixture
def registry(clock: Clock) -> Registry:
    """A registry with a namespace `t` and its default account."""
    registry = Registry(store=Store(), ids=Ids(3), now=clock)
    client = LocalClient(registry, "setup")
    client.create("namespaces", {"metadata": {"name": "t"}})
    client.create("serviceaccounts", {"metadata": {"name": "default"}}, "t")
    return registry


@pytest.fixture
def client(registry: Registry) -> LocalClient:
    """A client of that registry."""
    return LocalClient(registry, "me")


def _config(name: str, **data: str) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def _pod(name: str, **spec: Any) -> Obj:
    return {"metadata": {"name": name, "labels": {"a": "b"}}, "spec": {**TEMPLATE["spec"], **spec}}


def _status(caught: pytest.ExceptionInfo[ApiError]) -> tuple[int, str, str]:
    return caught.value.code, caught.value.reason, str(caught.value)


def test_errors_about_names_use_plural_and_group(client: LocalClient) -> None:
    """404 and 409 name `plural.group "name"`, core resources without a group."""
    with pytest.raises(ApiError) as caught:
        client.get("deployments.apps", "nosuch", "t")
    assert _status(caught) == (404, "NotFound", 'deployments.apps "nosuch" not found')
    client.create("configmaps", _config("c"), "t")
    with pytest.raises(ApiError) as caught:
        client.create("configmaps", _config("c"), "t")
    assert _status(caught) == (409, "AlreadyExists", 'configmaps "c" already exists')
    with pytest.raises(ApiError) as caught:
        client.create("configmaps", _config("c"), "nowhere")
    assert _status(caught) == (404, "NotFound", 'namespaces "nowhere" not found')


def test_equal_seeds_give_equal_names_and_uids() -> None:
    """Generated names and uids depend on the seed and the order per key only."""

    def draw() -> list[tuple[str, str]]:
        registry = Registry(store=Store(), ids=Ids(5), now=lambda: 0.0)
        client = LocalClient(registry, "me")
        client.create("namespaces", {"metadata": {"name": "t"}})
        made = [client.create("configmaps", {"metadata": {"generateName": "x-"}}, "t") for _ in range(3)]
        return [(row["metadata"]["name"], row["metadata"]["uid"]) for row in made]

    first = draw()
    assert first == draw()
    assert len(set(first)) == 3
    assert all(name.startswith("x-") and len(name) == 7 for name, _ in first)


def test_a_write_that_changes_nothing_has_no_revision(client: LocalClient, registry: Registry) -> None:
    """The same object comes back and watchers see no event."""
    first = client.create("configmaps", _config("c", k="v"), "t")
    revision = registry.store.revision
    assert client.patch("configmaps", "c", "t", {"data": {"k": "v"}}) is first
    assert client.update("configmaps", {**_config("c", k="v"), "metadata": first["metadata"]}) is first
    assert registry.store.revision == revision


def test_a_stale_update_is_a_conflict_and_none_means_last_wins(client: LocalClient) -> None:
    """resourceVersion is checked when it is sent."""
    first = client.create("configmaps", _config("c", k="1"), "t")
    client.patch("configmaps", "c", "t", {"data": {"k": "2"}})
    with pytest.raises(ApiError) as caught:
        client.update("configmaps", {**first, "data": {"k": "3"}})
    assert _status(caught)[:2] == (409, "Conflict")
    assert "the object has been modified; please apply your changes to the latest version and try again" in str(
        caught.value
    )
    last = client.update("configmaps", {**_config("c", k="4"), "metadata": {"name": "c", "namespace": "t"}})
    assert last["data"] == {"k": "4"}


def test_generation_counts_wishes_not_states(client: LocalClient) -> None:
    """Spec changes bump it; status, scale to the same number and labels do not; ConfigMaps have none."""
    made = client.create("deployments.apps", {"metadata": {"name": "d"}, "spec": SPEC}, "t")
    assert made["metadata"]["generation"] == 1
    client.patch("deployments.apps", "d", "t", {"metadata": {"labels": {"x": "y"}}})
    client.patch("deployments.apps", "d", "t", {"status": {"replicas": 2}}, subresource="status")
    assert client.get("deployments.apps", "d", "t")["metadata"]["generation"] == 1
    scale = client.patch("deployments.apps", "d", "t", {"spec": {"replicas": 5}}, subresource="scale")
    assert (scale["kind"], scale["spec"], scale["status"]["selector"]) == ("Scale", {"replicas": 5}, "a=b")
    assert client.get("deployments.apps", "d", "t")["metadata"]["generation"] == 2
    assert "generation" not in client.create("configmaps", _config("c"), "t")["metadata"]


def test_spec_and_status_are_written_through_their_own_doors(client: LocalClient) -> None:
    """A spec write keeps status, a status write keeps spec, and status sent on create is dropped."""
    body = {"metadata": {"name": "d"}, "spec": SPEC, "status": {"replicas": 9}}
    assert client.create("deployments.apps", body, "t")["status"] == {}
    client.patch(
        "deployments.apps", "d", "t", {"spec": {"replicas": 7}, "status": {"replicas": 1}}, subresource="status"
    )
    client.patch("deployments.apps", "d", "t", {"spec": {"replicas": 3}, "status": {"replicas": 8}})
    found = client.get("deployments.apps", "d", "t")
    assert (found["spec"]["replicas"], found["status"]["replicas"]) == (3, 1)


def test_dry_run_answers_in_full_and_stores_nothing(registry: Registry) -> None:
    """Defaults and errors are real, the store is untouched."""
    resource = registry.table.named("deployments.apps")
    revision = registry.store.revision
    dry = Options("me", dry_run=True)
    made = registry.create(resource, {"metadata": {"name": "d"}, "spec": SPEC}, "t", dry)
    assert made.object["spec"]["strategy"]["type"] == "RollingUpdate"
    assert made.entry is None
    assert registry.store.revision == revision
    registry.create(resource, {"metadata": {"name": "d"}, "spec": SPEC}, "t", ME)
    patched = registry.patch(resource, "d", "t", PatchBody("merge", {"spec": {"replicas": 9}}), dry)
    assert patched.object["spec"]["replicas"] == 9
    assert registry.get(resource, "d", "t").object["spec"]["replicas"] == 2


def test_unknown_fields_are_strict_errors_warnings_or_dropped(registry: Registry) -> None:
    """fieldValidation decides; the field is never stored."""
    resource = registry.table.named("services")
    body = {"metadata": {"name": "s"}, "spec": {"selectr": {}, "ports": [{"port": 80, "foo": 1}]}}
    with pytest.raises(ApiError) as caught:
        registry.create(resource, body, "t", Options("me", validation="Strict"))
    assert str(caught.value) == (
        'Service in version "v1" cannot be handled as a Service: strict decoding error: '
        'unknown field "spec.ports[0].foo", unknown field "spec.selectr"'
    ) or 'unknown field "spec.selectr", unknown field "spec.ports[0].foo"' in str(caught.value)
    warned = registry.create(resource, body, "t", ME)
    assert sorted(warned.warnings) == ['unknown field "spec.ports[0].foo"', 'unknown field "spec.selectr"']
    assert "foo" not in warned.object["spec"]["ports"][0]
    ignored = registry.create(resource, {**body, "metadata": {"name": "q"}}, "t", Options("me", validation="Ignore"))
    assert ignored.warnings == []


def test_wrong_types_are_worded_as_go_does(client: LocalClient) -> None:
    """The struct, the path without indexes, and the Go type."""
    with pytest.raises(ApiError) as caught:
        client.create("deployments.apps", {"metadata": {"name": "d"}, "spec": {**SPEC, "replicas": True}}, "t")
    assert str(caught.value) == (
        'Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal bool into Go struct field '
        "DeploymentSpec.spec.replicas of type int32"
    )
    client.create("deployments.apps", {"metadata": {"name": "d"}, "spec": SPEC}, "t")
    with pytest.raises(ApiError) as caught:
        client.patch("deployments.apps", "d", "t", {"spec": {"replicas": "abc"}}, kind="strategic")
    text = ' "" is invalid: patch: Invalid value: "map[spec:map[replicas:abc]]": unrecognized type: int32'
    assert _status(caught) == (422, "Invalid", text)


def test_lists_page_in_order_and_select(client: LocalClient, registry: Registry) -> None:
    """limit and continue walk through everything once, in name order; label and field selectors filter."""
    for name in ("d", "a", "c", "b", "e"):
        client.create(
            "configmaps", {**_config(name), "metadata": {"name": name, "labels": {"odd": str(name in "ace")}}}, "t"
        )
    resource = registry.table.named("configmaps")
    names, token = [], ""
    while True:
        page = registry.list(resource, "t", ListQuery(limit=2, token=token))
        names += [entry.name for entry in page.entries]
        token = page.token
        if not token:
            break
    assert names == ["a", "b", "c", "d", "e"]
    assert registry.list(resource, "t", ListQuery(limit=2)).remaining == 3
    assert [row["metadata"]["name"] for row in client.list("configmaps", "t", labels="odd=True")] == ["a", "c", "e"]
    assert [row["metadata"]["name"] for row in client.list("configmaps", fields="metadata.name!=a")] == [
        "b",
        "c",
        "d",
        "e",
    ]
    with pytest.raises(ApiError, match='"foo" is not a known field selector'):
        client.list("configmaps", fields="foo=bar")


def test_deleting_waits_for_finalizers(client: LocalClient) -> None:
    """An object with finalizers is marked, takes no new ones, and goes with its last one."""
    client.create("configmaps", {**_config("c"), "metadata": {"name": "c", "finalizers": ["x.y/z"]}}, "t")
    client.delete("configmaps", "c", "t")
    marked = client.get("configmaps", "c", "t")["metadata"]
    assert (marked["deletionTimestamp"], marked["deletionGracePeriodSeconds"]) == ("2026-01-12T08:00:00Z", 0)
    with pytest.raises(ApiError, match="no new finalizers can be added if the object is being deleted"):
        client.patch("configmaps", "c", "t", {"metadata": {"finalizers": ["x.y/z", "x.y/q"]}})
    _, before = client.changes(0)
    answer = client.patch("configmaps", "c", "t", {"metadata": {"finalizers": None}})
    assert "finalizers" not in answer["metadata"]
    assert [change.type for change in client.changes(before, ["configmaps"])[0]] == ["DELETED"]
    with pytest.raises(ApiError, match="not found"):
        client.get("configmaps", "c", "t")


def test_foreground_and_orphan_add_their_finalizers(client: LocalClient) -> None:
    """The garbage collector finds them on the object."""
    for name, policy, finalizer in (("a", "Foreground", "foregroundDeletion"), ("b", "Orphan", "orphan")):
        client.create("deployments.apps", {"metadata": {"name": name}, "spec": SPEC}, "t")
        client.delete("deployments.apps", name, "t", propagation=policy)  # type: ignore[arg-type]
        assert client.get("deployments.apps", name, "t")["metadata"]["finalizers"] == [finalizer]


def test_pods_have_grace_when_bound_and_none_before(client: LocalClient, clock: Clock) -> None:
    """An unbound pod goes at once, a bound one is marked until the kubelet deletes it with grace 0."""
    client.create("pods", _pod("free"), "t")
    client.delete("pods", "free", "t")
    with pytest.raises(ApiError):
        client.get("pods", "free", "t")
    client.create("pods", _pod("bound"), "t")
    client.post("pods", "bound", "t", "binding", {"target": {"kind": "Node", "name": "n"}})
    assert client.get("pods", "bound", "t")["metadata"]["generation"] == 1
    clock.now = 100.0
    client.delete("pods", "bound", "t")
    marked = client.get("pods", "bound", "t")["metadata"]
    assert (marked["deletionTimestamp"], marked["deletionGracePeriodSeconds"]) == ("2026-01-12T08:02:10Z", 30)
    client.delete("pods", "bound", "t", grace_s=0)
    with pytest.raises(ApiError):
        client.get("pods", "bound", "t")


def test_binding_twice_is_a_conflict(client: LocalClient) -> None:
    """The text names the node that has the pod."""
    client.create("pods", _pod("p"), "t")
    client.post("pods", "p", "t", "binding", {"target": {"kind": "Node", "name": "n1"}})
    with pytest.raises(ApiError, match='pod p is already assigned to node "n1"'):
        client.post("pods", "p", "t", "binding", {"target": {"kind": "Node", "name": "n2"}})


def test_preconditions_hold_deletes(registry: Registry, client: LocalClient) -> None:
    """A wrong uid refuses the delete."""
    client.create("configmaps", _config("c"), "t")
    with pytest.raises(ApiError, match=r"the UID in the precondition \(nope\) does not match the UID in record"):
        client.delete("configmaps", "c", "t", uid="nope")
    done = registry.delete(registry.table.named("configmaps"), "c", "t", DeleteOptions(), ME)
    assert done.object["status"] == "Success"
    assert done.object["details"]["kind"] == "configmaps"


def _ready(client: LocalClient, name: str) -> None:
    client.create("pods", _pod(name), "t")
    client.post("pods", name, "t", "binding", {"target": {"kind": "Node", "name": "n"}})
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    client.patch("pods", name, "t", {"status": status}, subresource="status")


def test_eviction_spends_the_budget_and_is_refused_without(client: LocalClient) -> None:
    """429 with the budget's numbers when nothing is left; the budget remembers whom it let go."""
    for name in ("p", "q"):
        _ready(client, name)
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}}
    client.create("poddisruptionbudgets.policy", budget, "t")
    with pytest.raises(ApiError) as caught:
        client.evict("p", "t")
    assert caught.value.status["details"]["retryAfterSeconds"] == 10
    state = {
        "observedGeneration": 1,
        "disruptionsAllowed": 1,
        "desiredHealthy": 1,
        "currentHealthy": 2,
        "expectedPods": 2,
    }
    client.patch("poddisruptionbudgets.policy", "b", "t", {"status": state}, subresource="status")
    client.evict("p", "t")
    pod = client.get("pods", "p", "t")
    assert pod["metadata"]["deletionTimestamp"]
    assert [row["reason"] for row in pod["status"]["conditions"] if row["type"] == "DisruptionTarget"] == [
        "EvictionByEvictionAPI"
    ]
    spent = client.get("poddisruptionbudgets.policy", "b", "t")["status"]
    assert (spent["disruptionsAllowed"], list(spent["disruptedPods"])) == (0, ["p"])
    with pytest.raises(ApiError) as caught:
        client.evict("q", "t")
    (cause,) = caught.value.status["details"]["causes"]
    assert (caught.value.code, cause["reason"]) == (429, "DisruptionBudget")
    assert cause["message"] == "The disruption budget b needs 1 healthy pods and has 2 currently"


def test_autoscaler_versions_share_one_object(registry: Registry, client: LocalClient) -> None:
    """What is created as v1 reads as v2 and back."""
    old = registry.table.lookup("autoscaling", "v1", "horizontalpodautoscalers")
    assert old is not None
    target = {"kind": "Deployment", "name": "w", "apiVersion": "apps/v1"}
    body = {
        "metadata": {"name": "h"},
        "spec": {"maxReplicas": 3, "targetCPUUtilizationPercentage": 50, "scaleTargetRef": target},
    }
    made = registry.create(old, body, "t", ME).object
    assert (made["apiVersion"], made["spec"]["targetCPUUtilizationPercentage"]) == ("autoscaling/v1", 50)
    new = client.get("horizontalpodautoscalers.autoscaling", "h", "t")
    assert new["apiVersion"] == "autoscaling/v2"
    assert new["spec"]["metrics"][0]["resource"]["target"] == {"type": "Utilization", "averageUtilization": 50}


def test_custom_kinds_keep_what_they_are_given(client: LocalClient) -> None:
    """Chaos resources have no schema: everything stays, merge patches work, strategic ones are 415."""
    body = {"metadata": {"name": "x"}, "spec": {"action": "pod-kill", "any": [1, {"b": None}]}}
    made = client.create("podchaos.chaos-mesh.org", body, "t")
    assert made["apiVersion"] == "chaos-mesh.org/v1alpha1"
    assert made["spec"]["action"] == "pod-kill"
    client.patch("podchaos.chaos-mesh.org", "x", "t", {"status": {"conditions": []}})
    with pytest.raises(ApiError) as caught:
        client.patch("podchaos.chaos-mesh.org", "x", "t", {}, kind="strategic")
    assert caught.value.code == 415


def test_changes_replay_what_lists_show(client: LocalClient, registry: Registry) -> None:
    """`changes(-1)` is the present, later calls are the difference, in the vocabulary of watches."""
    client.create("configmaps", _config("c", k="1"), "t")
    everything, revision = client.changes(-1, ["configmaps"])
    assert [(row.type, row.object["metadata"]["name"]) for row in everything] == [("ADDED", "c")]
    client.patch("configmaps", "c", "t", {"data": {"k": "2"}})
    client.delete("configmaps", "c", "t")
    rows, now = client.changes(revision, ["configmaps"])
    assert [row.type for row in rows] == ["MODIFIED", "DELETED"]
    assert rows[0].previous is everything[0].object
    assert now == registry.store.revision


def test_chunks_show_the_state_of_the_first_one_until_it_is_forgotten(
    registry: Registry, client: LocalClient, clock: Clock
) -> None:
    """What is written between two chunks is not seen; after five minutes the error carries a token for the present state."""
    maps = registry.table.named("configmaps")
    for name in ("a", "b", "c"):
        client.create("configmaps", _config(name), "t")
    first = registry.list(maps, "t", ListQuery(limit=1))
    client.delete("configmaps", "b", "t")
    client.create("configmaps", _config("d"), "t")
    client.patch("configmaps", "c", "t", {"data": {"x": "y"}})
    rest = registry.list(maps, "t", ListQuery(token=first.token))
    assert [(e.name, "data" in e.object) for e in rest.entries] == [("b", False), ("c", False)]
    assert rest.revision == first.revision
    clock.now = 301.0
    with pytest.raises(ApiError) as caught:
        registry.list(maps, "t", ListQuery(token=first.token))
    assert (caught.value.code, caught.value.reason) == (410, "Expired")
    again = registry.list(maps, "t", ListQuery(token=caught.value.status["metadata"]["continue"]))
    assert [entry.name for entry in again.entries] == ["c", "d"]
    assert again.revision > first.revision


def test_a_status_may_bring_labels_and_annotations_but_no_spec(registry: Registry) -> None:
    """The status of most kinds writes metadata too; that of a Deployment keeps its labels."""
    for name, body in (
        ("jobs.batch", {"spec": {"template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}}}),
        ("deployments.apps", {"spec": SPEC}),
    ):
        resource = registry.table.named(name)
        registry.create(resource, {"metadata": {"name": "x", "labels": {"a": "b"}}, **body}, "t", ME)
        change = {
            "metadata": {"annotations": {"k": "v"}, "labels": {"a": "c"}},
            "spec": {"paused": True, "suspend": True},
        }
        registry.patch(resource, "x", "t", PatchBody("merge", change), ME, "status")
        found = registry.get(resource, "x", "t").object
        assert found["metadata"]["annotations"]["k"] == "v"
        assert found["metadata"]["labels"]["a"] == ("b" if name == "deployments.apps" else "c")
        assert not found["spec"].get("paused") and not found["spec"].get("suspend")


def test_a_list_may_be_of_an_exact_version(registry: Registry, client: LocalClient) -> None:
    """Exact shows what was there then; a version that has not come yet is a time-out, nonsense a bad request."""
    maps = registry.table.named("configmaps")
    first = client.create("configmaps", _config("a"), "t")["metadata"]["resourceVersion"]
    client.create("configmaps", _config("b"), "t")

    def names(**query: Any) -> list[str]:
        return [entry.name for entry in registry.list(maps, "t", ListQuery(**query)).entries]

    assert names(version=first, match="Exact") == names(version=first, limit=5) == ["a"]
    assert names(version=first, match="NotOlderThan") == names(version=first) == names(version="0") == ["a", "b"]
    for query, code in (
        ({"version": "999999"}, 504),
        ({"version": "abc"}, 400),
        ({"match": "Exact"}, 422),
        ({"match": "Exact", "version": "0"}, 422),
        ({"match": "Foo", "version": "1"}, 422),
    ):
        with pytest.raises(ApiError) as caught:
            names(**query)
        assert caught.value.code == code
