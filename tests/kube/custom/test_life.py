"""Definitions from their creation to their end: names, versions, discovery, snapshots, namespaces, owners, clean-up."""

from typing import Any

import pytest

from itbench.kube import discovery
from itbench.kube.api import documents
from itbench.kube.client import ApiError
from itbench.kube.plane import ControlPlane
from itbench.kube.requests import ListQuery, Options
from itbench.kube.tables import render

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
SERVICES = "apiservices.apiregistration.k8s.io"
SPEC = {"type": "object", "properties": {"a": {"type": "string", "default": "x"}, "replicas": {"type": "integer"}}}
SUBRESOURCES = {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}


def _conditions(estate: Any, name: str = "widgets.ex.io") -> dict:
    rows = estate.client.get(DEFINITIONS, name)["status"]["conditions"]
    return {row["type"]: (row["status"], row.get("reason"), row["message"]) for row in rows}


def _widget(name: str = "w", **parts: Any) -> dict:
    return {"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": name}, **parts}


def test_a_definition_gets_its_names_and_is_served(estate: Any, definition: Any) -> None:
    """Created without conditions, then NamesAccepted and Established; the kind and its APIService are there."""
    made = estate.client.create(DEFINITIONS, definition(SPEC))
    assert made["status"] == {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": ["v1"],
    }
    assert estate.registry.table.find("widgets.ex.io") is None
    estate.settle()
    assert _conditions(estate) == {
        "NamesAccepted": ("True", "NoConflicts", "no conflicts found"),
        "Established": ("True", "InitialNamesAccepted", "the initial names have been accepted"),
    }
    assert estate.registry.table.lookup("ex.io", "v1", "widgets").kind == "Widget"
    assert estate.client.get(SERVICES, "v1.ex.io")["spec"]["groupPriorityMinimum"] == 1000


def test_names_that_are_taken_keep_a_definition_from_being_served(estate: Any, definition: Any) -> None:
    """The second definition with the same kinds is refused its names until it asks for others."""
    estate.define(definition())
    other = definition()
    other["metadata"]["name"] = "gadgets.ex.io"
    other["spec"]["names"] = {"plural": "gadgets", "kind": "Widget", "shortNames": ["gd"]}
    estate.define(other)
    assert _conditions(estate, "gadgets.ex.io") == {
        "NamesAccepted": ("False", "ListKindConflict", '"WidgetList" is already in use'),
        "Established": ("False", "NotAccepted", "not all names are accepted"),
    }
    assert estate.registry.table.find("gadgets.ex.io") is None
    change = {"spec": {"names": {"kind": "Gadget", "listKind": "GadgetList", "singular": "gadget"}}}
    estate.client.patch(DEFINITIONS, "gadgets.ex.io", "", change)
    estate.settle()
    assert _conditions(estate, "gadgets.ex.io")["Established"][0] == "True"
    estate.create("gadgets.ex.io", {"apiVersion": "ex.io/v1", "kind": "Gadget", "metadata": {"name": "g"}}, dry=False)


def test_deletion_waits_for_the_last_object(estate: Any, definition: Any) -> None:
    """A definition under deletion takes no new objects, deletes the old ones, and goes with the last of them."""
    estate.define(definition(SPEC))
    estate.client.create("widgets.ex.io", _widget("free"), "default")
    held = _widget("held")
    held["metadata"]["finalizers"] = ["a.b/c"]
    estate.client.create("widgets.ex.io", held, "default")
    estate.client.delete(DEFINITIONS, "widgets.ex.io")
    estate.settle()
    assert _conditions(estate)["Terminating"] == (
        "True",
        "InstanceDeletionInProgress",
        "CustomResource deletion is in progress",
    )
    assert [row["metadata"]["name"] for row in estate.client.list("widgets.ex.io")] == ["held"]
    refused = estate.create("widgets.ex.io", _widget("new"))
    text = 'widgets.ex.io "new" is forbidden: create not allowed while custom resource definition is terminating'
    assert (refused["code"], refused["message"]) == (403, text)
    estate.client.patch("widgets.ex.io", "held", "default", {"metadata": {"finalizers": None}})
    estate.settle()
    assert estate.registry.table.find("widgets.ex.io") is None
    assert "v1.ex.io" not in [row["metadata"]["name"] for row in estate.client.list(SERVICES)]
    with pytest.raises(ApiError, match=r'"widgets\.ex\.io" not found'):
        estate.client.get(DEFINITIONS, "widgets.ex.io")


