"""ValidatingAdmissionPolicies: what is in force, what is said (recorded from Kubernetes 1.34), and how they are checked."""

from typing import Any

import pytest
from planes import fresh_plane

from itbench.kube.client import ApiError
from itbench.kube.local import LocalClient
from itbench.kube.requests import Options
from itbench.world.estate import World

POLICIES = "validatingadmissionpolicies.admissionregistration.k8s.io"
BINDINGS = "validatingadmissionpolicybindings.admissionregistration.k8s.io"
RULES = {
    "resourceRules": [
        {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["CREATE", "UPDATE", "DELETE"],
            "resources": ["configmaps"],
        }
    ]
}
BY = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: "
CONFIG = {"kind": "ConfigMap", "apiVersion": "v1"}
PARAMS = {"paramKind": CONFIG, "validations": [{"expression": "params.data.max == object.data.n"}]}


def _put(client: LocalClient, spec: dict[str, Any], binding: dict[str, Any]) -> None:
    head = {"apiVersion": "admissionregistration.k8s.io/v1"}
    policy = {"kind": "ValidatingAdmissionPolicy", "metadata": {"name": "p"}}
    client.create(POLICIES, {**head, **policy, "spec": {"matchConstraints": RULES, **spec}})
    bound = {"policyName": "p", "validationActions": ["Deny"], **binding}
    kind = {"kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "b"}}
    client.create(BINDINGS, {**head, **kind, "spec": bound})


def _create(client: LocalClient, **data: str) -> list[str]:
    """Create a ConfigMap: the warnings."""
    registry = client.registry
    body = {**CONFIG, "metadata": {"name": "x"}, "data": data or {"n": "5"}}
    options = Options(user="eve", groups=("system:authenticated",))
    return registry.create(registry.table.named("configmaps"), body, "default", options).warnings


CASES: list[tuple[dict[str, Any], dict[str, Any], int, str]] = [
    (
        {"validations": [{"expression": "object.data.n == '3'"}]},
        {},
        422,
        BY + "failed expression: object.data.n == '3'",
    ),
    (
        {"validations": [{"expression": "object.data.n == '3'", "message": "must be 3", "reason": "Forbidden"}]},
        {},
        403,
        BY + "must be 3",
    ),
    (
        {
            "validations": [
                {"expression": "object.data.n == '3'", "message": "m", "messageExpression": "'n is ' + object.data.n"}
            ]
        },
        {},
        422,
        BY + "n is 5",
    ),
    (
        {"validations": [{"expression": "object.data.zz == '3'", "message": "must be 3"}]},
        {},
        422,
        BY + "expression 'object.data.zz == '3'' resulted in error: no such key: zz",
    ),
    (
        {
            "variables": [{"name": "v", "expression": "object.data.n"}],
            "validations": [{"expression": "variables.v == '3'", "messageExpression": "'v ' + variables.v"}],
        },
        {},
        422,
        BY + "v 5",
    ),
    (
        {"matchConditions": [{"name": "c", "expression": "object.zz == 1"}], "validations": [{"expression": "false"}]},
        {},
        422,
        BY + "expression 'object.zz == 1' resulted in error: no such key: zz",
    ),
    (
        {
            "validations": [
                {
                    "expression": "namespaceObject.metadata.name == 'x'",
                    "messageExpression": "request.operation + ' ' + request.userInfo.username + ' ' + request.namespace",
                }
            ]
        },
        {},
        422,
        BY + "CREATE eve default",
    ),
    (
        PARAMS,
        {"paramRef": {"name": "nope", "parameterNotFoundAction": "Deny"}},
        422,
        BY + "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction",
    ),
    (
        {**PARAMS, "paramKind": {"apiVersion": "foo/v1", "kind": "Zonk"}},
        {"paramRef": {"name": "nope", "parameterNotFoundAction": "Allow"}},
        422,
        "ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: failed to find resource referenced by "
        "paramKind: 'foo/v1, Kind=Zonk'",
    ),
]


@pytest.mark.parametrize(("spec", "binding", "code", "text"), CASES)
def test_refusals_read_as_on_a_real_server(spec: dict[str, Any], binding: dict[str, Any], code: int, text: str) -> None:
    """Code, message and cause of what a policy denies."""
    client = fresh_plane().client("test")
    _put(client, spec, binding)
    with pytest.raises(ApiError) as refused:
        _create(client)
    assert refused.value.code == code
    assert str(refused.value) == f'configmaps "x" is forbidden: {text}'
    assert refused.value.status["details"]["causes"] == [{"message": text}]


@pytest.mark.parametrize(
    ("spec", "binding"),
    [
        ({"validations": [{"expression": "object.data.n == '5'"}]}, {}),
        ({"failurePolicy": "Ignore", "validations": [{"expression": "object.data.zz == '3'"}]}, {}),
        ({"matchConditions": [{"name": "c", "expression": "false"}], "validations": [{"expression": "false"}]}, {}),
        (PARAMS, {"paramRef": {"name": "nope", "parameterNotFoundAction": "Allow"}}),
        (
            {"validations": [{"expression": "false"}]},
            {"matchResources": {"objectSelector": {"matchLabels": {"z": "z"}}}},
        ),
        (
            {"validations": [{"expression": "false"}]},
            {"matchResources": {"namespaceSelector": {"matchLabels": {"z": "z"}}}},
        ),
    ],
)
def test_what_holds_or_does_not_apply_is_admitted(spec: dict[str, Any], binding: dict[str, Any]) -> None:
    """Conditions, selectors, the failure policy and missing parameters let a write through."""
    client = fresh_plane().client("test")
    _put(client, spec, binding)
    assert _create(client) == []


def test_warnings_go_to_the_client_and_notes_to_the_audit() -> None:
    """Actions Warn and Audit refuse nothing, but tell."""
    client = fresh_plane().client("test")
    rows = [{"expression": "object.data.n == '3'", "message": "must be 3"}, {"expression": "1 == 2"}]
    _put(client, {"validations": rows}, {"validationActions": ["Warn", "Audit"]})
    head = "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': "
    assert _create(client) == [head + "must be 3", head + "failed expression: 1 == 2"]


def test_parameters_come_from_every_object_that_a_selector_finds() -> None:
    """Each parameter object is held against the write."""
    client = fresh_plane().client("test")
    for name, value in (("one", "5"), ("two", "6")):
        body = {**CONFIG, "metadata": {"name": name, "labels": {"limit": "y"}}, "data": {"max": value}}
        client.create("configmaps", body, "default")
    ref = {"selector": {"matchLabels": {"limit": "y"}}, "parameterNotFoundAction": "Deny"}
    _put(client, {**PARAMS, "validations": [{"expression": "params.data.max >= object.data.n"}]}, {"paramRef": ref})
    assert _create(client, n="5") == []
    with pytest.raises(ApiError, match="resulted in error: no such key: data"):
        client.delete("configmaps", "x", "default")
    with pytest.raises(ApiError, match="failed expression"):
        client.patch("configmaps", "x", "default", {"data": {"n": "6"}})


def test_policies_see_updates_and_deletes_with_the_old_state() -> None:
    """`oldObject` is what was there; on delete there is no `object`."""
    client = fresh_plane().client("test")
    _create(client, n="5")
    rows = [
        {
            "expression": "request.operation != 'DELETE' || oldObject.data.n == '7'",
            "messageExpression": "string(object == null)",
        },
        {"expression": "request.operation == 'DELETE' || oldObject.data.n != object.data.n"},
    ]
    _put(client, {"validations": rows}, {})
    with pytest.raises(ApiError, match="denied request: true"):
        client.delete("configmaps", "x", "default")
    client.patch("configmaps", "x", "default", {"data": {"n": "7"}})
    with pytest.raises(ApiError, match="failed expression"):
        client.patch("configmaps", "x", "default", {"data": {"more": "7"}})
    client.delete("configmaps", "x", "default")


INVALID: list[tuple[dict[str, Any], str]] = [
    (
        {"validations": [{"expression": "foo.bar == 1"}]},
        'spec.validations[0].expression: Invalid value: "foo.bar == 1": compilation failed: ERROR: <input>:1:1: undeclared '
        "reference to 'foo' (in container '')\n | foo.bar == 1\n | ^",
    ),
    (
        {"validations": [{"expression": "params.x == 1"}]},
        'spec.validations[0].expression: Invalid value: "params.x == 1": compilation failed: ERROR: <input>:1:1: undeclared '
        "reference to 'params' (in container '')\n | params.x == 1\n | ^",
    ),
    (
        {"validations": [{"expression": "1 + 1"}]},
        'spec.validations[0].expression: Invalid value: "1 + 1": must evaluate to bool but got int',
    ),
    (
        {"validations": [{"expression": "true", "messageExpression": "1"}]},
        'spec.validations[0].messageExpression: Invalid value: "1": must evaluate to string but got int',
    ),
    (
        {"auditAnnotations": [{"key": "x", "valueExpression": "1"}]},
        'spec.auditAnnotations[0].valueExpression: Invalid value: "1": must evaluate to one of [string null_type] but got int',
    ),
    (
        {"variables": [{"name": "a-b", "expression": "1"}], "validations": [{"expression": "true"}]},
        'spec.variables[0].name: Invalid value: "a-b": must be a valid CEL identifier',
    ),
    (
        {"failurePolicy": "X", "validations": [{"expression": "true"}]},
        'spec.failurePolicy: Unsupported value: "X": supported values: "Fail", "Ignore"',
    ),
]


@pytest.mark.parametrize(("spec", "text"), INVALID)
def test_bad_policies_are_refused_with_the_real_causes(spec: dict[str, Any], text: str) -> None:
    """Recorded 422 texts of a real server."""
    with pytest.raises(ApiError) as refused:
        _put(fresh_plane().client("test"), spec, {})
    assert (refused.value.code, str(refused.value).split(" is invalid: ", 1)[1]) == (422, text)


def test_a_policy_against_everything_stops_nobody_but_those_it_names() -> None:
    """Kubelets and controllers whose writes a policy refuses bear with it and try again: the world goes on."""
    world = World.create(None, seed=1, nodes=1)
    client = world.planes["main"].client("kubectl")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    container = {"name": "c", "image": "nginx:1.25"}
    client.create("pods", {**pod, "spec": {"containers": [container]}}, "default")
    world.advance(60.0)
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
    row = [{"expression": "authorizer.requestResource.check('zonk').allowed() && false"}]
    _put(client, {"matchConstraints": {"resourceRules": [everything]}, "validations": row}, {})
    world.advance(120.0)
    with pytest.raises(ApiError, match="denied request"):
        client.delete("pods", "p", "default")
    client.delete(BINDINGS, "b")
    client.delete("pods", "p", "default")
    world.advance(240.0)
    assert client.list("pods", "default") == []
