"""Priority, default tolerations, and default storage class."""

from itbench.kube import status
from itbench.kube.admission.write import Write
from itbench.kube.client import Obj

_SYSTEM = {"system-node-critical": 2000001000, "system-cluster-critical": 2000000000}
_SECONDS = 300
_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def _default_class(write: Write) -> tuple[str, int, str]:
    rows = [entry.object for entry in write.store.list("priorityclasses.scheduling.k8s.io")]
    chosen = min((row for row in rows if row.get("globalDefault")), key=lambda row: row["value"], default=None)
    if chosen is None:
        return "", 0, "PreemptLowerPriority"
    return chosen["metadata"]["name"], chosen["value"], chosen.get("preemptionPolicy", "PreemptLowerPriority")


def priority(write: Write) -> None:
    """Resolve priorityClassName into a number."""
    if not write.new_pod():
        return
    spec = write.object["spec"]
    name = spec.get("priorityClassName", "")
    if not name:
        name, value, policy = _default_class(write)
        if name:
            spec["priorityClassName"] = name
    else:
        entry = write.store.get("priorityclasses.scheduling.k8s.io", "", name)
        if entry is None and name not in _SYSTEM:
            raise status.forbidden(write.resource, write.name, f"no PriorityClass with name {name} was found")
        row: Obj = entry.object if entry is not None else {"value": _SYSTEM[name]}
        value, policy = row["value"], row.get("preemptionPolicy", "PreemptLowerPriority")
    if "priority" in spec and spec["priority"] != value:
        text = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
            f"priority admission controller computed {value} from the given PriorityClass name"
        )
        raise status.forbidden(write.resource, write.name, text)
    spec["priority"] = value
    if spec.get("preemptionPolicy", policy) != policy:
        text = (
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name"
        )
        raise status.forbidden(write.resource, write.name, text)
    spec["preemptionPolicy"] = policy


def _tolerates(row: Obj, taint: str) -> bool:
    return row.get("key", taint) in (taint, "") and row.get("effect", "NoExecute") in ("NoExecute", "")


def default_tolerations(write: Write) -> None:
    """Pods stay 300 s on a node that is not ready or unreachable, unless they say otherwise."""
    if write.key != "pods" or write.subresource or write.operation not in ("CREATE", "UPDATE"):
        return
    spec = write.object["spec"]
    rows = list(spec.get("tolerations") or ())
    for taint in _TAINTS:
        if not any(_tolerates(row, taint) for row in rows):
            rows.append({"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _SECONDS})
    spec["tolerations"] = rows


def default_storage_class(write: Write) -> None:
    """A claim without a class gets the newest default one."""
    if write.key != "persistentvolumeclaims" or write.operation != "CREATE" or write.subresource:
        return
    spec = write.object.setdefault("spec", {})
    if "storageClassName" in spec:
        return
    found = [
        entry.object["metadata"]
        for entry in write.store.list("storageclasses.storage.k8s.io")
        if (entry.object["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS) == "true"
    ]
    if found:
        newest = max(row["creationTimestamp"] for row in found)
        spec["storageClassName"] = min(row["name"] for row in found if row["creationTimestamp"] == newest)


def taint_new_node(write: Write) -> None:
    """A new node is not ready until the node life cycle controller has seen it."""
    if write.key != "nodes" or write.operation != "CREATE":
        return
    spec = write.object.setdefault("spec", {})
    key = "node.kubernetes.io/not-ready"
    rows = list(spec.get("taints") or ())
    if not any(row.get("key") == key and row.get("effect") == "NoSchedule" for row in rows):
        rows.append({"key": key, "effect": "NoSchedule"})
    spec["taints"] = rows
