"""Kinds that are asked, never stored: access reviews, rules reviews, token reviews, who am I; called by `server`."""

from collections.abc import Callable

from aiohttp import web

from itbench.kube.api import bodies
from itbench.kube.api.answers import PLAIN, Form, encode, not_acceptable
from itbench.kube.api.door import Call
from itbench.kube.client import ApiError, Obj
from itbench.kube.kinds.check import Check
from itbench.kube.rbac import User, access_from
from itbench.kube.status import bad_request, invalid


def _review(call: Call, body: Obj, status: Obj) -> Obj:
    """The body as it came, with kind, metadata and the verdict."""
    resource = call.resource
    head = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": {**(body.get("metadata") or {})}}
    spec = {"spec": body["spec"]} if "spec" in body else {}
    return head | spec | {"status": status}


def _refuse(call: Call, check: Check) -> ApiError:
    return invalid("", call.resource.group, "", check.causes)


def _shown(path: Obj) -> Obj:
    """Non-resource attributes as Go names them."""
    return {"Path": path.get("path", ""), "Verb": path.get("verb", "")}


def _check_attributes(spec: Obj, check: Check) -> None:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        text = "cannot be specified in combination with resourceAttributes"
        check.invalid("spec.nonResourceAttributes", _shown(path), text)
    for part in ("labelSelector", "fieldSelector"):
        selector = (resource or {}).get(part) or {}
        if selector.get("rawSelector") and selector.get("requirements"):
            field = f"spec.resourceAttributes.{part}.rawSelector"
            check.invalid(field, selector["rawSelector"], "may not specified at the same time as requirements")
    if resource is None and path is None:
        text = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        check.invalid("spec.resourceAttributes", None, text)


def _check_metadata(body: Obj, allowed: tuple[str, ...], check: Check) -> None:
    found = {key: value for key, value in (body.get("metadata") or {}).items() if key not in allowed and value}
    if found:
        check.invalid("metadata", found, "must be empty except for namespace" if allowed else "must be empty")


def _decide(call: Call, user: User, spec: Obj) -> Obj:
    attributes = spec.get("resourceAttributes") or spec.get("nonResourceAttributes") or {}
    allowed, reason = call.door.authorizer.allowed(user, access_from(attributes))
    return {"allowed": allowed} | ({"reason": reason} if reason else {})


def _self_access(call: Call, body: Obj) -> Obj:
    spec, check = body.get("spec") or {}, Check()
    _check_attributes(spec, check)
    _check_metadata(body, (), check)
    if check:
        raise _refuse(call, check)
    return _review(call, body, _decide(call, call.user, spec))


def _subject(spec: Obj) -> User:
    extra = tuple((key, tuple(values or ())) for key, values in (spec.get("extra") or {}).items())
    return User(spec.get("user", ""), tuple(spec.get("groups") or spec.get("group") or ()), spec.get("uid", ""), extra)


def _check_subject(spec: Obj, check: Check) -> None:
    _check_attributes(spec, check)
    if not spec.get("user") and not spec.get("groups"):
        check.invalid("spec.user", "", "at least one of user or group must be specified")


def _subject_access(call: Call, body: Obj) -> Obj:
    spec, check = body.get("spec") or {}, Check()
    _check_subject(spec, check)
    _check_metadata(body, (), check)
    if check:
        raise _refuse(call, check)
    return _review(call, body, _decide(call, _subject(spec), spec))


def _local_access(call: Call, body: Obj) -> Obj:
    spec, check, namespace = body.get("spec") or {}, Check(), call.target.namespace
    body = {**body, "metadata": {"namespace": namespace, **(body.get("metadata") or {})}}
    _check_subject(spec, check)
    _check_metadata(body, ("namespace",), check)
    attributes, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if attributes is not None and attributes.get("namespace", "") != namespace:
        field = "spec.resourceAttributes.namespace"
        check.invalid(field, attributes.get("namespace", ""), "must match metadata.namespace")
    if path is not None:
        check.invalid("spec.nonResourceAttributes", _shown(path), "disallowed on this kind of request")
    if check:
        raise _refuse(call, check)
    return _review(call, body, _decide(call, _subject(spec), spec))


def _self_rules(call: Call, body: Obj) -> Obj:
    namespace = (body.get("spec") or {}).get("namespace", "")
    if not namespace:
        raise bad_request("no namespace on request")
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
    status = {"resourceRules": resources, "nonResourceRules": paths, "incomplete": False}
    return _review(call, {**body, "spec": {}}, status)


def _self_subject(call: Call, body: Obj) -> Obj:
    made = _review(call, body, {"userInfo": call.user.info})
    made.pop("spec", None)
    made["metadata"] = {"creationTimestamp": call.door.clock.wire_now()}
    return made


def _token_review(call: Call, body: Obj) -> Obj:
    spec = body.get("spec") or {}
    if not spec.get("token"):
        raise bad_request("token is required for TokenReview in authentication")
    verdict = call.door.tokens.review(spec["token"], tuple(spec.get("audiences") or ()))
    if verdict.user is None:
        return _review(call, body, {"user": {}, "error": verdict.error})
    status = {"authenticated": True, "user": verdict.user.info, "audiences": list(verdict.audiences)}
    return _review(call, body, status)


_KINDS: dict[str, Callable[[Call, Obj], Obj]] = {
    "selfsubjectaccessreviews.authorization.k8s.io": _self_access,
    "subjectaccessreviews.authorization.k8s.io": _subject_access,
    "localsubjectaccessreviews.authorization.k8s.io": _local_access,
    "selfsubjectrulesreviews.authorization.k8s.io": _self_rules,
    "selfsubjectreviews.authentication.k8s.io": _self_subject,
    "tokenreviews.authentication.k8s.io": _token_review,
}
RESOURCES = frozenset(_KINDS)


async def review(call: Call) -> web.Response:
    """POST of a review kind, which has no table. The answer's times are wire times already."""
    accept = call.request.headers.get("Accept", "")
    if accept and all("as=" in part for part in accept.split(",")):
        raise not_acceptable()
    body = bodies.read_typed(
        await call.request.read(), call.content_type, call.resource.api_version, call.resource.kind
    )
    call.trace.dry = True
    answer = _KINDS[call.target.qualified](call, body)
    return plain(call, answer)


def plain(call: Call, answer: Obj) -> web.Response:
    """An answer whose times must not be translated."""
    form = Form("yaml") if call.form.kind == "yaml" else PLAIN
    return call.wrap(encode(answer, PLAIN), 201, form, ())
