"""`/healthz`, `/livez` and `/readyz` with the checks that a real server names; called by `public`.

What serves is healthy: each check is one of a part that is in place as soon as requests are answered.
"""

from aiohttp import web

from itbench.kube.api.door import Call
from itbench.kube.api.wire import NOSNIFF

PATHS = ("/healthz", "/livez", "/readyz")
_FIRST = ("ping", "log", "etcd")
_READY = ("etcd-readiness", "informer-sync")
_HOOKS = (
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/priority-and-fairness-config-consumer",
    "poststarthook/priority-and-fairness-filter",
    "poststarthook/storage-object-count-tracker-hook",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/start-kube-apiserver-identity-lease-controller",
    "poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
    "poststarthook/start-legacy-token-tracking-controller",
    "poststarthook/start-service-ip-repair-controllers",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/priority-and-fairness-config-producer",
    "poststarthook/bootstrap-controller",
    "poststarthook/start-kubernetes-service-cidr-controller",
    "poststarthook/aggregator-reload-proxy-client-cert",
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/apiservice-status-local-available-controller",
    "poststarthook/apiservice-status-remote-available-controller",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-discovery-controller",
    "poststarthook/kube-apiserver-autoregistration",
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
)


def checks_of(name: str) -> tuple[str, ...]:
    """The checks of `healthz`, `livez` or `readyz`, in the order in which they are listed (Kubernetes 1.34)."""
    return (*_FIRST, *_READY, *_HOOKS, "shutdown") if name == "readyz" else (*_FIRST, *_HOOKS)


def serve(call: Call) -> web.Response:
    """The verdict on all checks or, below, on one."""
    name, _, one = call.target.path.strip("/").partition("/")
    checks = checks_of(name)
    if one:
        return web.Response(text="ok") if one in checks else _unknown()
    if "verbose" not in call.query:
        return web.Response(text="ok", headers=NOSNIFF)
    left_out = set(call.request.query.getall("exclude", []))
    lines = [f"[+]{check} excluded: ok\n" if check in left_out else f"[+]{check} ok\n" for check in checks]
    return web.Response(text=f"{''.join(lines)}{name} check passed\n", headers=NOSNIFF)


def _unknown() -> web.Response:
    return web.Response(text="404 page not found\n", status=404, headers=NOSNIFF)
