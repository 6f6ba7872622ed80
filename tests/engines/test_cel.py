"""CEL over objects."""

import pytest

from itbench.engines.cel import over_objects
from itbench.engines.child import Child, EngineCrash

OBJECTS = {
    "deployments.apps": [{"metadata": {"namespace": "shop", "name": "checkout"}, "spec": {"replicas": 2}}],
    "networkpolicies.networking.k8s.io": [{"metadata": {"namespace": "shop", "name": "deny"}}],
    "nodes": [{"metadata": {"name": "node-1"}}],
}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('deployment("shop", "checkout").spec.replicas >= 2', {"value": True}),
        ('deployment("shop", "absent") == null', {"value": True}),
        ('node("node-1").metadata.name', {"value": "node-1"}),
        ("deployments().size()", {"value": 1}),
        ('networkpolicy("shop", "deny") != null', {"value": True}),
    ],
)
def test_expressions_see_objects_by_kind_namespace_and_name(expression, expected):
    assert over_objects(OBJECTS, [expression]) == [expected]


@pytest.mark.parametrize("expression", ["deployment(", 'deployment("a", "b").spec.replicas', "nosuch()"])
def test_an_expression_that_fails_is_an_error_and_never_a_value(expression):
    (result,) = over_objects(OBJECTS, [expression])
    assert "value" not in result and result["error"]


def test_a_child_that_dies_is_reported_as_a_crash():
    with Child("itbench.engines.nosuch", timeout_s=20) as child, pytest.raises(EngineCrash, match="exit"):
        child.ask({})
