"""PodDisruptionBudget status: how many pods are healthy, how many must be, how many may be evicted now."""

from itbench.kube.client import Change, Obj, Objs
from itbench.kube.controllers.base import Context, Controller, is_deleting, own_key, percent, put_status, seconds
from itbench.kube.controllers.cache import Cache, Key, controller_of, key_of, labels_of
from itbench.kube.controllers.conditions import upsert
from itbench.kube.controllers.pods import is_ready
from itbench.kube.controllers.selectors import matches

BUDGETS = "poddisruptionbudgets.policy"
DISRUPTED_FOR_S = 120.0
SCALES = {
    "Deployment": "deployments.apps",
    "ReplicaSet": "replicasets.apps",
    "StatefulSet": "statefulsets.apps",
    "ReplicationController": "replicationcontrollers",
}


def _keys_of_pod(change: Change, cache: Cache) -> list[Key]:
    pod, before = change.object, change.previous
    if change.type == "MODIFIED" and before is not None and _facts(pod) == _facts(before):
        return []
    budgets = cache.list(BUDGETS, pod["metadata"]["namespace"])
    labels = [labels_of(obj) for obj in (pod, before) if obj is not None]
    return [key_of(b) for b in budgets if any(matches(b["spec"].get("selector"), found) for found in labels)]


def _facts(pod: Obj) -> tuple[object, ...]:
    return is_ready(pod), is_deleting(pod), labels_of(pod)


def _keys_of_scale(change: Change, cache: Cache) -> list[Key]:
    return [key_of(budget) for budget in cache.list(BUDGETS, change.object["metadata"]["namespace"])]


def reconcile(context: Context, namespace: str, name: str) -> None:
    """Work out one budget."""
    budget = context.cache.get(BUDGETS, namespace, name)
    if budget is None:
        return
    pods = context.cache.pods_matching(namespace, budget["spec"].get("selector") or {})
    if budget["spec"].get("selector") is None:
        pods = []
    if not pods:
        context.event(budget, "NoPods", "No matching pods found")
    problem = ""
    try:
        expected, desired = _expect(context, budget, pods)
    except ValueError as error:
        problem, expected, desired = str(error), 0, 0
        context.event(
            budget,
            "CalculateExpectedPodCountFailed",
            f"Failed to calculate the number of expected pods: {problem}",
            "Warning",
        )
    disrupted = _still_disrupted(context, budget, pods)
    healthy = sum(is_ready(p) and not is_deleting(p) and p["metadata"]["name"] not in disrupted for p in pods)
    status: Obj = {
        "disruptionsAllowed": max(0, healthy - desired) if expected > 0 and not problem else 0,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "observedGeneration": budget["metadata"].get("generation", 1),
    }
    if problem:
        status = {
            **(budget.get("status") or {}),
            "disruptionsAllowed": 0,
            "observedGeneration": status["observedGeneration"],
        }
    if disrupted:
        status["disruptedPods"] = disrupted
    else:
        status.pop("disruptedPods", None)
    status["conditions"] = _conditions(context, budget, status["disruptionsAllowed"] > 0, problem)
    put_status(context, BUDGETS, budget, status)


def _conditions(context: Context, budget: Obj, allowed: bool, problem: str) -> Objs:
    reason = "SyncFailed" if problem else "SufficientPods" if allowed else "InsufficientPods"
    new = {
        "type": "DisruptionAllowed",
        "status": "True" if allowed else "False",
        "observedGeneration": budget["metadata"].get("generation", 1),
        "lastTransitionTime": context.stamp(),
        "reason": reason,
        "message": problem,
    }
    return upsert((budget.get("status") or {}).get("conditions"), new)


def _expect(context: Context, budget: Obj, pods: Objs) -> tuple[int, int]:
    """(expected pods, desired healthy)."""
    spec = budget["spec"]
    if spec.get("maxUnavailable") is not None:
        expected = _scale_of(context, pods)
        return expected, max(0, expected - percent(spec["maxUnavailable"], expected, up=True))
    wanted = spec.get("minAvailable")
    if isinstance(wanted, str) and wanted.endswith("%"):
        expected = _scale_of(context, pods)
        return expected, percent(wanted, expected, up=True)
    return len(pods), int(wanted) if wanted is not None else 0


def _scale_of(context: Context, pods: Objs) -> int:
    """Replicas asked of the controllers behind the pods."""
    scales: dict[str, int] = {}
    for pod in pods:
        ref = controller_of(pod)
        if ref is None:
            raise ValueError(f"found no controller ref for pod {pod['metadata']['name']!r}".replace("'", '"'))
        owner = context.cache.by_uid(ref["uid"])
        parent = controller_of(owner[1]) if owner is not None and ref["kind"] == "ReplicaSet" else None
        if parent is not None and (found := context.cache.by_uid(parent["uid"])) is not None:
            owner, ref = found, parent
        if owner is None or ref["kind"] not in SCALES:
            gone = ref["kind"] if owner is not None else ref["name"]
            raise ValueError(f"{gone} does not implement the scale subresource")
        scales[ref["uid"]] = owner[1]["spec"].get("replicas", 1)
    return sum(scales.values())


def _still_disrupted(context: Context, budget: Obj, pods: Objs) -> dict[str, str]:
    """Evictions granted lately whose pods are still there and not yet marked."""
    live = {p["metadata"]["name"] for p in pods if not is_deleting(p)}
    kept = {}
    for name, since in ((budget.get("status") or {}).get("disruptedPods") or {}).items():
        until = seconds(since) + DISRUPTED_FOR_S
        if name in live and context.now < until:
            kept[name] = since
            context.requeue(key_of(budget), until)
    return kept


CONTROLLER = Controller(
    "disruption-controller",
    {BUDGETS: own_key, "pods": _keys_of_pod, **dict.fromkeys(SCALES.values(), _keys_of_scale)},
    reconcile,
    component="controllermanager",
)
