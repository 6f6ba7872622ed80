"""Growing volumes: first the volume itself, then its file system, which wants a running pod that mounts it.

Provisioners that cannot expand leave the claim waiting. Source: behaviour of the CSI resizer and of a 1.34 kubelet.
"""

from itbench.kube.client import Change, Obj
from itbench.kube.controllers.base import Context, Controller, is_deleting, own_key, put_status
from itbench.kube.controllers.cache import Cache, Key, key_of
from itbench.kube.controllers.conditions import find, remove, set_condition
from itbench.kube.controllers.pods import phase
from itbench.kube.controllers.volumes import KNOWN_PROVISIONERS, LOCAL_PROVISIONERS, PROVISIONED_BY
from itbench.kube.quantity import parse_quantity
from itbench.kube.scheduler.volumes import CLAIMS, VOLUMES, claim_names

RESIZE_S = 3.0
"""How long each of the two steps takes."""
PENDING = "FileSystemResizePending"
_RESTART = "Waiting for user to (re-)start a pod to finish file system resize of volume on node."
_EXTERNAL = "waiting for an external controller to expand this PVC"


def _keys_of_pod(change: Change, cache: Cache) -> list[Key]:
    """The claims of a pod that has just begun to run."""
    before = change.previous
    if change.type == "DELETED" or phase(change.object) != "Running" or (before and phase(before) == "Running"):
        return []
    return [(change.object["metadata"]["namespace"], name) for name in claim_names(change.object)]


def _storage(amounts: Obj | None) -> str:
    return str((amounts or {}).get("storage", "0"))


def reconcile(context: Context, namespace: str, name: str) -> None:
    """One claim: the next step of its growth, when its time has come."""
    claim = context.cache.get(CLAIMS, namespace, name)
    due = context.state.setdefault("due", {})
    if claim is None or is_deleting(claim) or (claim.get("status") or {}).get("phase") != "Bound":
        return
    uid, asked = claim["metadata"]["uid"], _storage((claim["spec"].get("resources") or {}).get("requests"))
    volume = context.cache.get(VOLUMES, "", claim["spec"].get("volumeName", ""))
    if volume is None or parse_quantity(asked) <= parse_quantity(_storage(claim["status"].get("capacity"))):
        due.pop(uid, None)
        return
    provisioner = (volume["metadata"].get("annotations") or {}).get(PROVISIONED_BY, "")
    if provisioner not in KNOWN_PROVISIONERS - LOCAL_PROVISIONERS:
        if uid not in due:
            due[uid] = context.now
            context.event(claim, "ExternalExpanding", _EXTERNAL)
        return
    grown = parse_quantity(_storage(volume["spec"].get("capacity"))) >= parse_quantity(asked)
    if grown and not _is_mounted(context, claim):
        due.pop(uid, None)
        return
    if uid not in due:
        due[uid] = context.now + RESIZE_S
        if not grown:
            context.event(claim, "Resizing", f"External resizer is resizing volume {volume['metadata']['name']}")
    if due[uid] > context.now:
        context.requeue((namespace, name), due[uid])
        return
    del due[uid]
    if grown:
        _finish(context, claim, asked)
    else:
        _grow(context, claim, volume, asked)
        context.requeue((namespace, name), context.now)


def _is_mounted(context: Context, claim: Obj) -> bool:
    namespace, name = key_of(claim)
    return any(phase(pod) == "Running" and name in claim_names(pod) for pod in context.cache.list("pods", namespace))


def _grow(context: Context, claim: Obj, volume: Obj, asked: str) -> None:
    """The volume has its new size; the file system has not."""
    patch = {"spec": {"capacity": {"storage": asked}}}
    context.client.patch(VOLUMES, volume["metadata"]["name"], "", patch)
    status, stamp = claim["status"], context.stamp()
    if find(status.get("conditions"), PENDING) is None:
        new = {
            "type": PENDING,
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": stamp,
            "message": _RESTART,
        }
        put_status(context, CLAIMS, claim, {**status, "conditions": set_condition(status.get("conditions"), new)})
    context.event(claim, "FileSystemResizeRequired", "Require file system resize of volume on node")


def _finish(context: Context, claim: Obj, asked: str) -> None:
    status = {**claim["status"], "capacity": {**(claim["status"].get("capacity") or {}), "storage": asked}}
    status["conditions"] = remove(status.get("conditions"), PENDING)
    if not status["conditions"]:
        del status["conditions"]
    put_status(context, CLAIMS, claim, status)
    name = claim["spec"]["volumeName"]
    context.event(claim, "FileSystemResizeSuccessful", f'MountVolume.NodeExpandVolume succeeded for volume "{name}"')


CONTROLLER = Controller(
    "volume-expand", {CLAIMS: own_key, "pods": _keys_of_pod}, reconcile, component="external-resizer"
)
