"""The HTTP server of a control plane: authenticates, authorizes, dispatches, audits; `serve` is what everybody calls."""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from aiohttp import web

from itbench.kube.api import (
    connections,
    express,
    meter,
    metrics,
    pods,
    public,
    remotes,
    rest,
    reviews,
    tokenrequest,
    wire,
)
from itbench.kube.api.answers import Reply, respond_error
from itbench.kube.api.door import Call, Door, Plane
from itbench.kube.api.escalation import EscalationGuard
from itbench.kube.api.flows import Flows
from itbench.kube.api.identity import authenticate, forbidden
from itbench.kube.api.impersonation import Headless, impersonate, wanted
from itbench.kube.api.inner import Inner, Resting
from itbench.kube.api.outside import Weave
from itbench.kube.api.paths import CONNECT, Target, access_of, parse, verb_of
from itbench.kube.api.podtokens import PodTokens
from itbench.kube.api.tokens import Tokens
from itbench.kube.api.watch import watch
from itbench.kube.audit import AuditRecord, digest_of
from itbench.kube.client import ApiError
from itbench.kube.door import NodeDoor, Pacer
from itbench.kube.local import LocalClient
from itbench.kube.nodeaccess import NodeAuthorizer
from itbench.kube.rbac import MASTERS, User
from itbench.kube.resources import Resource
from itbench.kube.status import Problem, bad_request, failure, not_found
from itbench.kube.tls import Identity, Signer, client_pair, kubeconfig, self_signed

Answer = web.StreamResponse
Asked = tuple[Target, str]
Handler = Callable[[Call], "Answer | Awaitable[Answer]"]
ISSUER = "https://kubernetes.default.svc.cluster.local"
ADMIN = "admin"
_LOG = logging.getLogger("itbench.kube.api")
_NOBODY = User("", ())
"""Who asks, until he has shown who he is."""
_TOO_LARGE = "Request entity too large: limit is"
_LONG = frozenset({"watch"})
_QUICK = ("", "status", "scale")
"""Subresources whose verbs wait for nothing."""
_BY_NAME = {"create": False, "update": True, "patch": True}
"""Verbs that need a name in the path, or none."""
_POD_GETS: dict[str, Handler] = {
    "log": pods.logs,
    "exec": pods.execute,
    "attach": pods.execute,
    "portforward": pods.port_forward,
}
_VERBS: dict[str, Handler] = {
    "get": rest.get,
    "list": rest.list_objects,
    "watch": watch,
    "create": rest.create,
    "update": rest.update,
    "patch": rest.patch,
    "delete": rest.delete,
    "deletecollection": rest.delete_collection,
}


def _flag(request: web.BaseRequest, name: str) -> bool:
    return "?" in request.raw_path and request.query.get(name) in ("true", "1", "True")


