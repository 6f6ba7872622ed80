"""The volume claims of a StatefulSet's members: made with them, and owned as `persistentVolumeClaimRetentionPolicy` says.

A claim that is to go with the set is owned by the set, one that is to go with a member that is scaled away by that pod; the
garbage collector does the rest. Called by the StatefulSet controller.
"""

from collections.abc import Iterator

from itbench.kube.client import Obj
from itbench.kube.controllers.base import Context, is_deleting, owner_reference

CLAIMS = "persistentvolumeclaims"


def _names(owner: Obj, pod_name: str) -> Iterator[tuple[str, Obj]]:
    for template in owner["spec"].get("volumeClaimTemplates") or ():
        yield f"{template['metadata']['name']}-{pod_name}", template


def ensure(context: Context, owner: Obj, number: int) -> None:
    """Make the claims of a member that are missing."""
    namespace, set_name = owner["metadata"]["namespace"], owner["metadata"]["name"]
    pod_name = f"{set_name}-{number}"
    for name, template in _names(owner, pod_name):
        if context.cache.get(CLAIMS, namespace, name) is not None:
            continue
        meta = {k: v for k, v in template["metadata"].items() if k in ("labels", "annotations")}
        meta["labels"] = {**(meta.get("labels") or {}), **(owner["spec"]["selector"].get("matchLabels") or {})}
        if _policy(owner, "whenDeleted"):
            meta["ownerReferences"] = [owner_reference(owner)]
        body = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {**meta, "name": name, "namespace": namespace},
            "spec": template["spec"],
        }
        context.client.create(CLAIMS, body, namespace)
        text = f"create Claim {name} Pod {pod_name} in StatefulSet {set_name} success"
        context.event(owner, "SuccessfulCreate", text)


def _policy(owner: Obj, when: str) -> bool:
    """Whether claims are deleted then."""
    return bool((owner["spec"].get("persistentVolumeClaimRetentionPolicy") or {}).get(when) == "Delete")


def retain(context: Context, owner: Obj, pod: Obj, *, leaving: bool) -> None:
    """Give a member's claims the owners that the policy asks for.

    Args:
        leaving: the member is beyond the wanted number.
    """
    by_pod = leaving and _policy(owner, "whenScaled")
    by_set = _policy(owner, "whenDeleted") and not by_pod
    namespace, ours = owner["metadata"]["namespace"], {owner["metadata"]["uid"], pod["metadata"]["uid"]}
    for name, _ in _names(owner, pod["metadata"]["name"]):
        found = context.cache.get(CLAIMS, namespace, name)
        if found is None or is_deleting(found):
            continue
        before = found["metadata"].get("ownerReferences") or []
        refs = [ref for ref in before if ref["uid"] not in ours]
        refs += [owner_reference(pod)] if by_pod else [owner_reference(owner)] if by_set else []
        if refs != before:
            context.client.patch(CLAIMS, name, namespace, {"metadata": {"ownerReferences": refs or None}})
