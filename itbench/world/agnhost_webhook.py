"""The webhook server of Kubernetes' test image (`agnhost webhook`): its paths and what each decides. Asked by `agnhost`."""

import base64
import json
from collections.abc import Callable
from math import inf
from typing import Any

from itbench.kube.door import Response

Obj = dict[str, Any]
_MARK, _NO, _KEPT = "webhook-e2e-test", "webhook-disallow", "webhook-nondeletable"
_SLOW_S = 5.0


def _patch(*operations: Obj) -> Obj:
    raw = json.dumps(list(operations)).encode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(raw).decode()}


def _deny(message: str) -> Obj:
    return {"allowed": False, "status": {"message": message}}


def _shown(request: Obj) -> Obj:
    found: Obj = request.get("oldObject" if request["operation"] == "DELETE" else "object") or {}
    return found


def _labels(request: Obj) -> dict[str, str]:
    return (_shown(request).get("metadata") or {}).get("labels") or {}


def _allow(request: Obj) -> Obj:
    return {"allowed": True, "status": {"message": "this webhook allows all requests"}}


def _refuse(request: Obj) -> Obj:
    return _deny("this webhook denies all requests")


def _add_label(request: Obj) -> Obj:
    labels = _labels(request)
    if not labels:
        return _patch({"op": "add", "path": "/metadata/labels", "value": {"added-label": "yes"}})
    if labels.get("added-label") == "yes":
        return {"allowed": True}
    return _patch({"op": "add", "path": "/metadata/labels/added-label", "value": "yes"})


def _pods(request: Obj) -> Obj:
    said = []
    mark = _labels(request).get(_MARK)
    if mark == _NO:
        said.append("the pod contains unwanted label")
    if mark == "wait-forever":
        said.append("the pod response should not be sent")
    if any(_NO in row["name"] for row in (_shown(request).get("spec") or {}).get("containers") or ()):
        said.append("the pod contains unwanted container name")
    return _deny("; ".join(said)) if said else {"allowed": True}


def _attach(request: Obj) -> Obj:
    if request.get("name") == "to-be-attached-pod":
        return _deny("attaching to pod 'to-be-attached-pod' is not allowed")
    return {"allowed": True}


def _mutate_pods(request: Obj) -> Obj:
    if (_shown(request).get("metadata") or {}).get("name") != "webhook-to-be-mutated":
        return {"allowed": True}
    container = {"image": "webhook-added-image", "name": "webhook-added-init-container", "resources": {}}
    return _patch({"op": "add", "path": "/spec/initContainers", "value": [container]})


def _data(what: str) -> Callable[[Obj], Obj]:
    """Refuse marked data of a kind."""

    def decide(request: Obj) -> Obj:
        value, deletes = (_shown(request).get("data") or {}).get(_MARK), request["operation"] == "DELETE"
        if value == _NO and not deletes:
            return _deny(f"the {what} contains unwanted {'data' if 'custom' in what else 'key and value'}")
        if value == _KEPT and deletes:
            return _deny(f"the {what} cannot be deleted because it contains unwanted key and value")
        return {"allowed": True}

    return decide


def _mutate_data(request: Obj) -> Obj:
    data = _shown(request).get("data") or {}
    stages = (("mutation-start", "mutation-stage-1"), ("mutation-stage-1", "mutation-stage-2"))
    rows = [
        {"op": "add", "path": f"/data/{stage}", "value": "yes"} for before, stage in stages if data.get(before) == "yes"
    ]
    return _patch(*rows) if rows else {"allowed": True}


def _definitions(request: Obj) -> Obj:
    return _deny("the crd contains unwanted label") if _labels(request).get(_MARK) == _NO else {"allowed": True}


PATHS: dict[str, Callable[[Obj], Obj]] = {
    "/always-allow-delay-5s": _allow,
    "/always-deny": _refuse,
    "/add-label": _add_label,
    "/pods": _pods,
    "/pods/attach": _attach,
    "/mutating-pods": _mutate_pods,
    "/configmaps": _data("configmap"),
    "/mutating-configmaps": _mutate_data,
    "/custom-resource": _data("custom resource"),
    "/mutating-custom-resource": _mutate_data,
    "/crd": _definitions,
}


def answer(path: str, body: bytes, certificate: bytes) -> Response:
    """What the server says to one review."""
    if path == "/readyz":
        return Response(200, {"Content-Type": "text/plain; charset=utf-8"}, b"ok", certificate)
    decide = PATHS.get(path)
    if decide is None:
        return Response(404, {"Content-Type": "text/plain; charset=utf-8"}, b"404 page not found\n", certificate)
    review = json.loads(body)
    request = review["request"]
    delay_s = _SLOW_S if path.endswith("-5s") else 0.0
    if path == "/pods" and _labels(request).get(_MARK) == "wait-forever":
        delay_s = inf
    response = {"uid": request["uid"], **decide(request)}
    shown = {"kind": "AdmissionReview", "apiVersion": review["apiVersion"], "response": response}
    raw = json.dumps(shown).encode()
    return Response(200, {"Content-Type": "application/json"}, raw, certificate, delay_s)
