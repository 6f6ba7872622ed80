"""ResourceQuota status: what a namespace uses of each bounded resource. Admission refuses by it; this keeps it true."""

from fractions import Fraction

from itbench.kube.client import Change, Obj
from itbench.kube.controllers.base import Context, Controller, own_key, put_status
from itbench.kube.controllers.cache import Cache, Key, key_of
from itbench.kube.controllers.pods import is_finished
from itbench.kube.quantity import format_quantity, parse_quantity

QUOTAS = "resourcequotas"
COUNTED = {
    "configmaps": "configmaps",
    "secrets": "secrets",
    "services": "services",
    "persistentvolumeclaims": "persistentvolumeclaims",
    "resourcequotas": "resourcequotas",
    "replicationcontrollers": "replicationcontrollers",
    "pods": "pods",
}
"""Names in `hard` that count objects of a resource (besides `count/RESOURCE.GROUP`)."""


def _keys(change: Change, cache: Cache) -> list[Key]:
    namespace = change.object["metadata"].get("namespace", "")
    if not namespace or not cache.count(QUOTAS, namespace) or change.resource == QUOTAS:
        return []
    if change.resource == "pods" and change.type == "MODIFIED" and change.previous is not None:
        same = change.previous["spec"] == change.object["spec"]
        if same and is_finished(change.previous) == is_finished(change.object):
            return []
    elif change.type == "MODIFIED" and change.resource not in ("services", "persistentvolumeclaims"):
        return []
    return [key_of(quota) for quota in cache.list(QUOTAS, namespace)]


def amounts(pod: Obj) -> dict[str, Fraction]:
    """Requests and limits of a pod by their quota names, the plain names counting as requests."""
    found: dict[str, Fraction] = {}
    for kind in ("requests", "limits"):
        running = _sum([(c.get("resources") or {}).get(kind) or {} for c in pod["spec"]["containers"]])
        for container in pod["spec"].get("initContainers") or ():
            one = _sum([(container.get("resources") or {}).get(kind) or {}])
            if container.get("restartPolicy") == "Always":
                running = {n: running.get(n, Fraction(0)) + one.get(n, Fraction(0)) for n in {*running, *one}}
            else:
                running = {n: max(running.get(n, Fraction(0)), one.get(n, Fraction(0))) for n in {*running, *one}}
        for name, value in running.items():
            found[f"{kind}.{name}"] = value
            if kind == "requests":
                found[name] = value
    return found


def _sum(rows: list[Obj]) -> dict[str, Fraction]:
    total: dict[str, Fraction] = {}
    for row in rows:
        for name, text in row.items():
            total[name] = total.get(name, Fraction(0)) + parse_quantity(str(text))
    return total


def in_scope(quota: Obj, pod: Obj) -> bool:
    """Whether a quota's scopes cover a pod."""
    for scope in quota["spec"].get("scopes") or ():
        if not _scope_covers(scope, pod):
            return False
    for term in ((quota["spec"].get("scopeSelector") or {}).get("matchExpressions")) or ():
        if term["scopeName"] == "PriorityClass":
            name, values = pod["spec"].get("priorityClassName", ""), term.get("values") or ()
            covered = {
                "In": name in values,
                "NotIn": name not in values,
                "Exists": bool(name),
                "DoesNotExist": not name,
            }
            if not covered[term["operator"]]:
                return False
        elif not _scope_covers(term["scopeName"], pod):
            return False
    return True


def _scope_covers(scope: str, pod: Obj) -> bool:
    best = (pod.get("status") or {}).get("qosClass") == "BestEffort"
    ending = pod["spec"].get("activeDeadlineSeconds") is not None
    return {"BestEffort": best, "NotBestEffort": not best, "Terminating": ending, "NotTerminating": not ending}.get(
        scope, True
    )


def used(cache: Cache, quota: Obj, name: str) -> Fraction:
    """How much of one bounded resource is in use."""
    namespace = quota["metadata"]["namespace"]
    if name.startswith("count/"):
        return Fraction(cache.count(name.removeprefix("count/"), namespace))
    if name.startswith("services."):
        kind = {"services.loadbalancers": "LoadBalancer", "services.nodeports": "NodePort"}.get(name, "")
        return Fraction(sum(s["spec"].get("type") == kind for s in cache.list("services", namespace)))
    if name == "requests.storage":
        claims = cache.list("persistentvolumeclaims", namespace)
        asked = [((c["spec"].get("resources") or {}).get("requests") or {}).get("storage", "0") for c in claims]
        return sum((parse_quantity(str(text)) for text in asked), Fraction(0))
    if name in COUNTED and name != "pods":
        return Fraction(cache.count(COUNTED[name], namespace))
    pods = [p for p in cache.list("pods", namespace) if not is_finished(p) and in_scope(quota, p)]
    if name == "pods":
        return Fraction(len(pods))
    return sum((amounts(p).get(name, Fraction(0)) for p in pods), Fraction(0))


def reconcile(context: Context, namespace: str, name: str) -> None:
    """Recount one quota."""
    quota = context.cache.get(QUOTAS, namespace, name)
    if quota is None:
        return
    hard = quota["spec"].get("hard") or {}
    counts = {key: _text(used(context.cache, quota, key), key) for key in hard}
    put_status(context, QUOTAS, quota, {"hard": hard, "used": counts})


def _text(value: Fraction, name: str) -> str:
    return format_quantity(value, binary="memory" in name or "storage" in name)


CONTROLLER = Controller("resourcequota-controller", {QUOTAS: own_key, "*": _keys}, reconcile)
