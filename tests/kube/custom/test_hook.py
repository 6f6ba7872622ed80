"""Conversion webhooks in the world: what is asked, what becomes of the answer, and the real server's words for bad ones."""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from itbench.kube.client import ApiError
from itbench.kube.door import Request, Response
from itbench.kube.requests import ListQuery, Options

BUNDLE = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n").decode()
Answer = Callable[[dict, list], Any]
"""(request of the review, its objects in the version asked for) -> the answer, or a Response."""


class Program:
    """The nodes behind the plane: one Service that converts."""

    def __init__(self, answer: Answer) -> None:
        self.answer, self.asked = answer, []

    def http(self, host: str, port: int, request: Request, *, source: str = "") -> tuple[Response | None, str]:
        """One review."""
        review = json.loads(request.body)
        self.asked.append((host, port, request.path, review))
        wanted = review["request"]
        objects = [{**obj, "apiVersion": wanted["desiredAPIVersion"]} for obj in wanted["objects"]]
        found = self.answer(wanted, objects)
        if isinstance(found, Response):
            return found, ""
        return Response(200, {"Content-Type": "application/json"}, json.dumps(found).encode()), ""


def _review(request: dict, objects: list, **more: Any) -> dict:
    response = {"uid": request["uid"], "convertedObjects": objects, "result": {"status": "Success"}, **more}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response}


def _meta(objects: list, **more: Any) -> list:
    return [{**obj, "metadata": {**obj["metadata"], **more}} for obj in objects]


@pytest.fixture
def converted(estate: Any) -> Callable[[Answer], Program]:
    """Two versions, converted by a Service with an endpoint; one object `w` is stored as v1."""

    def make(answer: Answer) -> Program:
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        fields = [{"jsonPath": ".host"}]
        rows = [{"name": v, "served": True, "storage": v == "v1", "schema": schema} for v in ("v1", "v2")]
        rows[1]["selectableFields"] = fields
        rows[1]["schema"] = {
            "openAPIV3Schema": {"type": "object", "properties": {"host": {"type": "string"}, "x": {"type": "integer"}}}
        }
        service = {"name": "hook", "namespace": "default", "path": "/convert"}
        webhook = {"conversionReviewVersions": ["v1"], "clientConfig": {"service": service, "caBundle": BUNDLE}}
        spec = {
            "group": "ex.io",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "singular": "widget", "listKind": "WidgetList"},
            "versions": rows,
            "conversion": {"strategy": "Webhook", "webhook": webhook},
        }
        estate.define(
            {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": "widgets.ex.io"},
                "spec": spec,
            }
        )
        meta = {"name": "hook"}
        port = {"port": 443}
        estate.client.create("services", {"metadata": meta, "spec": {"ports": [port]}}, "default")
        piece = {
            "metadata": {"name": "hook-1", "labels": {"kubernetes.io/service-name": "hook"}},
            "addressType": "IPv4",
            "ports": [{"name": "", "port": 443}],
            "endpoints": [{"addresses": ["10.0.0.9"]}],
        }
        estate.client.create("endpointslices.discovery.k8s.io", piece, "default")
        body = {"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": "w", "labels": {"a": "b"}}, "x": 1}
        estate.client.create("widgets.ex.io", body, "default")
        program = Program(answer)
        estate.registry.services.nodes = program
        return program

    return make


def _read(estate: Any) -> dict:
    row = estate.registry.table.lookup("ex.io", "v2", "widgets")
    found: dict = estate.registry.view(row, estate.registry.get(row, "w", "default"))
    return found


def test_an_object_is_read_in_another_version(estate: Any, converted: Any) -> None:
    """The review names the version; of the metadata only labels and annotations are the webhook's."""
    program = converted(
        lambda request, rows: _review(
            request, _meta(rows, labels={"new": "1"}, finalizers=["x/y"], resourceVersion="1")
        )
    )
    found, stored = _read(estate), estate.client.get("widgets.ex.io", "w", "default")
    assert (found["apiVersion"], found["x"], found["metadata"]["labels"]) == ("ex.io/v2", 1, {"new": "1"})
    assert "finalizers" not in found["metadata"]
    assert found["metadata"]["resourceVersion"] == stored["metadata"]["resourceVersion"]
    host, port, path, review = program.asked[0]
    assert (host, port, path) == ("hook.default.svc", 443, "/convert?timeout=30s")
    assert (review["kind"], review["request"]["desiredAPIVersion"]) == ("ConversionReview", "ex.io/v2")


