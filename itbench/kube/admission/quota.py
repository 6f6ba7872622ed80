"""ResourceQuota: counts and amounts per namespace, charged when a write is admitted.

`usage` computes what a namespace uses; the quota controller calls it to keep `status.used`.
"""

from fractions import Fraction

from itbench.kube import status
from itbench.kube.admission.limits import pod_total
from itbench.kube.admission.write import Write
from itbench.kube.client import Obj
from itbench.kube.kinds.pods import qos_class
from itbench.kube.quantity import format_quantity, parse_quantity
from itbench.kube.store import Store

_COUNTED = {
    "pods": "pods",
    "services": "services",
    "secrets": "secrets",
    "configmaps": "configmaps",
    "persistentvolumeclaims": "persistentvolumeclaims",
    "replicationcontrollers": "replicationcontrollers",
    "resourcequotas": "resourcequotas",
}
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_FINISHED = ("Succeeded", "Failed")
Amounts = dict[str, Fraction]


def charges(storage: str, obj: Obj) -> Amounts:
    """What one object takes from a quota, by quota resource name."""
    if storage == "pods":
        return _pod_charges(obj)
    found: Amounts = {f"count/{storage}": Fraction(1)}
    if storage in _COUNTED:
        found[_COUNTED[storage]] = Fraction(1)
    spec = obj.get("spec") or {}
    if storage == "services":
        ports = Fraction(len(spec.get("ports") or ()))
        if spec.get("type") in ("NodePort", "LoadBalancer"):
            found["services.nodeports"] = ports
        if spec.get("type") == "LoadBalancer":
            found["services.loadbalancers"] = Fraction(1)
    elif storage == "persistentvolumeclaims":
        size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
        amount = parse_quantity(size) if size else Fraction(0)
        found["requests.storage"] = amount
        name = spec.get("storageClassName")
        if name:
            found[f"{name}.storageclass.storage.k8s.io/requests.storage"] = amount
            found[f"{name}.storageclass.storage.k8s.io/persistentvolumeclaims"] = Fraction(1)
    return found


def _pod_charges(pod: Obj) -> Amounts:
    found: Amounts = {"count/pods": Fraction(1)}
    if (pod.get("status") or {}).get("phase") in _FINISHED:
        return found
    found["pods"] = Fraction(1)
    for part in ("requests", "limits"):
        for name, value in pod_total(pod["spec"], part).items():
            found[f"{part}.{name}"] = value
            if part == "requests" and name in _COMPUTE:
                found[name] = value
    return found


def _in_scope(pod: Obj, scope: str, operator: str, values: list[str]) -> bool:
    spec = pod["spec"]
    if scope in ("BestEffort", "NotBestEffort"):
        return (qos_class(spec) == "BestEffort") == (scope == "BestEffort")
    if scope in ("Terminating", "NotTerminating"):
        return (spec.get("activeDeadlineSeconds") is not None) == (scope == "Terminating")
    if scope == "CrossNamespacePodAffinity":
        return _crosses_namespaces(spec)
    if scope == "PriorityClass":
        name = spec.get("priorityClassName", "")
        return {"In": name in values, "NotIn": name not in values, "Exists": bool(name), "DoesNotExist": not name}[
            operator
        ]
    return False


def _crosses_namespaces(spec: Obj) -> bool:
    """Whether pod affinity looks into other namespaces."""
    affinity = spec.get("affinity") or {}
    for part in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(part) or {}
        terms = list(rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ())
        preferred = rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms += [row.get("podAffinityTerm") or {} for row in preferred]
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms):
            return True
    return False


def applies(quota: Obj, storage: str, obj: Obj) -> bool:
    """Whether the quota's scopes cover an object."""
    spec = quota.get("spec") or {}
    rows = [(scope, "Exists", list[str]()) for scope in spec.get("scopes") or ()]
    for row in (spec.get("scopeSelector") or {}).get("matchExpressions") or ():
        rows.append((row["scopeName"], row["operator"], row.get("values") or []))
    if not rows:
        return True
    return storage == "pods" and all(_in_scope(obj, *row) for row in rows)


