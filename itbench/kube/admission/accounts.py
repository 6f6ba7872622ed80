"""ServiceAccount admission: every pod runs as an account that exists, and can reach the API with its token."""

from typing import Any

from itbench.kube import status
from itbench.kube.admission.write import Write
from itbench.kube.client import Obj
from itbench.kube.kinds.containers import default_container
from itbench.kube.nodeaccess import references

MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_TOKEN_S = 3607
_MIRROR = "kubernetes.io/config.mirror"


def _wants_token(spec: Obj, account: Obj) -> bool:
    choice = spec.get("automountServiceAccountToken")
    if choice is None:
        choice = account.get("automountServiceAccountToken")
    return choice is not False


def _volume(name: str) -> dict[str, Any]:
    field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    return {
        "name": name,
        "projected": {
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": _TOKEN_S, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}},
            ],
            "defaultMode": 420,
        },
    }


def _mount(spec: Obj, write: Write) -> None:
    """Add the token volume to every container that has nothing mounted at its place."""
    bare = [
        container
        for key in ("initContainers", "containers")
        for container in spec.get(key) or ()
        if all(row.get("mountPath") != MOUNT for row in container.get("volumeMounts") or ())
    ]
    if not bare:
        return
    present = next((row["name"] for row in spec.get("volumes") or () if row["name"].startswith("kube-api-access-")), "")
    name = present or "kube-api-access-" + write.ids.suffix("kube-api-access", write.namespace, write.name)
    for container in bare:
        row = {"name": name, "readOnly": True, "mountPath": MOUNT}
        container["volumeMounts"] = [*(container.get("volumeMounts") or ()), row]
    if not present:
        spec["volumes"] = [*(spec.get("volumes") or ()), _volume(name)]


def _check_mirror(write: Write, spec: Obj) -> None:
    """A pod that stands for a file on a node has no account of its own."""
    if spec.get("serviceAccountName"):
        raise status.forbidden(write.resource, write.name, "a mirror pod may not reference service accounts")
    if any(resource == "secrets" for resource, _ in references(spec)):
        raise status.forbidden(write.resource, write.name, "a mirror pod may not reference secrets")


def service_account(write: Write) -> None:
    """Default the account, refuse an unknown one, mount its token, take over its pull secrets."""
    if not write.new_pod():
        return
    spec = write.object["spec"]
    if _MIRROR in (write.object["metadata"].get("annotations") or {}):
        _check_mirror(write, spec)
        return
    name = spec.get("serviceAccountName") or "default"
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    entry = write.store.get("serviceaccounts", write.namespace, name)
    if entry is None:
        text = f'error looking up service account {write.namespace}/{name}: serviceaccount "{name}" not found'
        raise status.forbidden(write.resource, write.name, text)
    if _wants_token(spec, entry.object):
        _mount(spec, write)
    if not spec.get("imagePullSecrets") and entry.object.get("imagePullSecrets"):
        spec["imagePullSecrets"] = [dict(row) for row in entry.object["imagePullSecrets"]]
    for container in spec.get("containers") or ():
        default_container(container)
