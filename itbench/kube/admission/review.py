"""AdmissionReview: what is sent to a webhook, and what its answer means; pure. Called by `webhooks`."""

import base64
import binascii
from dataclasses import dataclass, field
from typing import Any

import orjson

from itbench.kube.admission.attributes import new_object, old_object, request_of
from itbench.kube.admission.write import Write
from itbench.kube.client import ApiError, Obj
from itbench.kube.door import Response
from itbench.kube.resources import Resource
from itbench.kube.status import failure

VERSION = "admission.k8s.io/v1"
_HEAD = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
_DISTURBED = 'an error on the server ("{}") has prevented the request from succeeding'
_ANSWERS = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    403: "forbidden: unknown",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}


class CallFailed(Exception):
    """The webhook could not be asked, or its answer is no answer; the text is what follows the webhook's name."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A webhook's verdict."""

    allowed: bool
    status: Obj = field(default_factory=dict)
    patch: Any = None
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def refusal(self, name: str) -> ApiError:
        """The error that the client gets."""
        message = self.status.get("message") or self.status.get("reason") or ""
        said = f": {message}" if message else " without explanation"
        code = self.status.get("code", 0)
        text = f'admission webhook "{name}" denied the request{said}'
        return failure(code if code >= 400 else 400, str(self.status.get("reason", "")), text)


def request(write: Write, resource: Resource, uid: str, *, mutating: bool) -> bytes:
    """The body of the call. On create, mutating webhooks see the object before it got uid, time and generated name."""
    shown = {"uid": uid, **request_of(write, resource)}
    new = new_object(write, resource)
    if mutating and write.operation == "CREATE" and new is not None and not write.subresource:
        hidden = ["uid", "creationTimestamp", *(["name"] if new["metadata"].get("generateName") else [])]
        new = {**new, "metadata": {key: value for key, value in new["metadata"].items() if key not in hidden}}
        if "name" in hidden:
            shown.pop("name", None)
    last = {key: shown.pop(key) for key in ("dryRun", "options")}
    shown |= {"object": new, "oldObject": old_object(write, resource), **last}
    return orjson.dumps({"kind": "AdmissionReview", "apiVersion": VERSION, "request": shown})


def answer(response: Response, uid: str, *, mutating: bool) -> Answer:
    """The verdict in a response.

    Raises:
        CallFailed: it is none.
    """
    body = _object(response)
    found = body.get("response")
    if found is None:
        raise CallFailed("received invalid webhook response: webhook response was absent")
    if found.get("uid", "") != uid:
        said = f'expected response.uid="{uid}", got "{found.get("uid", "")}"'
        raise CallFailed(f"received invalid webhook response: {said}")
    patch, kind = found.get("patch"), found.get("patchType")
    if patch and not mutating:
        raise CallFailed("received invalid webhook response: validating webhook may not return response.patch")
    if patch and kind is None:
        raise CallFailed(
            "received invalid webhook response: webhook returned response.patch but not response.patchType"
        )
    return Answer(
        allowed=bool(found.get("allowed")),
        status=found.get("status") or {},
        patch=_patch(patch) if patch and kind == "JSONPatch" else None,
        warnings=tuple(found.get("warnings") or ()),
        notes=tuple(f"{key}: {value}" for key, value in (found.get("auditAnnotations") or {}).items()),
    )


def _object(response: Response) -> Obj:
    """The AdmissionReview in a response."""
    return envelope(
        response, VERSION, "AdmissionReview", "failed to call webhook: ", "received invalid webhook response: "
    )


def envelope(response: Response, wanted: str, kind: str, failed: str = "", invalid: str = "") -> Obj:
    """The object in a webhook's response.

    Args:
        wanted: its apiVersion; `kind`: its kind.
        failed: what is said before the text when the call came to nothing.
        invalid: what is said before it when another object came.

    Raises:
        CallFailed: there is none.
    """
    if not 200 <= response.status < 300:
        raise CallFailed(f"{failed}{_disturbance(response)}")
    if not response.body:
        form = next((value for key, value in response.headers.items() if key.lower() == "content-type"), "")
        said = f"0-length response with status code: {response.status} and content type: {form}"
        raise CallFailed(f"{failed}{said}")
    try:
        body = orjson.loads(response.body)
    except orjson.JSONDecodeError:
        body = ""
    if not isinstance(body, dict):
        form = {list: "array", str: "string", bool: "bool"}.get(type(body), "number")
        said = f"json: cannot unmarshal {form} into Go value of type {_HEAD}"
        raise CallFailed(f"{failed}couldn't get version/kind; json parse error: {said}")
    version, name = body.get("apiVersion", ""), body.get("kind", "")
    if (version, name) == (wanted, kind):
        return body
    raise CallFailed(_other(version, name, wanted, kind, failed, invalid))


def _other(version: str, name: str, wanted: str, kind: str, failed: str, invalid: str) -> str:
    """What is said of an object of another kind."""
    if name == kind and version == wanted.replace("/v1", "/v1beta1"):
        return f"{failed}converting (v1beta1.{kind}) to (v1.{kind}): unknown conversion"
    if version and name:
        return f'{failed}no kind "{name}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:110"'
    group = version if "/" in version else f"/{version}"
    return f"{invalid}expected webhook response of {wanted}, Kind={kind}, got {group}, Kind={name}"


def _disturbance(response: Response) -> str:
    """How a client words an answer that is an error."""
    try:
        body = orjson.loads(response.body)
    except orjson.JSONDecodeError:
        body = None
    if isinstance(body, dict) and body.get("kind") == "Status" and body.get("message"):
        return str(body["message"])
    text = response.body.decode(errors="replace").strip()
    if response.status in _ANSWERS:
        return _ANSWERS[response.status]
    return _DISTURBED.format(text if text.startswith("<") else "unknown")


def _patch(text: Any) -> Any:
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise CallFailed("failed to call webhook: illegal base64 data at input byte 0") from None
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        first = raw[:1].decode(errors="replace")
        said = f"invalid character '{first}' looking for beginning of value"
        raise CallFailed(f"received undecodable patch in webhook response: {said}") from None
