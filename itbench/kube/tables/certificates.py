"""Rows of certificate requests."""

from itbench.kube.client import Obj
from itbench.kube.tables.cells import NONE, Cells, age, human


def _condition(obj: Obj) -> str:
    status = obj.get("status") or {}
    kinds = [row["type"] for row in status.get("conditions") or ()]
    decided = "Denied" if "Denied" in kinds else "Approved" if "Approved" in kinds else "Pending"
    shown = [decided] if decided != "Pending" or not status.get("certificate") else []
    shown += ["Failed"] if "Failed" in kinds else []
    return ",".join([*shown, *(["Issued"] if status.get("certificate") else [])]) or "Pending"


def request(obj: Obj) -> Cells:
    """Signer, requestor, duration asked for, what was decided."""
    spec = obj.get("spec") or {}
    lifetime = spec.get("expirationSeconds")
    return [
        obj["metadata"]["name"],
        age(obj),
        spec.get("signerName") or NONE,
        spec.get("username", ""),
        NONE if lifetime is None else human(float(lifetime)),
        _condition(obj),
    ]
