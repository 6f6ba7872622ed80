"""What the subresources `status`, `scale`, `finalize`, `binding`, `eviction`, `resize` and `ephemeralcontainers` may write.

Called by the registry only.
"""

from typing import TYPE_CHECKING, Any

from itbench.core.clock import rfc3339
from itbench.kube import deletion, status
from itbench.kube.client import ApiError, Obj
from itbench.kube.custom import scale
from itbench.kube.kinds.check import Check
from itbench.kube.requests import DeleteOptions, Options, Result
from itbench.kube.resources import Resource
from itbench.kube.selectors import format_selector, matches
from itbench.kube.status import Cause, Problem
from itbench.kube.store import Entry

if TYPE_CHECKING:
    from itbench.kube.registry import Registry

_INITIAL: dict[str, Obj] = {
    "pods": {"phase": "Pending"},
    "namespaces": {"phase": "Active"},
    "persistentvolumes": {"phase": "Pending"},
    "persistentvolumeclaims": {"phase": "Pending"},
    "services": {"loadBalancer": {}},
    "ingresses.networking.k8s.io": {"loadBalancer": {}},
    "replicasets.apps": {"replicas": 0},
    "statefulsets.apps": {"replicas": 0, "availableReplicas": 0},
    "replicationcontrollers": {"replicas": 0},
    "daemonsets.apps": {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    },
    "poddisruptionbudgets.policy": {
        "disruptionsAllowed": 0,
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "expectedPods": 0,
    },
    "horizontalpodautoscalers.autoscaling": {"desiredReplicas": 0, "currentMetrics": None},
}
_KEEPS_STATUS = frozenset({"nodes", "apiservices.apiregistration.k8s.io"})
"""Kinds whose creator may set the status."""
_STATUS_ONLY = frozenset({"flowcontrol.apiserver.k8s.io", "admissionregistration.k8s.io"})
"""Groups whose `status` writes nothing of the metadata; the others write all of it."""
_GENERATION_OF_SPEC = frozenset({"endpointslices.discovery.k8s.io"})


def initial_status(resource: Resource, obj: Obj) -> Obj | None:
    """The status of a new object; None for none."""
    if resource.storage in _KEEPS_STATUS:
        return dict(obj.get("status", {}))
    if resource.custom:
        return None
    return {**_INITIAL.get(resource.storage, {})}


def limit(resource: Resource, obj: Obj, before: Obj, subresource: str) -> Obj:
    """The part of a new state that the subresource may write, over the state before."""
    metadata = obj["metadata"]
    if subresource == "status":
        kept = _status_metadata(resource, metadata, before["metadata"])
        out = {**before, "metadata": kept}
        if "status" in obj:
            out["status"] = obj["status"]
        else:
            out.pop("status", None)
        return out
    if subresource == "finalize":
        out = {**before, "metadata": {**before["metadata"]}}
        out["spec"] = obj.get("spec", {})
        return out
    if resource.storage == "certificatesigningrequests.certificates.k8s.io":
        return _of_request(obj, before, subresource)
    if subresource == "ephemeralcontainers":
        spec = {**before["spec"], "ephemeralContainers": obj.get("spec", {}).get("ephemeralContainers", [])}
        return {**before, "metadata": {**before["metadata"]}, "spec": spec}
    if subresource == "resize":
        return {**before, "metadata": {**before["metadata"]}, "spec": _resized(before["spec"], obj.get("spec", {}))}
    if resource.has_status and not (resource.custom and "status" not in before and "status" not in obj):
        if "status" in before:
            obj["status"] = before["status"]
        else:
            obj.pop("status", None)
    if resource.storage == "namespaces" and subresource == "":
        obj["spec"] = {**obj.get("spec", {}), "finalizers": before.get("spec", {}).get("finalizers", [])}
    return obj


