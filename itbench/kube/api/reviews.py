"""Kinds that are asked, never stored: access reviews, token reviews, who am I, token requests; called by `server`."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from itbench.kube.api import bodies
from itbench.kube.api.answers import PLAIN, Form, encode, not_acceptable
from itbench.kube.api.door import Call
from itbench.kube.client import Obj
from itbench.kube.rbac import User, access_from
from itbench.kube.status import Cause, invalid

_DEFAULT_LIFETIME_S = 3600


def _review(call: Call, body: Obj, status: Obj) -> Obj:
    """The body as it came, with kind, metadata and the verdict."""
    resource = call.resource
    head = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": {**body.get("metadata", {})}}
    spec = {"spec": body["spec"]} if "spec" in body else {}
    return head | spec | {"status": status}


def _decide(call: Call, user: User, spec: Obj) -> Obj:
    attributes = spec.get("resourceAttributes") or spec.get("nonResourceAttributes")
    if not attributes:
        text = "Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified"
        cause = Cause("FieldValueInvalid", "spec.resourceAttributes", text)
        raise invalid("", call.resource.group, "", [cause])
    allowed, reason = call.door.authorizer.allowed(user, access_from(attributes))
    return {"allowed": allowed} | ({"reason": reason} if reason else {})


def _self_access(call: Call, body: Obj) -> Obj:
    return _review(call, body, _decide(call, call.user, body.get("spec") or {}))


def _subject_access(call: Call, body: Obj) -> Obj:
    spec = body.get("spec") or {}
    user = User(spec.get("user", ""), tuple(spec.get("groups") or spec.get("group") or ()), spec.get("uid", ""))
    return _review(call, body, _decide(call, user, spec))


def _self_rules(call: Call, body: Obj) -> Obj:
    namespace = (body.get("spec") or {}).get("namespace", "")
    rules = call.door.authorizer.rules_for(call.user, namespace)
    resources = [
        {key: list(rule[key]) for key in ("verbs", "apiGroups", "resources", "resourceNames") if rule.get(key)}
        for rule in rules
        if rule.get("resources")
    ]
    paths = [
        {"verbs": list(rule["verbs"]), "nonResourceURLs": list(rule["nonResourceURLs"])}
        for rule in rules
        if rule.get("nonResourceURLs")
    ]
    return _review(call, body, {"resourceRules": resources, "nonResourceRules": paths, "incomplete": False})


def _self_subject(call: Call, body: Obj) -> Obj:
    made = _review(call, body, {"userInfo": call.user.info})
    made.pop("spec", None)
    made["metadata"] = {"creationTimestamp": _wire(call)}
    return made


def _token_review(call: Call, body: Obj) -> Obj:
    spec = body.get("spec") or {}
    user = call.door.tokens.user(spec.get("token", ""))
    if user is None:
        return _review(call, body, {"user": {}, "error": "invalid bearer token"})
    return _review(call, body, {"authenticated": True, "user": user.info, "audiences": spec.get("audiences") or []})


def _wire(call: Call, ahead_s: float = 0.0) -> str:
    """Wire time now as RFC 3339."""
    pacer = call.door.pacer
    moment = datetime.fromtimestamp(int(pacer.to_wire(pacer.now()) + ahead_s), UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


_KINDS: dict[str, Callable[[Call, Obj], Obj]] = {
    "selfsubjectaccessreviews.authorization.k8s.io": _self_access,
    "subjectaccessreviews.authorization.k8s.io": _subject_access,
    "localsubjectaccessreviews.authorization.k8s.io": _subject_access,
    "selfsubjectrulesreviews.authorization.k8s.io": _self_rules,
    "selfsubjectreviews.authentication.k8s.io": _self_subject,
    "tokenreviews.authentication.k8s.io": _token_review,
}
RESOURCES = frozenset(_KINDS)


async def review(call: Call) -> web.Response:
    """POST of a review kind. The answer's times are wire times already."""
    body = bodies.read_object(await call.request.read(), call.content_type)
    call.trace.dry = True
    if call.form.kind in ("table", "partial"):
        raise not_acceptable()
    answer = _KINDS[call.target.qualified](call, body)
    return _plain(call, answer)


async def request_token(call: Call) -> web.Response:
    """POST to `serviceaccounts/NAME/token`."""
    body = bodies.read_object(await call.request.read(), call.content_type)
    registry, target = call.door.registry, call.target
    account = registry.get(registry.table.named("serviceaccounts"), target.name, target.namespace).object
    spec: dict[str, Any] = dict(body.get("spec") or {})
    lifetime = int(spec.get("expirationSeconds") or _DEFAULT_LIFETIME_S)
    if lifetime < 600:
        cause = Cause(
            "FieldValueInvalid",
            "spec.expirationSeconds",
            f"Invalid value: {lifetime}: may not specify a duration less than 10 minutes",
        )
        raise invalid("TokenRequest", "authentication.k8s.io", target.name, [cause])
    audiences = list(spec.get("audiences") or [call.door.tokens.issuer])
    token, _ = call.door.tokens.issue_service_account(account, lifetime, audiences, spec.get("boundObjectRef"))
    answer = {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": target.name, "namespace": target.namespace, "creationTimestamp": _wire(call)},
        "spec": {
            "audiences": audiences,
            "expirationSeconds": lifetime,
            "boundObjectRef": spec.get("boundObjectRef"),
        },
        "status": {"token": token, "expirationTimestamp": _wire(call, lifetime)},
    }
    return _plain(call, answer)


def _plain(call: Call, answer: Obj) -> web.Response:
    """An answer whose times must not be translated."""
    form = Form("yaml") if call.form.kind == "yaml" else PLAIN
    return call.wrap(encode(answer, PLAIN), 201, form, ())