def test_what_is_served_follows_the_store(estate: Any, definition: Any) -> None:
    """Snapshots, saved planes and restored stores serve exactly the kinds whose definitions they hold."""
    before = estate.plane.store.snapshot()
    estate.define(definition(SPEC))
    estate.client.create("widgets.ex.io", _widget(spec={}), "default")
    after = estate.plane.store.snapshot()
    loaded = ControlPlane.load(estate.plane.save())
    assert loaded.client("kubectl").get("widgets.ex.io", "w", "default")["spec"] == {"a": "x"}
    estate.plane.store.restore(before)
    assert estate.registry.table.find("widgets.ex.io") is None
    estate.plane.store.restore(after)
    assert estate.registry.table.named("widgets.ex.io").singular == "widget"


def test_versions_share_objects_and_order_by_age(estate: Any, definition: Any) -> None:
    """An object is served in every version; v1 comes before v1beta1 in discovery, and the deprecated one warns."""
    made = definition(SPEC)
    loose = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    old = {
        "name": "v1beta1",
        "served": True,
        "storage": False,
        "deprecated": True,
        "schema": {"openAPIV3Schema": loose},
    }
    made["spec"]["versions"].insert(0, old)
    estate.define(made)
    assert dict(estate.registry.table.groups())["ex.io"] == ["v1", "v1beta1"]
    older = estate.registry.table.lookup("ex.io", "v1beta1", "widgets")
    assert older.model.warning == "ex.io/v1beta1 Widget is deprecated; use ex.io/v1 Widget"
    body = {**_widget(spec={"a": "q", "extra": 1}), "apiVersion": "ex.io/v1beta1"}
    result = estate.registry.create(older, body, "default", Options("me"))
    assert result.object["apiVersion"] == "ex.io/v1beta1"
    newer = estate.registry.table.lookup("ex.io", "v1", "widgets")
    entry = estate.registry.get(newer, "w", "default")
    assert estate.registry.view(newer, entry)["spec"] == {"a": "q"}
    assert estate.registry.view(newer, entry)["apiVersion"] == "ex.io/v1"


