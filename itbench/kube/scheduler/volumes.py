"""What the volumes of a pod demand of nodes. Pure; called by `cycle`. Binding itself is done by the volume controller."""

from dataclasses import dataclass, field

from itbench.kube.client import Obj, Objs
from itbench.kube.controllers.cache import Cache
from itbench.kube.scheduler.filters import Refusal, term_matches
from itbench.kube.scheduler.nodes import NodeInfo

CLAIMS = "persistentvolumeclaims"
VOLUMES = "persistentvolumes"
CLASSES = "storageclasses.storage.k8s.io"
SELECTED_NODE = "volume.kubernetes.io/selected-node"


@dataclass
class VolumeNeeds:
    """The claims of a pod: bound volumes restrict nodes, waiting ones are bound to the node that is chosen.

    Attributes:
        problem: why no node can do (a pre-filter message), or empty.
    """

    problem: str = ""
    bound: Objs = field(default_factory=list)
    waiting: Objs = field(default_factory=list)

    def check(self, info: NodeInfo) -> Refusal | None:
        """Node affinity of the bound volumes."""
        for volume in self.bound:
            required = (volume["spec"].get("nodeAffinity") or {}).get("required")
            if required and not any(term_matches(t, info) for t in required.get("nodeSelectorTerms") or ()):
                return Refusal("VolumeBinding", ("node(s) didn't match PersistentVolume's node affinity",), True)
        return None


def claim_names(pod: Obj) -> list[str]:
    """Claims that a pod mounts, generic ephemeral volumes included."""
    found = []
    for volume in pod["spec"].get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            found.append(volume["persistentVolumeClaim"]["claimName"])
        elif "ephemeral" in volume:
            found.append(f"{pod['metadata']['name']}-{volume['name']}")
    return found


def waits_for_consumer(claim: Obj, cache: Cache) -> bool:
    """Whether the claim is only bound once a pod needs it."""
    name = claim["spec"].get("storageClassName")
    found = cache.get(CLASSES, "", name) if name else None
    return bool(found and found.get("volumeBindingMode") == "WaitForFirstConsumer")


def needs(pod: Obj, cache: Cache) -> VolumeNeeds:
    """Look at all claims of a pod."""
    found = VolumeNeeds()
    for name in claim_names(pod):
        claim = cache.get(CLAIMS, pod["metadata"]["namespace"], name)
        if claim is None:
            found.problem = f'persistentvolumeclaim "{name}" not found'
        elif claim["metadata"].get("deletionTimestamp"):
            found.problem = f'persistentvolumeclaim "{name}" is being deleted'
        elif (claim.get("status") or {}).get("phase") == "Lost":
            volume = claim["spec"].get("volumeName", "")
            found.problem = f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
        else:
            _place(found, claim, cache)
        if found.problem:
            break
    return found


def _place(found: VolumeNeeds, claim: Obj, cache: Cache) -> None:
    volume = cache.get(VOLUMES, "", claim["spec"].get("volumeName") or "")
    if (claim.get("status") or {}).get("phase") == "Bound" and volume is not None:
        found.bound.append(volume)
    elif waits_for_consumer(claim, cache):
        found.waiting.append(claim)
    else:
        found.problem = "pod has unbound immediate PersistentVolumeClaims"
