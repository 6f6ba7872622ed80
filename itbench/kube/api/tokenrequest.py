"""`serviceaccounts/NAME/token`: tokens for an account, bound to objects and audiences; called by `server`."""

from typing import Any

from aiohttp import web

from itbench.kube.api import bodies, reviews
from itbench.kube.api.door import Call
from itbench.kube.api.podtokens import pod_claims
from itbench.kube.client import Obj
from itbench.kube.kinds.check import Check
from itbench.kube.status import Problem, bad_request, failure, invalid

_DEFAULT_S = 3600
_SHORTEST_S, _LONGEST_S = 600, 1 << 32
_BOUND = {("v1", "Pod"): "pods", ("v1", "Secret"): "secrets", ("v1", "Node"): "nodes"}


def _lifetime(spec: Obj) -> int:
    """Seconds asked for; raises 422."""
    lifetime, check = spec.get("expirationSeconds"), Check()
    if lifetime is None:
        return _DEFAULT_S
    if lifetime < _SHORTEST_S:
        check.invalid("spec.expirationSeconds", lifetime, "may not specify a duration less than 10 minutes")
    if lifetime > _LONGEST_S:
        check.invalid("spec.expirationSeconds", lifetime, "may not specify a duration larger than 2^32 seconds")
    if check:
        raise invalid("TokenRequest", "authentication.k8s.io", "", check.causes)
    return int(lifetime)


def _claims(call: Call, ref: Obj) -> Obj:
    """The claims about the object that a token is bound to, and about the pod's node.

    Raises:
        ApiError: 404, 409, or 400 for a kind that tokens cannot be bound to.
    """
    version, kind, name = ref.get("apiVersion", ""), ref.get("kind", ""), ref.get("name", "")
    resource = _BOUND.get((version, kind))
    if resource is None:
        group = version if "/" in version else f"/{version}"
        raise bad_request(f"cannot bind token to object of type {group}, Kind={kind}")
    registry, store = call.door.registry, call.door.store
    place = "" if kind == "Node" else call.target.namespace
    bound = registry.get(registry.table.named(resource), name, place).object
    uid = bound["metadata"]["uid"]
    if ref.get("uid") and ref["uid"] != uid:
        text = (
            f'Operation cannot be fulfilled on {kind} "{name}": the UID in the bound object reference ({ref["uid"]}) does not '
            "match the UID in record. The object might have been deleted and then recreated"
        )
        raise failure(409, "Conflict", text, Problem(name, "", kind))
    return pod_claims(store, bound) if kind == "Pod" else {kind.lower(): {"name": name, "uid": uid}}


async def _admit(call: Call, account: Obj, spec: Obj) -> None:
    """Ask policies and webhooks."""
    options = bodies.write_options(call.query, call.user, call.agent)
    call.trace.manager, call.trace.notes = options.manager, options.notes
    meta = {key: account["metadata"][key] for key in ("name", "namespace", "uid")}
    shown = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "metadata": meta, "spec": spec}
    registry, target = call.door.registry, call.target
    row = registry.table.named("serviceaccounts")
    await call.door.weave.run(lambda: registry.admit(row, target.name, target.namespace, "token", shown, options))


async def request_token(call: Call) -> web.Response:
    """POST to `serviceaccounts/NAME/token`."""
    raw = await call.request.read()
    body = bodies.read_typed(raw, call.content_type, "authentication.k8s.io/v1", "TokenRequest")
    registry, target, clock = call.door.registry, call.target, call.door.clock
    account = registry.get(registry.table.named("serviceaccounts"), target.name, target.namespace).object
    spec: dict[str, Any] = dict(body.get("spec") or {})
    lifetime = _lifetime(spec)
    audiences = list(spec.get("audiences") or [call.door.tokens.issuer])
    ref = spec.get("boundObjectRef")
    claims = _claims(call, ref) if ref else None
    wanted = {"audiences": audiences, "expirationSeconds": lifetime, "boundObjectRef": ref}
    await _admit(call, account, wanted)
    token, _ = call.door.tokens.issue_service_account(account, lifetime, audiences, claims)
    names = {"name": target.name, "namespace": target.namespace, "uid": account["metadata"]["uid"]}
    answer = {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {**names, "creationTimestamp": clock.wire_now()},
        "spec": wanted,
        "status": {"token": token, "expirationTimestamp": clock.wire_now(lifetime)},
    }
    return reviews.plain(call, answer)