def test_defaults_that_come_later_show_when_objects_are_read(estate: Any, definition: Any) -> None:
    """A default added to the schema is seen in old objects, which keep their resourceVersion."""
    estate.define(definition({"type": "object", "properties": {"a": {"type": "string"}}}))
    old = estate.client.create("widgets.ex.io", _widget(spec={}), "default")
    now = estate.client.get(DEFINITIONS, "widgets.ex.io")
    part = now["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["a"]
    patch = [
        {
            "op": "add",
            "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a/default",
            "value": "z",
        }
    ]
    assert part == {"type": "string"}
    estate.client.patch(DEFINITIONS, "widgets.ex.io", "", patch, kind="json")
    row = estate.registry.table.named("widgets.ex.io")
    seen = estate.registry.view(row, estate.registry.get(row, "w", "default"))
    assert seen["spec"] == {"a": "z"}
    assert seen["metadata"]["resourceVersion"] == old["metadata"]["resourceVersion"]


def test_status_and_scale_are_written_apart(estate: Any, definition: Any) -> None:
    """The status only through its subresource, without a new generation; scale reads and writes the paths named."""
    state = {"type": "object", "properties": {"replicas": {"type": "integer"}}}
    made = definition(SPEC, subresources=SUBRESOURCES)
    made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"] = state
    estate.define(made)
    obj = estate.client.create("widgets.ex.io", _widget(spec={"replicas": 2}, status={"replicas": 9}), "default")
    assert "status" not in obj
    obj = estate.client.update("widgets.ex.io", {**obj, "status": {"replicas": 1}, "spec": {}}, subresource="status")
    assert (obj["status"], obj["spec"]["replicas"], obj["metadata"]["generation"]) == ({"replicas": 1}, 2, 1)
    row = estate.registry.table.named("widgets.ex.io")
    scale = estate.registry.read(row, "w", "default", "scale")
    assert (scale["spec"], scale["status"]) == ({"replicas": 2}, {"replicas": 1})
    estate.client.update("widgets.ex.io", {**scale, "spec": {"replicas": 5}}, subresource="scale")
    obj = estate.client.get("widgets.ex.io", "w", "default")
    assert (obj["spec"], obj["metadata"]["generation"]) == ({"a": "x", "replicas": 5}, 2)
    refused = estate.answer(
        lambda: estate.registry.update(row, "w", "default", {**scale, "spec": {"replicas": -1}}, Options("m"), "scale")
    )
    assert refused["causes"] == [["FieldValueInvalid", "spec.replicas"]]


def test_columns_selectors_and_discovery_come_from_the_definition(estate: Any, definition: Any) -> None:
    """Printer columns fill Tables, selectableFields may be selected by, aggregated discovery names the kind."""
    columns = [
        {"name": "A", "type": "string", "jsonPath": ".spec.a"},
        {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas", "priority": 1},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    fields = [{"jsonPath": ".spec.a"}]
    estate.define(
        definition(SPEC, additionalPrinterColumns=columns, selectableFields=fields, subresources=SUBRESOURCES)
    )
    for name, a in (("one", "x"), ("two", "y")):
        estate.client.create("widgets.ex.io", _widget(name, spec={"a": a}), "default")
    row = estate.registry.table.named("widgets.ex.io")
    page = estate.registry.list(row, "default", ListQuery(fields="spec.a=y"))
    shown = render(row, page.entries, estate.plane.now)
    assert [column["name"] for column in shown["columnDefinitions"]] == ["Name", "A", "Replicas", "Age"]
    assert [cells["cells"][:3] for cells in shown["rows"]] == [["two", "y", None]]
    with pytest.raises(ApiError, match=r"field label not supported: spec\.b"):
        estate.registry.list(row, "default", ListQuery(fields="spec.b=y"))
    found = discovery.aggregated(estate.registry.table, core=False, version="v2")["items"][-1]
    resource = found["versions"][0]["resources"][0]
    assert resource["responseKind"] == {"group": "ex.io", "version": "v1", "kind": "Widget"}
    assert [sub["subresource"] for sub in resource["subresources"]] == ["status", "scale"]


def test_strategic_patches_are_refused(estate: Any, definition: Any) -> None:
    """415 names the patches that custom resources take."""
    estate.define(definition(SPEC))
    estate.create("widgets.ex.io", _widget(spec={}), dry=False)
    answer = estate.patch("widgets.ex.io", "w", "strategic", {"spec": {"a": "b"}})
    assert answer["code"] == 415
    assert "application/apply-patch+yaml" in answer["message"]


def test_openapi_follows_the_definition(estate: Any, definition: Any) -> None:
    """The v3 document has the schema, the v2 document what v2 can say, and the index changes with the definition."""
    before = documents.index(estate.registry.table)["paths"]
    schema = {
        "type": "object",
        "properties": {"io": {"x-kubernetes-int-or-string": True}, "n": {"type": "string", "nullable": True}},
    }
    estate.define(definition(schema))
    index = documents.index(estate.registry.table)["paths"]
    assert set(index) - set(before) == {"apis/ex.io/v1"}
    from itbench.kube import openapi

    made = openapi.document("ex.io/v1", estate.registry.table)
    assert made is not None
    spec = made["components"]["schemas"]["io.ex.v1.Widget"]["properties"]["spec"]["properties"]
    assert spec["io"] == {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
    assert b'"io.ex.v1.WidgetList"' in documents.v2(estate.registry.table)
    estate.client.patch(DEFINITIONS, "widgets.ex.io", "", {"spec": {"names": {"shortNames": ["wid"]}}})
    estate.settle()
    assert documents.index(estate.registry.table)["paths"]["apis/ex.io/v1"] != index["apis/ex.io/v1"]


def test_namespaces_and_owners_take_custom_objects_with_them(estate: Any, definition: Any) -> None:
    """Deleting the namespace or the owner deletes the objects."""
    estate.define(definition(SPEC))
    estate.client.create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gone"}})
    estate.client.create("widgets.ex.io", _widget("n"), "gone")
    owner = estate.client.create("widgets.ex.io", _widget("owner"), "default")
    ref = {"apiVersion": "ex.io/v1", "kind": "Widget", "name": "owner", "uid": owner["metadata"]["uid"]}
    child = _widget("child")
    child["metadata"]["ownerReferences"] = [ref]
    estate.client.create("widgets.ex.io", child, "default")
    estate.settle()
    estate.client.delete("namespaces", "gone")
    estate.client.delete("widgets.ex.io", "owner", "default")
    estate.settle()
    assert estate.client.list("widgets.ex.io") == []


def test_an_absent_api_server_is_reported(estate: Any) -> None:
    """An APIService for another server says what is missing, step by step."""
    spec = {"group": "ext.io", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100}
    service = {"name": "s", "namespace": "default"}
    body = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.ext.io"}}
    estate.client.create(SERVICES, {**body, "spec": {**spec, "service": service}})
    estate.settle()

    def condition() -> tuple[str, str]:
        row = estate.client.get(SERVICES, "v1.ext.io")["status"]["conditions"][0]
        return row["reason"], row["message"]

    assert condition() == ("ServiceNotFound", 'service/s in "default" is not present')
    ports = {"ports": [{"port": 443}], "selector": {"a": "b"}}
    made = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": ports}
    estate.client.create("services", made, "default")
    estate.settle()
    text = 'endpointslices for service/s in "default" have no addresses with port name ""'
    assert condition() == ("MissingEndpoints", text)


@pytest.mark.parametrize(
    ("client", "why"),
    [
        (
            {"service": {"name": "hook", "namespace": "default", "path": "/convert"}},
            'Post "https://hook.default.svc:443/convert?timeout=30s": service "hook" not found',
        ),
        (
            {"url": "https://nowhere.invalid/convert"},
            'Post "https://nowhere.invalid/convert?timeout=30s": dial tcp: lookup nowhere.invalid: no such host',
        ),
    ],
)
def test_conversion_webhooks_cannot_be_reached(estate: Any, definition: Any, client: dict, why: str) -> None:
    """The stored version works, the other one answers 500 with the real text; the cluster's own work goes on."""
    made = definition({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    made["spec"]["versions"].append({**made["spec"]["versions"][0], "name": "v2", "storage": False})
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": client}
    made["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    estate.define(made)
    held = _widget("w", spec={"x": 1})
    held["metadata"]["finalizers"] = ["a.b/c"]
    estate.client.create("widgets.ex.io", held, "default")
    row = estate.registry.table.lookup("ex.io", "v2", "widgets")
    with pytest.raises(ApiError) as caught:
        estate.registry.view(row, estate.registry.get(row, "w", "default"))
    assert (caught.value.code, str(caught.value)) == (
        500,
        f"conversion webhook for ex.io/v1, Kind=Widget failed: {why}",
    )
    estate.client.delete(DEFINITIONS, "widgets.ex.io")
    estate.settle()
    estate.client.patch("widgets.ex.io", "w", "default", {"metadata": {"finalizers": None}})
    estate.settle()
    assert estate.registry.table.find("widgets.ex.io") is None
    assert estate.plane.defects == []


def test_a_condition_without_a_type_stops_nobody(estate: Any, definition: Any) -> None:
    """Whatever clients write into the status of a definition, controllers go on."""
    estate.define(definition(SPEC))
    state = {"status": {"conditions": [{"message": "odd"}]}}
    estate.client.patch(DEFINITIONS, "widgets.ex.io", "", state, subresource="status")
    estate.settle()
    assert _conditions(estate)["Established"][0] == "True"
    assert estate.plane.defects == []
