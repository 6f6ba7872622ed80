"""The webhook server of the test image: what it decides, and what it does to objects."""

import base64
import json
from typing import Any

import pytest

from itbench.world import agnhost_conversion
from itbench.world.agnhost_webhook import answer


def _ask(path: str, obj: dict[str, Any], operation: str = "CREATE") -> dict[str, Any]:
    shown = {"oldObject": obj} if operation == "DELETE" else {"object": obj}
    name = (obj.get("metadata") or {}).get("name", "")
    request = {"uid": "u", "operation": operation, "name": name, **shown}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    response: dict[str, Any] = json.loads(answer(path, json.dumps(review).encode(), b"").body)["response"]
    assert response["uid"] == "u"
    return response


@pytest.mark.parametrize(
    ("path", "obj", "operation", "message"),
    [
        ("/always-deny", {}, "CREATE", "this webhook denies all requests"),
        (
            "/pods",
            {"spec": {"containers": [{"name": "webhook-disallow"}]}},
            "CREATE",
            "the pod contains unwanted container name",
        ),
        (
            "/configmaps",
            {"data": {"webhook-e2e-test": "webhook-disallow"}},
            "UPDATE",
            "the configmap contains unwanted key and value",
        ),
        (
            "/configmaps",
            {"data": {"webhook-e2e-test": "webhook-nondeletable"}},
            "DELETE",
            "the configmap cannot be deleted because it contains unwanted key and value",
        ),
        (
            "/pods/attach",
            {"metadata": {"name": "to-be-attached-pod"}},
            "CONNECT",
            "attaching to pod 'to-be-attached-pod' is not allowed",
        ),
    ],
)
def test_it_refuses_what_the_suite_marks(path: str, obj: dict[str, Any], operation: str, message: str) -> None:
    """Each path has its own mark and its own words."""
    response = _ask(path, obj, operation)
    assert (response["allowed"], response["status"]["message"]) == (False, message)


@pytest.mark.parametrize(
    "path", ["/pods", "/configmaps", "/custom-resource", "/crd", "/pods/attach", "/mutating-configmaps"]
)
def test_everything_else_passes(path: str) -> None:
    """Unmarked objects are let through unchanged."""
    response = _ask(path, {"metadata": {"name": "x"}, "data": {"a": "b"}})
    assert response == {"uid": "u", "allowed": True}


def test_it_patches_in_stages() -> None:
    """The second stage waits for what the first one wrote."""
    first = _ask("/mutating-configmaps", {"data": {"mutation-start": "yes"}})
    rows = json.loads(base64.b64decode(first["patch"]))
    assert [row["path"] for row in rows] == ["/data/mutation-stage-1"]
    second = _ask("/mutating-configmaps", {"data": {"mutation-start": "yes", "mutation-stage-1": "yes"}})
    assert len(json.loads(base64.b64decode(second["patch"]))) == 2


def test_slow_paths_say_how_long_they_take() -> None:
    """Five seconds, or for ever."""
    review = {"apiVersion": "admission.k8s.io/v1", "request": {"uid": "u", "operation": "CREATE", "object": {}}}
    body = json.dumps(review).encode()
    assert answer("/always-allow-delay-5s", body, b"").delay_s == 5.0
    assert answer("/readyz", b"", b"").status == 200
    assert answer("/nowhere", body, b"").status == 404


def _convert(wanted: str, *objects: dict[str, Any]) -> dict[str, Any]:
    request = {"uid": "u", "desiredAPIVersion": wanted, "objects": list(objects)}
    review = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}
    shown = agnhost_conversion.answer("/crdconvert", json.dumps(review).encode(), b"")
    found: dict[str, Any] = json.loads(shown.body)["response"]
    return found


def test_the_converter_goes_both_ways() -> None:
    """`hostPort` becomes host and port, and is put together again."""
    first = {"apiVersion": "stable.example.com/v1", "kind": "X", "metadata": {"name": "a"}, "hostPort": "h:80"}
    second = _convert("stable.example.com/v2", first)
    (there,) = second["convertedObjects"]
    assert (second["result"], there["host"], there["port"]) == ({"status": "Success"}, "h", "80")
    assert _convert("stable.example.com/v1", there)["convertedObjects"] == [first]


@pytest.mark.parametrize(
    ("have", "wanted", "message"),
    [
        (
            "stable.example.com/v1",
            "stable.example.com/v1",
            "conversion from a version to itself should not call the webhook: stable.example.com/v1",
        ),
        ("stable.example.com/v1", "stable.example.com/v3", 'unexpected conversion version "stable.example.com/v3"'),
        ("ex.io/v1", "stable.example.com/v2", 'unexpected conversion version "ex.io/v1"'),
    ],
)
def test_the_converter_refuses_what_it_does_not_know(have: str, wanted: str, message: str) -> None:
    """The result says why, and there are no objects."""
    found = _convert(wanted, {"apiVersion": have, "kind": "X", "metadata": {}})
    assert (found["result"], found["convertedObjects"]) == ({"status": "Failed", "message": message}, [])