class Router:
    """Requests -> handlers, for one door."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._flows = Flows(door.store)
        self._meter = meter.Meter()
        self._count = 0

    async def __call__(self, request: web.BaseRequest) -> Answer:
        """Serve one request; whatever happens becomes an HTTP answer."""
        assert isinstance(request, wire.WireRequest), "the server makes its requests"
        self._count += 1
        request.audit_id = request.headers.get(wire.AUDIT) or wire.audit_id(self._door.plane.name, self._count)
        call = self._call(request)
        begun, answer = self._meter.begin(call), None
        try:
            answer = await self._answer(call)
        finally:
            self._meter.end(call, answer, begun)
        return answer

    def at_once(self, request: web.BaseRequest) -> Asked | None:
        """What a request asks for if its verb is one on objects that waits for nothing."""
        target, verb = self._asked(request)
        mapped = target.plural and target.group != metrics.GROUP and target.qualified not in reviews.RESOURCES
        slow = target.subresource not in _QUICK or verb in _LONG or self._door.weave.waits
        return (target, verb) if mapped and not slow else None

    async def _answer(self, call: Call) -> Answer:
        request = call.request
        try:
            self._admit(call)
            answer = await self._dispatch(call)
        except ApiError as error:
            answer = respond_error(error, request.headers.get("User-Agent", ""))
        except web.HTTPRequestEntityTooLarge:
            answer = respond_error(
                failure(413, "RequestEntityTooLarge", f"{_TOO_LARGE} {wire.MAX_BODY_BYTES}", Problem())
            )
        except RecursionError:
            answer = respond_error(bad_request("the request nests too deep: exceeded max depth"))
        except Headless as error:
            answer = web.Response(text=str(error), status=500)
        except (ConnectionResetError, asyncio.CancelledError):
            raise
        except Exception as error:
            _LOG.exception("%s %s", request.method, request.path)
            answer = respond_error(failure(500, "InternalError", f"Internal error occurred: {error}", Problem()))
        self._audit(call, answer.status)
        self._door.poke()
        return answer

    def _call(self, request: web.BaseRequest) -> Call:
        """The request of nobody yet."""
        target, verb = (request.asks if isinstance(request, wire.WireRequest) else None) or self._asked(request)
        return Call(self._door, request, target, _NOBODY, verb)

    def _asked(self, request: web.BaseRequest) -> Asked:
        target = parse(request.path)
        return target, verb_of(request.method, target, watch=_flag(request, "watch"))

    def _admit(self, call: Call) -> None:
        """Authenticate, let the world catch up, authorize.

        Raises:
            ApiError: 401, 403.
        """
        door, target, request = self._door, call.target, call.request
        assert isinstance(request, wire.WireRequest), "the server makes its requests"
        user = authenticate(door.tokens, request.headers.get("Authorization", ""), request.transport)
        call.user = call.asker = user
        door.pacer.enter(outside=True, free=not target.plural)
        want = None if request.plain else wanted(request.headers)
        if want is not None:
            call.trace.detail = f"impersonate {want.user}"
            user = call.user = impersonate(user, want, request.path, door.authorizer)
            call.trace.detail = ""
        request.flow = self._flows.of(user, call.verb, target)
        if MASTERS not in user.groups:
            access = access_of(call.verb, target)
            granted, why = door.authorizer.allowed(user, access)
            if not granted:
                request.refused = True
                raise forbidden(user, access, why)

    async def _dispatch(self, call: Call) -> Answer:
        handler = self._handler(call)
        if call.target.subresource in CONNECT and handler not in _REFUSALS:
            await connections.admit(call)
        if call.verb in _LONG or call.target.subresource in CONNECT or call.flag("follow"):
            self._audit(call, 200)
            call.trace.told = True
        answer = handler(call)
        if type(answer) is Reply:  # most are; aiohttp's classes are slow to ask
            return answer
        return answer if isinstance(answer, web.StreamResponse) else await answer

    def _handler(self, call: Call) -> Handler:
        target = call.target
        if call.request.method == "HEAD":
            return _refuse
        if target.path == "/metrics" and call.verb == "get":
            return lambda call: meter.serve(self._meter, call.door.store)
        if not target.plural:
            return public.serve if call.request.method in ("GET", "HEAD") else _refuse
        resource = self._door.registry.table.lookup(target.group, target.version, target.plural)
        if resource is None:
            fixed = any(row.model is None for row in self._door.registry.table.of(target.group, target.version))
            return _no_such_resource if fixed else _no_such_path
        if target.subresource:
            return self._sub_handler(call, resource)
        if target.qualified in reviews.RESOURCES:
            return _only(call, "create", reviews.review)
        if target.group == metrics.GROUP:
            return metrics.read if call.verb in ("get", "list") else _refuse
        if target.qualified == "bindings":
            return _only(call, "create", _bind)
        if call.verb in _BY_NAME and bool(target.name) is not _BY_NAME[call.verb]:
            return _refuse
        wanted = "list" if call.verb == "watch" else call.verb
        return _VERBS[call.verb] if wanted in resource.verbs and call.verb in _VERBS else _refuse

    def _sub_handler(self, call: Call, resource: Resource) -> Handler:
        target = call.target
        sub = resource.subresource(target.subresource)
        if sub is None and resource.model is not None:
            raise not_found(resource, target.name)
        if sub is None:
            return _no_such_resource
        if call.verb not in sub.verbs:
            return _refuse
        if target.subresource == "proxy":
            return pods.proxy
        if target.plural == "pods" and target.subresource in _POD_GETS:
            return _POD_GETS[target.subresource]
        if target.subresource == "token":
            return _only(call, "create", tokenrequest.request_token)
        if target.subresource in ("eviction", "binding"):
            return _only(call, "create", _evict if target.subresource == "eviction" else _bind)
        return _VERBS[call.verb] if call.verb in ("get", "update", "patch") else _refuse

    def _audit(self, call: Call, code: int) -> None:
        target, trace = call.target, call.trace
        if trace.told:
            return
        self._door.plane.audit.append(
            AuditRecord(
                time=self._door.pacer.now(),
                user=call.asker.name,
                verb=call.verb,
                resource=target.qualified,
                namespace=target.namespace,
                name=target.name or trace.name,
                subresource=target.subresource,
                code=code,
                before="" if trace.before is None else digest_of(trace.before),
                after="" if trace.after is None else digest_of(trace.after),
                manager=trace.manager,
                dry=trace.dry,
                detail=trace.detail or ("" if target.plural else target.path),
                impersonated=call.user.name if call.user is not call.asker else "",
                notes=tuple(trace.notes),
            )
        )


def _only(call: Call, verb: str, handler: Handler) -> Handler:
    return handler if call.verb == verb else _refuse


def _no_such_path(call: Call) -> Answer:
    if remotes.is_remote(call.door.registry, call.target.group, call.target.version):
        return remotes.unavailable()
    return public.not_found()


def _no_such_resource(_call: Call) -> Answer:
    raise failure(404, "NotFound", "the server could not find the requested resource", Problem())


def _refuse(_call: Call) -> Answer:
    raise rest.refuse_method()


_REFUSALS = (_no_such_path, _no_such_resource, _refuse)


async def _evict(call: Call) -> Answer:
    return await rest.post(call, "eviction")


async def _bind(call: Call) -> Answer:
    return await rest.post(call, "binding")


class Server:
    """A running API server.

    Attributes:
        url: such as `https://127.0.0.1:40123`.
        certificate: PEM of the authority that clients must trust; empty without TLS.
    """

    def __init__(self, door: Door, runner: web.ServerRunner, url: str, identity: Identity, *, secure: bool) -> None:
        self.door, self._runner, self.url, self._identity = door, runner, url, identity
        self.certificate = identity.certificate if secure else b""

    def token(self, user: str, groups: tuple[str, ...] = ()) -> str:
        """A new bearer token for a user; `system:authenticated` is added to the groups."""
        return self.door.tokens.issue(user, tuple(groups))

    issue = token

    def revoke(self, user: str) -> None:
        """End the tokens of a user; requests with them are 401 from now on."""
        self.door.tokens.revoke(user)

    def kubeconfig(self, user: str = ADMIN, groups: tuple[str, ...] | None = None, *, namespace: str = "") -> str:
        """A kubeconfig (YAML) with a new token.

        Args:
            user: `admin` is in `system:masters` unless groups are given; others have what RBAC gives them.
        """
        if groups is None:
            groups = (MASTERS,) if user == ADMIN else ()
        token, cluster = self.token(user, groups), self.door.plane.name
        return kubeconfig(
            self.url, authority=self.certificate, user=user, token=token, cluster=cluster, namespace=namespace
        )

    def certified_kubeconfig(self, user: str, groups: tuple[str, ...] = (), *, namespace: str = "") -> str:
        """A kubeconfig (YAML) whose user shows a client certificate instead of a token (TLS only)."""
        pair = client_pair(self._identity, user, groups)
        name = self.door.plane.name
        return kubeconfig(
            self.url, authority=self.certificate, user=user, client=pair, cluster=name, namespace=namespace
        )

    def service_account_token(self, namespace: str, name: str, lifetime_s: int = 3607) -> str:
        """The JWT that a pod of a ServiceAccount finds in its volume."""
        registry = self.door.registry
        account = registry.get(registry.table.named("serviceaccounts"), name, namespace).object
        return self.door.tokens.issue_service_account(account, lifetime_s, [])[0]

    async def close(self) -> None:
        """End watches and streams, close all sockets."""
        self.door.closing.set()
        self.door.poke()
        await asyncio.sleep(0)
        server = self._runner.server
        open_ones = [handler.transport for handler in server.connections] if server is not None else []
        await self._runner.cleanup()
        for transport in open_ones:
            if transport is not None:
                transport.abort()  # TLS would wait for the client's farewell
        await asyncio.sleep(0)


async def serve(
    plane: Plane,
    pacer: Pacer,
    door: NodeDoor | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    tls: Identity | bool = True,
    webhook_hosts: Iterable[str] = (),
) -> Server:
    """Serve a control plane on the running event loop; all access to the plane happens on it.

    Args:
        plane: what is served.
        pacer: passes world time for requests and translates times.
        door: kubelets and services of the world; without it logs, exec and metrics answer 503.
        port: 0 for a free one.
        webhook_hosts: real hosts (`host` or `host:port`) that webhooks may live on; calls to others time out.
        tls: a certificate to use, True for a new one, False for plain http (kubectl then sends no credentials).
    """
    identity = self_signed(host) if isinstance(tls, bool) else tls
    secure = tls is not False
    client: Any = LocalClient(plane.registry, "kube-apiserver")

    def uid_of(resource: str, namespace: str, name: str) -> str:
        entry = plane.registry.store.get(resource, namespace, name)
        return "" if entry is None else str(entry.object["metadata"]["uid"])

    tokens = Tokens(Signer(identity.key), ISSUER, lambda: pacer.to_wire(pacer.now()), uid_of)
    authorizer = NodeAuthorizer(client)
    shared = Door(plane, pacer, door, tokens, authorizer)
    shared.weave = Weave(webhook_hosts, shared.clock.served)
    services = plane.registry.services
    services.authorizer, services.nodes, services.outside = authorizer, door, shared.weave
    services.sign = identity.sign
    services.pod_token = PodTokens(shared.store, tokens, lambda: pacer.to_wire(pacer.now()))
    services.api = Inner(Router(Door(plane, Resting(pacer), door, tokens, authorizer)), identity.certificate)
    steps = plane.registry.validating
    steps[:] = [*(step for step in steps if not isinstance(step, EscalationGuard)), EscalationGuard(authorizer)]
    router = Router(shared)
    runner = web.ServerRunner(
        express.Doorway(
            router,
            router.at_once,
            request_factory=wire.make_request,
            handler_cancellation=True,
            access_log=None,
        ),
        shutdown_timeout=1.0,
    )
    await runner.setup()
    context: ssl.SSLContext | None = identity.context(clients=True) if secure else None
    site = web.TCPSite(runner, host, port, ssl_context=context, backlog=512)
    await site.start()
    bound = runner.addresses[0][1]
    url = f"{'https' if secure else 'http'}://{host}:{bound}"
    return Server(shared, runner, url, identity, secure=secure)