def _status_metadata(resource: Resource, new: Obj, old: Obj) -> Obj:
    """Metadata after a write of the status: most kinds let labels, annotations and the like through."""
    if resource.custom or resource.group in _STATUS_ONLY:
        kept = {**old}
    elif resource.storage == "pods":
        kept = {**old, **{key: new[key] for key in ("labels", "annotations") if key in new}}
    else:
        kept = {key: value for key, value in new.items() if key != "managedFields"}
        if resource.storage == "deployments.apps":
            kept.pop("labels", None)
            kept |= {"labels": old["labels"]} if "labels" in old else {}
    if "managedFields" in new:
        kept["managedFields"] = new["managedFields"]
    elif "managedFields" in old:
        kept["managedFields"] = old["managedFields"]
    return kept


def _of_request(obj: Obj, before: Obj, subresource: str) -> Obj:
    """A certificate request: its spec never changes; `approval` writes conditions, which get their times."""
    out = {**obj, "spec": before["spec"], "status": before.get("status", {})}
    if subresource != "approval":
        return out
    rows = (obj.get("status") or {}).get("conditions") or []
    return {**out, "status": {**before.get("status", {}), "conditions": rows}}


def tracked(resource: Resource, obj: Obj, subresource: str) -> Obj:
    """The part of an object whose ownership a write through this subresource can change."""
    if not resource.has_status or (resource.custom and resource.model is None):
        return obj
    if subresource == "status":
        return {key: value for key, value in obj.items() if key in ("metadata", "status")}
    return {key: value for key, value in obj.items() if key != "status"}


_RESIZABLE = ("resources", "resizePolicy")


def _resized(before: Obj, spec: Obj) -> Obj:
    out = {**before}
    for key in ("containers", "initContainers"):
        new = {row["name"]: row for row in spec.get(key, ())}
        rows = []
        for row in before.get(key, ()):
            changed = new.get(row["name"], row)
            kept = {name: value for name, value in row.items() if name not in _RESIZABLE}
            rows.append(kept | {name: changed[name] for name in _RESIZABLE if name in changed})
        if rows:
            out[key] = rows
    return out


def bumps_generation(resource: Resource, obj: Obj, before: Obj) -> bool:
    """Whether the change is one of what the user wants, not of what is."""
    if resource.storage == "deployments.apps" and obj["metadata"].get("annotations") != before["metadata"].get(
        "annotations"
    ):
        return True
    ignored = ("metadata", "status") if resource.model is None or resource.has_status else ("metadata",)
    new = {key: value for key, value in obj.items() if key not in ignored}
    old = {key: value for key, value in before.items() if key not in ignored}
    if resource.storage == "pods":
        new, old = _without_node(new), _without_node(old)
    return new != old


def _without_node(obj: Obj) -> Obj:
    return {**obj, "spec": {key: value for key, value in obj["spec"].items() if key != "nodeName"}}


def scale_of(resource: Resource, obj: Obj) -> Obj:
    """The autoscaling/v1 Scale of a workload."""
    if resource.model is not None:
        return scale.of(resource.model, obj)
    metadata = obj["metadata"]
    spec, state = obj.get("spec", {}), obj.get("status", {})
    selector = spec.get("selector")
    if resource.storage == "replicationcontrollers":
        selector = {"matchLabels": selector or {}}
    shown: Obj = {"replicas": state.get("replicas", 0)}
    text = format_selector(selector)
    if text != "<none>":
        shown["selector"] = text
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    out: Obj = {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": {},
        "status": shown,
    }
    if spec.get("replicas"):
        out["spec"]["replicas"] = spec["replicas"]
    return out