def usage(store: Store, quota: Obj) -> dict[str, str]:
    """`status.used` of a quota, computed from what is there."""
    hard = (quota.get("spec") or {}).get("hard") or {}
    total: Amounts = dict.fromkeys(hard, Fraction(0))
    namespace = quota["metadata"]["namespace"]
    for storage in store.resources():
        for entry in store.list(storage, namespace):
            if applies(quota, storage, entry.object):
                for name, value in charges(storage, entry.object).items():
                    if name in total:
                        total[name] += value
    return {name: _text(total[name], str(hard[name])) for name in hard}


def _text(value: Fraction, like: str) -> str:
    return format_quantity(value, binary=like.endswith("i"))


def _missing(pod: Obj, hard: Obj) -> str:
    """What a pod must specify because the quota counts it: `limits.memory for: a,b; requests.cpu for: a`."""
    lacking: dict[str, list[str]] = {}
    rows = [*(pod["spec"].get("containers") or ()), *(pod["spec"].get("initContainers") or ())]
    for name in sorted(hard):
        part, _, unit = name.rpartition(".")
        part, unit = part or "requests", unit or name
        if unit not in _COMPUTE or part not in ("requests", "limits"):
            continue
        for container in rows:
            if unit not in ((container.get("resources") or {}).get(part) or {}):
                lacking.setdefault(name, []).append(container["name"])
    return "; ".join(f"{name} for: {','.join(sorted(found))}" for name, found in lacking.items())


def resource_quota(write: Write) -> None:
    """Refuse what would exceed a quota, and charge what is admitted."""
    if (
        (write.subresource and not write.resized_pod())
        or write.operation not in ("CREATE", "UPDATE")
        or not write.namespace
    ):
        return
    quotas = write.store.list("resourcequotas", write.namespace)
    if not quotas or (write.key == "resourcequotas" and write.operation == "UPDATE"):
        return
    delta = charges(write.key, write.object)
    for name, value in (charges(write.key, write.old) if write.old is not None else {}).items():
        delta[name] = delta.get(name, Fraction(0)) - value
    updates: list[Obj] = []
    for entry in quotas:
        quota = entry.object
        if not applies(quota, write.key, write.object):
            continue
        changed = _charge(write, quota, delta)
        if changed is not None:
            updates.append(changed)
    if not write.dry_run:
        for changed in updates:
            write.store.put("resourcequotas", changed)


def _charge(write: Write, quota: Obj, delta: Amounts) -> Obj | None:
    """The quota after the write; None when it does not count it. Raises 403."""
    name = quota["metadata"]["name"]
    hard = (quota.get("status") or {}).get("hard") or (quota.get("spec") or {}).get("hard") or {}
    used = (quota.get("status") or {}).get("used")
    if write.new_pod():
        lacking = _missing(write.object, hard)
        if lacking:
            raise status.forbidden(write.resource, write.name, f"failed quota: {name}: must specify {lacking}")
    wanted = {key: value for key, value in delta.items() if key in hard and value != 0}
    if not wanted:
        return None
    if used is None:
        used = usage(write.store, quota)
    over = [
        key
        for key, value in wanted.items()
        if value > 0 and parse_quantity(str(used.get(key, "0"))) + value > parse_quantity(str(hard[key]))
    ]
    if over:
        raise status.forbidden(write.resource, write.name, _exceeded(name, sorted(over), wanted, used, hard))
    fresh = {
        key: _text(parse_quantity(str(used.get(key, "0"))) + value, str(hard[key])) for key, value in wanted.items()
    }
    metadata = dict(quota["metadata"])
    return {**quota, "metadata": metadata, "status": {"hard": dict(hard), "used": {**used, **fresh}}}


def _exceeded(name: str, over: list[str], wanted: Amounts, used: Obj, hard: Obj) -> str:
    asked = ",".join(f"{key}={_text(wanted[key], str(hard[key]))}" for key in over)
    spent = ",".join(f"{key}={used.get(key, '0')}" for key in over)
    limit = ",".join(f"{key}={hard[key]}" for key in over)
    return f"exceeded quota: {name}, requested: {asked}, used: {spent}, limited: {limit}"
