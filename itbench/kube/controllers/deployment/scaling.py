"""How large each ReplicaSet of a Deployment should be: pure arithmetic, called by `rollout`."""

from itbench.kube.client import Obj, Objs
from itbench.kube.controllers.base import percent, whole

DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMUM = "deployment.kubernetes.io/max-replicas"


def size(replica_set: Obj) -> int:
    """Replicas asked of a ReplicaSet."""
    return int(replica_set["spec"].get("replicas", 1))


def total(sets: Objs) -> int:
    """Replicas asked of all."""
    return sum(map(size, sets))


def counted(sets: Objs, field: str) -> int:
    """Sum of a status count."""
    return sum((s.get("status") or {}).get(field, 0) for s in sets)


def is_rolling(deployment: Obj) -> bool:
    """Strategy RollingUpdate."""
    return bool(((deployment["spec"].get("strategy") or {}).get("type") or "RollingUpdate") == "RollingUpdate")


def fenceposts(deployment: Obj) -> tuple[int, int]:
    """(maxSurge, maxUnavailable) as numbers; both zero would stand still, so one pod may then be missing."""
    if not is_rolling(deployment):
        return 0, 0
    replicas = size(deployment)
    rolling = (deployment["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    surge = percent(rolling.get("maxSurge", "25%"), replicas, up=True)
    unavailable = percent(rolling.get("maxUnavailable", "25%"), replicas, up=False)
    return surge, 1 if surge == 0 and unavailable == 0 else unavailable


def max_unavailable(deployment: Obj) -> int:
    """How many of the desired replicas may be missing."""
    replicas = size(deployment)
    return 0 if not is_rolling(deployment) or replicas == 0 else min(fenceposts(deployment)[1], replicas)


def new_size(deployment: Obj, sets: Objs, new: Obj) -> int:
    """The size to which the new ReplicaSet may grow now."""
    wanted = size(deployment)
    if not is_rolling(deployment):
        return wanted
    room = wanted + fenceposts(deployment)[0] - total(sets)
    return size(new) if room <= 0 else size(new) + min(room, wanted - size(new))


def old_sizes(deployment: Obj, new: Obj, old: Objs) -> list[int]:
    """Sizes of the old ReplicaSets (oldest first) after this step: unhealthy replicas go first, then what availability allows."""
    sizes = [size(s) for s in old]
    floor = size(deployment) - max_unavailable(deployment)
    missing = size(new) - counted([new], "availableReplicas")
    budget = sum(sizes) + size(new) - floor - missing
    if budget <= 0:
        return sizes
    for index, replica_set in enumerate(old):
        unhealthy = sizes[index] - counted([replica_set], "availableReplicas")
        gone = max(0, min(budget, unhealthy))
        sizes[index] -= gone
        budget -= gone
    spare = counted([*old, new], "availableReplicas") - floor
    for index in range(len(old)):
        gone = max(0, min(spare, sizes[index]))
        sizes[index] -= gone
        spare -= gone
    return sizes


def proportional_sizes(deployment: Obj, active: Objs) -> dict[str, int]:
    """Sizes by ReplicaSet name when a Deployment is scaled in mid-rollout: each in proportion, the largest takes the rest.

    Args:
        deployment: with the new number of replicas.
        active: ReplicaSets with replicas, old and new.
    """
    wanted = size(deployment)
    allowed = wanted + fenceposts(deployment)[0] if wanted else 0
    change = allowed - total(active)
    ordered = sorted(active, key=lambda s: s["metadata"]["creationTimestamp"], reverse=change > 0)
    ordered.sort(key=lambda s: -size(s))
    sizes: dict[str, int] = {}
    added = 0
    for replica_set in ordered:
        share = _share(deployment, replica_set, change, added)
        sizes[replica_set["metadata"]["name"]] = size(replica_set) + share
        added += share
    if ordered and change:
        largest = ordered[0]["metadata"]["name"]
        sizes[largest] = max(0, sizes[largest] + change - added)
    return sizes


def _share(deployment: Obj, replica_set: Obj, change: int, added: int) -> int:
    if size(replica_set) == 0 or change in (0, added):
        return 0
    fraction, rest = _fraction(deployment, replica_set), change - added
    return min(fraction, rest) if change > 0 else max(fraction, rest)


def _fraction(deployment: Obj, replica_set: Obj) -> int:
    wanted, now = size(deployment), size(replica_set)
    if wanted == 0:
        return -now
    annotations = replica_set["metadata"].get("annotations") or {}
    before = whole(annotations.get(MAXIMUM)) or (deployment.get("status") or {}).get("replicas", 0)
    if before == 0:
        return 0
    return int(now * (wanted + fenceposts(deployment)[0]) / before + 0.5) - now