def scaled(resource: Resource, old: Entry, body: Any) -> Obj:
    """The workload with the replicas of a Scale body."""
    obj = old.copy()
    spec = body.get("spec") or {} if isinstance(body, dict) else {}
    replicas = spec.get("replicas", 0)
    why = scale_fault(body)
    if why:
        raise status.bad_request(f'Scale in version "v1" cannot be handled as a Scale: {why}')
    check = Check()
    check.non_negative("spec.replicas", replicas)
    if check:
        raise status.invalid("Scale", "autoscaling", old.name, check.causes)
    metadata = body.get("metadata") or {}
    if resource.model is not None:
        obj = scale.put(resource, obj, replicas)
    else:
        obj["spec"]["replicas"] = replicas
    obj["metadata"].pop("resourceVersion", None)
    if metadata.get("resourceVersion"):
        obj["metadata"]["resourceVersion"] = metadata["resourceVersion"]
    return obj


def scale_fault(body: Any) -> str:
    """What is wrong with the types of a Scale body, in the decoder's words."""
    spec = body.get("spec") or {} if isinstance(body, dict) else {}
    replicas = spec.get("replicas", 0)
    if isinstance(replicas, int) and not isinstance(replicas, bool):
        return ""
    return f"json: cannot unmarshal {_json(replicas)} into Go struct field ScaleSpec.spec.replicas of type int32"


def _json(value: Any) -> str:
    return {bool: "bool", str: "string", float: "number", list: "array", dict: "object"}.get(type(value), "null")


def post(
    registry: "Registry", resource: Resource, entry: Entry, subresource: str, body: Obj, options: Options
) -> Result:
    """POST to a pod's subresource."""
    _check_posted(subresource, body)
    place = {"name": entry.name, "namespace": entry.namespace}
    shown = {**body, "metadata": {**(body.get("metadata") or {}), **place}}
    registry.admit(resource, entry.name, entry.namespace, subresource, shown, options)
    if subresource == "binding":
        return _bind(registry, resource, entry, body, options)
    if subresource == "eviction":
        return _evict(registry, resource, entry, body, options)
    raise status.method_not_allowed("the server does not allow this method on the requested resource")


_POSTED = {"binding": ("Binding", "core", ("v1",)), "eviction": ("Eviction", "policy", ("policy/v1", "policy/v1beta1"))}


def _check_posted(subresource: str, body: Obj) -> None:
    """400 where the body is of another kind than the subresource takes."""
    wanted, group, versions = _POSTED.get(subresource, ("", "", ()))
    if not versions:
        return
    kind, api_version = body.get("kind") or wanted, body.get("apiVersion") or versions[0]
    if kind != wanted or api_version not in versions:
        version = api_version.rpartition("/")[2]
        why = f"converting ({version}.{kind}) to ({group}.{wanted}): unknown conversion"
        raise status.bad_request(f'{kind} in version "{version}" cannot be handled as a {wanted}: {why}')


def _success(code: int = 201) -> Obj:
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code}


def _bind_conflict(name: str, why: str) -> ApiError:
    text = f'Operation cannot be fulfilled on pods/binding "{name}": {why}'
    return status.failure(409, "Conflict", text, Problem(name, "", "pods/binding"))


def _bind(registry: "Registry", resource: Resource, entry: Entry, body: Obj, options: Options) -> Result:
    target = body.get("target") or {}
    node = target.get("name", "")
    check = Check()
    if target.get("kind") not in (None, "", "Node"):
        check.unsupported("target.kind", target["kind"], ("Node", "<empty>"))
    if not node:
        check.required("target.name")
    if check:  # a real server does not say whose fault it is
        raise status.failure(500, "", check.causes[0].line())
    pod = entry.copy()
    if pod["metadata"].get("deletionTimestamp"):
        raise _bind_conflict(entry.name, f"pod {entry.name} is being deleted, cannot be assigned to a host")
    if pod["spec"].get("schedulingGates"):
        raise _bind_conflict(entry.name, f"pod {entry.name} has non-empty .spec.schedulingGates")
    if pod["spec"].get("nodeName"):
        node_name = pod["spec"]["nodeName"]
        raise _bind_conflict(entry.name, f'pod {entry.name} is already assigned to node "{node_name}"')
    pod["spec"]["nodeName"] = node
    state = pod.setdefault("status", {})
    rows = [row for row in state.get("conditions", []) if row["type"] != "PodScheduled"]
    condition = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": rfc3339(registry.now()),
    }
    state["conditions"] = [*rows, condition]
    if not options.dry_run:
        registry.store.put(resource.storage, pod)
    return Result(_success(), None, True, [], entry)


