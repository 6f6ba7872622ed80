"""Label and field selectors, quantities, and the resource table."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from itbench.kube import schema
from itbench.kube.client import ApiError
from itbench.kube.quantity import canonical, format_quantity, milli, parse_quantity, units
from itbench.kube.resources import Resource, builtin_table
from itbench.kube.selectors import format_selector, matches, parse_fields, parse_labels, predicate


@pytest.mark.parametrize(
    ("text", "yes", "no"),
    [
        ("a=1", {"a": "1"}, {"a": "2"}),
        ("a==1", {"a": "1"}, {}),
        ("a!=1", {}, {"a": "1"}),
        ("a in (1, 2),b", {"a": "2", "b": ""}, {"a": "3", "b": ""}),
        ("a notin (1)", {"a": "2"}, {"a": "1"}),
        ("!a", {"b": "1"}, {"a": ""}),
        ("a>3", {"a": "4"}, {"a": "3"}),
        ("app==", {"app": ""}, {"app": "x"}),
    ],
)
def test_label_selectors_select(text: str, yes: dict, no: dict) -> None:
    """Every operator of the syntax."""
    assert parse_labels(text).matches(yes)
    assert not parse_labels(text).matches(no)


def test_bad_selectors_are_400_with_the_parsers_words() -> None:
    """What was found and what was expected."""
    with pytest.raises(ApiError) as caught:
        parse_labels("a=b=c")
    assert (caught.value.code, str(caught.value)) == (400, "found '=', expected: ',' or 'end of string'")
    with pytest.raises(ApiError, match="field label not supported: foo"):
        parse_fields("foo=bar", "pods")


def test_field_selectors_know_their_kinds_and_defaults() -> None:
    """Absent booleans count as false, events have fields of their own."""
    test = predicate("pods", "", "spec.nodeName=n,status.phase!=Failed,spec.hostNetwork=false")
    assert test is not None
    pod = {"metadata": {"name": "p"}, "spec": {"nodeName": "n"}, "status": {"phase": "Running"}}
    assert test(pod)
    assert not test({**pod, "status": {"phase": "Failed"}})
    events = predicate("events", "", "involvedObject.name=x,source=kubelet")
    assert events is not None
    assert events({"metadata": {}, "involvedObject": {"name": "x"}, "source": {"component": "kubelet"}})


def test_selector_objects_match_and_print() -> None:
    """Null selects nothing, empty everything; the text is that of Tables and Scale."""
    assert not matches(None, {"a": "b"})
    assert matches({}, {"a": "b"})
    selector = {
        "matchLabels": {"a": "b"},
        "matchExpressions": [{"key": "c", "operator": "NotIn", "values": ["y", "x"]}],
    }
    assert matches(selector, {"a": "b"})
    assert format_selector(selector) == "a=b,c notin (x,y)"


@settings(max_examples=80, deadline=None)
@given(
    st.fractions(min_value=0, max_value=10**12, max_denominator=1000).filter(
        lambda value: (value * 1000).denominator == 1
    )
)
def test_quantities_survive_formatting(value: Fraction) -> None:
    """The canonical text parses back to the same value, binary or not, and canonicalising is idempotent."""
    for binary in (False, True):
        text = format_quantity(value, binary=binary)
        assert parse_quantity(text) == value
        assert parse_quantity(canonical(text)) == value
        assert canonical(canonical(text)) == canonical(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1000m", "1"),
        ("1024Mi", "1Gi"),
        ("0.5", "500m"),
        ("1.5Gi", "1536Mi"),
        ("100M", "100M"),
        ("0", "0"),
        ("1e3", "1e3"),
    ],
)
def test_quantities_print_as_the_server_prints_them(text: str, shown: str) -> None:
    """The largest suffix that leaves a whole number."""
    assert canonical(text) == shown


def test_quantities_round_up_to_units() -> None:
    """CPU in thousandths, bytes in ones; nonsense is refused with the server's text."""
    assert (milli("100m"), milli("1"), milli("0.1u"), units("1Ki"), units("1500m")) == (100, 1000, 1, 1024, 2)
    with pytest.raises(ValueError, match="quantities must match the regular expression"):
        parse_quantity("abc")


def test_the_table_knows_names_kinds_and_versions() -> None:
    """By path, by name, by kind; the first version of a group is the preferred one; custom resources come and go."""
    table = builtin_table()
    assert table.named("horizontalpodautoscalers.autoscaling").version == "v2"
    assert table.by_kind("apps/v1", "Deployment") is table.lookup("apps", "v1", "deployments")
    eviction = table.named("pods").subresource("eviction")
    assert eviction is not None
    assert (eviction.group, eviction.version, eviction.kind) == ("policy", "v1", "Eviction")
    assert "chaos-mesh.org" in dict(table.groups())
    widget = Resource("x.y", "v1", "Widget", "widgets", "widget", True, custom=True)
    table.add(widget)
    assert table.find("widgets.x.y") is widget
    table.remove(widget)
    assert table.find("widgets.x.y") is None


def test_schemas_carry_merge_keys_and_defaults() -> None:
    """Ports are keyed by number and protocol, with the protocol's default."""
    pod = schema.of("v1", "Pod")
    assert pod is not None
    containers = pod.child("spec").child("containers")  # type: ignore[union-attr]
    assert containers is not None and containers.items is not None
    ports = containers.items.child("ports")
    assert ports is not None
    assert (containers.merge_key, ports.map_keys, ports.key_defaults) == (
        "name",
        ("containerPort", "protocol"),
        {"protocol": "TCP"},
    )


def test_openapi_documents_have_what_clients_read() -> None:
    """Descriptions, references, and the PATCH parameters that kubectl looks for."""
    document = schema.openapi_v3("apps/v1")
    assert document is not None
    patch = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert {row["name"] for row in patch["parameters"]} >= {"dryRun", "fieldValidation"}
    assert patch["x-kubernetes-group-version-kind"] == {"group": "apps", "kind": "Deployment", "version": "v1"}
    assert (
        "description"
        in document["components"]["schemas"]["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]["replicas"]
    )
    assert schema.openapi_v3("no.such/v1") is None
    assert schema.openapi_v3("chaos-mesh.org/v1alpha1") is not None