def test_what_is_written_in_another_version_is_stored_converted(estate: Any, converted: Any) -> None:
    """A create in v2 asks for v1, and nobody is asked to read the stored version."""

    def answer(request: dict, rows: list) -> dict:
        to_v1 = request["desiredAPIVersion"] == "ex.io/v1"
        move = ("host", "old") if to_v1 else ("old", "host")
        return _review(
            request, [{**{k: v for k, v in row.items() if k != move[0]}, move[1]: row.get(move[0])} for row in rows]
        )

    program = converted(answer)
    row = estate.registry.table.lookup("ex.io", "v2", "widgets")
    body = {"apiVersion": "ex.io/v2", "kind": "Widget", "metadata": {"name": "n"}, "host": "h1"}
    made = estate.registry.create(row, body, "default", Options())
    assert made.object["host"] == "h1"
    program.asked.clear()
    assert estate.client.get("widgets.ex.io", "n", "default")["old"] == "h1"
    assert program.asked == []
    page = estate.registry.list(row, "default", ListQuery(fields="host=h1"))
    assert [entry.name for entry in page.entries] == ["n"]


_WHO = "conversion webhook for ex.io/v1, Kind=Widget "
_BAD: list[tuple[Answer, str]] = [
    (lambda r, o: _review(r, [], result={"status": "Failed", "message": "no way"}), "failed: no way"),
    (
        lambda r, o: _review(r, [], result={"status": "Failure"}),
        "failed: response.result.status was 'Failure', not 'Success'",
    ),
    (lambda r, o: _review(r, o, result={}), "failed: response.result.status was '', not 'Success'"),
    (lambda r, o: _review(r, []), "returned 0 objects, expected 1"),
    (lambda r, o: _review(r, o + o), "returned 2 objects, expected 1"),
    (
        lambda r, o: _review(r, [{**o[0], "apiVersion": "ex.io/v3"}]),
        "returned invalid object at index 0: invalid groupVersion (expected ex.io/v2, received ex.io/v3)",
    ),
    (
        lambda r, o: _review(r, [{**o[0], "kind": "Foo"}]),
        "returned invalid object at index 0: invalid kind (expected Widget, received Foo)",
    ),
    (lambda r, o: _review(r, _meta(o, name="z")), "returned invalid object: must have the same name: w != z"),
    (
        lambda r, o: _review(r, _meta(o, namespace="z")),
        "returned invalid object: must have the same namespace: default != z",
    ),
    (
        lambda r, o: _review(r, [{**o[0], "metadata": "s"}]),
        "returned invalid object: must have the same name: w != ",
    ),
    (
        lambda r, o: {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"},
        "failed: no response provided",
    ),
    (
        lambda r, o: {**_review(r, o), "apiVersion": "apiextensions.k8s.io/v1beta1"},
        "failed: converting (v1beta1.ConversionReview) to (v1.ConversionReview): unknown conversion",
    ),
    (
        lambda r, o: {"a": 1},
        "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind=",
    ),
    (
        lambda r, o: Response(500, {}, b"oops"),
        'failed: an error on the server ("unknown") has prevented the request from succeeding',
    ),
    (lambda r, o: Response(404, {}, b"nf"), "failed: the server could not find the requested resource"),
]


@pytest.mark.parametrize(("answer", "text"), _BAD, ids=[text for _, text in _BAD])
def test_bad_answers_are_500_in_the_real_words(estate: Any, converted: Any, answer: Answer, text: str) -> None:
    """The texts were taken from a real API server that was given the same answers."""
    converted(answer)
    with pytest.raises(ApiError) as caught:
        _read(estate)
    assert (caught.value.code, str(caught.value)) == (500, _WHO + text)


def test_labels_of_the_answer_are_checked(estate: Any, converted: Any) -> None:
    """A label that is none is told with its field."""
    converted(lambda request, rows: _review(request, _meta(rows, labels={"a b": "1"})))
    with pytest.raises(ApiError, match=r'returned invalid metadata: metadata.labels: Invalid value: "a b": name part'):
        _read(estate)