def _evict(registry: "Registry", resource: Resource, entry: Entry, body: Obj, options: Options) -> Result:
    pod = entry.object
    if (body.get("metadata") or {}).get("name", entry.name) != entry.name:
        raise status.bad_request("name in URL does not match name in Eviction object")
    raw = body.get("deleteOptions") or {}
    conditions = raw.get("preconditions") or {}
    how = DeleteOptions(
        raw.get("gracePeriodSeconds"),
        raw.get("propagationPolicy") or "",
        conditions.get("uid", ""),
        conditions.get("resourceVersion", ""),
    )
    phase = pod.get("status", {}).get("phase")
    budgets = [
        budget
        for budget in registry.store.list("poddisruptionbudgets.policy", entry.namespace)
        if matches(budget.object["spec"].get("selector"), pod["metadata"].get("labels"))
    ]
    free = phase in ("Succeeded", "Failed", "Pending") or pod["metadata"].get("deletionTimestamp")
    if budgets and not free:
        if len(budgets) > 1:
            raise status.failure(
                500,
                "",
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            )
        _spend(registry, budgets[0], pod, options)
    if not options.dry_run and not pod["metadata"].get("deletionTimestamp"):
        entry = _disrupt(registry, resource, entry, options)
    deletion.delete(registry, resource, entry, how, options)
    return Result(_success(), None, True, [], entry)


def _disrupt(registry: "Registry", resource: Resource, entry: Entry, options: Options) -> Entry:
    pod = entry.copy()
    state = pod.setdefault("status", {})
    rows = [row for row in state.get("conditions", []) if row["type"] != "DisruptionTarget"]
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": rfc3339(registry.now()),
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    state["conditions"] = [*rows, condition]
    registry._own(resource, entry.object, pod, options, "", None)
    return registry.store.put(resource.storage, pod)


def _ready(pod: Obj) -> bool:
    rows = pod.get("status", {}).get("conditions", ())
    return any(row["type"] == "Ready" and row["status"] == "True" for row in rows)


def _blocked(text: str, retry_s: int = 0) -> Exception:
    return status.failure(
        429,
        "TooManyRequests",
        "Cannot evict pod as it would violate the pod's disruption budget.",
        None,
        [Cause("DisruptionBudget", "", text)],
        retry_s,
    )


def _spend(registry: "Registry", budget: Entry, pod: Obj, options: Options) -> None:
    """Take one disruption from the budget, or refuse."""
    obj = budget.object
    state, name = obj.get("status", {}), budget.name
    if not _ready(pod):
        enough = state.get("currentHealthy", 0) >= state.get("desiredHealthy", 0) and state.get("desiredHealthy", 0) > 0
        if obj["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow" or enough:
            return
    if state.get("observedGeneration", 0) < obj["metadata"].get("generation", 0):
        raise _blocked(f"The disruption budget {name} is still being processed by the server.", 10)
    if state.get("disruptionsAllowed", 0) <= 0:
        raise _blocked(
            f"The disruption budget {name} needs {state.get('desiredHealthy', 0)} healthy pods "
            f"and has {state.get('currentHealthy', 0)} currently"
        )
    if options.dry_run:
        return
    changed = budget.copy()
    changed["status"]["disruptionsAllowed"] -= 1
    disrupted = changed["status"].setdefault("disruptedPods", {})
    disrupted[pod["metadata"]["name"]] = rfc3339(registry.now())
    registry.store.put("poddisruptionbudgets.policy", changed)
