"""Which claims may grow: bound ones of a class that allows it."""

from itbench.kube import status
from itbench.kube.admission.write import Write
from itbench.kube.client import Obj
from itbench.kube.quantity import parse_quantity

_ONLY_BOUND = "Only bound persistent volume claims can be expanded"
_ONLY_ALLOWED = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
)


def _asked(claim: Obj) -> str:
    requests: Obj = (claim["spec"].get("resources") or {}).get("requests") or {}
    return str(requests.get("storage", "0"))


def claim_resize(write: Write) -> None:
    """Refuse to let a claim grow that cannot."""
    if write.key != "persistentvolumeclaims" or write.operation != "UPDATE" or write.subresource or write.old is None:
        return
    if parse_quantity(_asked(write.object)) <= parse_quantity(_asked(write.old)):
        return
    if (write.old.get("status") or {}).get("phase") != "Bound":
        raise status.forbidden(write.resource, write.name, _ONLY_BOUND)
    name = write.object["spec"].get("storageClassName") or ""
    found = write.store.get("storageclasses.storage.k8s.io", "", name) if name else None
    if found is None or not found.object.get("allowVolumeExpansion"):
        raise status.forbidden(write.resource, write.name, _ONLY_ALLOWED)
