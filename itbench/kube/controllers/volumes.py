"""PersistentVolume controller: binds claims to volumes, provisions where a known class does, releases what is given back.

Claims in use keep their protection finalizer. Basic: no snapshots or attachments; expansion is `expansion`.
"""

from fractions import Fraction

from itbench.kube.client import ApiError, Change, Obj, Objs
from itbench.kube.controllers.base import Context, Controller, is_deleting, own_key, put_status, with_meta
from itbench.kube.controllers.cache import Cache, Key, key_of, labels_of
from itbench.kube.controllers.pods import is_finished
from itbench.kube.controllers.selectors import matches
from itbench.kube.events import reference
from itbench.kube.quantity import parse_quantity
from itbench.kube.scheduler.volumes import CLAIMS, CLASSES, SELECTED_NODE, VOLUMES, claim_names

NO_PROVISIONER = "kubernetes.io/no-provisioner"
LOCAL_PROVISIONERS = frozenset({"rancher.io/local-path", "k8s.io/minikube-hostpath", "docker.io/hostpath"})
KNOWN_PROVISIONERS = LOCAL_PROVISIONERS | {
    "ebs.csi.aws.com",
    "kubernetes.io/aws-ebs",
    "pd.csi.storage.gke.io",
    "disk.csi.azure.com",
    "csi.example.com",
}
"""Provisioners that the world runs; a class of any other waits for its provisioner, as on a cluster where that is missing."""
PROTECTION = "kubernetes.io/pvc-protection"
BOUND = "pv.kubernetes.io/bind-completed"
BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
RETRY_S = 15.0


def _keys_of_volume(change: Change, cache: Cache) -> list[Key]:
    """Its claim, or all claims that still look for a volume."""
    ref = change.object["spec"].get("claimRef")
    if ref:
        return [(ref.get("namespace", ""), ref["name"]), ("", change.object["metadata"]["name"])]
    waiting = [c for c in cache.list(CLAIMS) if (c.get("status") or {}).get("phase", "Pending") == "Pending"]
    return [key_of(claim) for claim in waiting] + [("", change.object["metadata"]["name"])]


def _keys_of_class(change: Change, cache: Cache) -> list[Key]:
    name = change.object["metadata"]["name"]
    return [key_of(c) for c in cache.list(CLAIMS) if c["spec"].get("storageClassName") == name]


def _keys_of_pod(change: Change, cache: Cache) -> list[Key]:
    """Only the end of a pod matters: its claims may go."""
    if change.type != "DELETED" and not is_finished(change.object):
        return []
    return [(change.object["metadata"]["namespace"], name) for name in claim_names(change.object)]


def reconcile(context: Context, namespace: str, name: str) -> None:
    """One claim (with namespace) or one volume (without)."""
    if not namespace:
        _reconcile_volume(context, name)
        return
    claim = context.cache.get(CLAIMS, namespace, name)
    if claim is None:
        return
    if is_deleting(claim):
        _let_go(context, claim)
        return
    phase = (claim.get("status") or {}).get("phase", "Pending")
    volume = context.cache.get(VOLUMES, "", claim["spec"].get("volumeName") or "")
    if phase == "Bound":
        if volume is None:
            _lose(context, claim)
    elif volume is not None:
        _bind(context, claim, volume)
    elif phase != "Lost":
        _seek(context, claim)


def _let_go(context: Context, claim: Obj) -> None:
    """A deleted claim goes when no pod uses it any more."""
    namespace, name = key_of(claim)
    users = [p for p in context.cache.list("pods", namespace) if name in claim_names(p) and not is_finished(p)]
    finalizers = claim["metadata"].get("finalizers") or []
    if not users and PROTECTION in finalizers:
        rest = [f for f in finalizers if f != PROTECTION]
        context.client.patch(CLAIMS, name, namespace, {"metadata": {"finalizers": rest or None}})


def _lose(context: Context, claim: Obj) -> None:
    context.event(
        claim, "ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!", "Warning"
    )
    put_status(context, CLAIMS, claim, {**claim["status"], "phase": "Lost"})


def _seek(context: Context, claim: Obj) -> None:
    """Find a volume, provision one, or say what is missing."""
    name = claim["spec"].get("storageClassName") or ""
    found = context.cache.get(CLASSES, "", name)
    late = bool(found and found.get("volumeBindingMode") == "WaitForFirstConsumer")
    node = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE, "")
    if late and not node:
        text = "waiting for first consumer to be created before binding"
        _tell(context, claim, "WaitForFirstConsumer", text)
        return
    volume = _match(context, claim)
    if volume is not None:
        _bind(context, claim, volume)
    elif not name:
        text = "no persistent volumes available for this claim and no storage class is set"
        _tell(context, claim, "FailedBinding", text)
    elif found is None:
        _tell(context, claim, "ProvisioningFailed", f'storageclass.storage.k8s.io "{name}" not found', "Warning")
    elif found["provisioner"] == NO_PROVISIONER:
        text = f'storageclass.storage.k8s.io "{name}" has no provisioner and no persistent volume fits'
        _tell(context, claim, "FailedBinding", text)
    elif found["provisioner"] in KNOWN_PROVISIONERS:
        _provision(context, claim, found, node)
    else:
        who = found["provisioner"]
        text = (
            f"Waiting for a volume to be created either by the external provisioner '{who}' or manually by the system "
            "administrator. If volume creation is delayed, please verify that the provisioner is running and correctly "
            "registered."
        )
        _tell(context, claim, "ExternalProvisioning", text)


def _tell(context: Context, claim: Obj, reason: str, text: str, kind: str = "Normal") -> None:
    """Say it again every resync period, as the real controller does."""
    last = context.state.setdefault("told", {})
    uid = claim["metadata"]["uid"]
    if context.now >= last.get(uid, -RETRY_S) + RETRY_S or last.get(uid + "/reason") != reason:
        context.event(claim, reason, text, kind)
        last[uid], last[uid + "/reason"] = context.now, reason
    context.requeue(key_of(claim), last[uid] + RETRY_S)


def _capacity(volume: Obj) -> Fraction:
    return parse_quantity(str((volume["spec"].get("capacity") or {}).get("storage", "0")))


def _match(context: Context, claim: Obj) -> Obj | None:
    """The smallest available volume that satisfies the claim, one reserved for it first."""
    spec, namespace, name = claim["spec"], *key_of(claim)
    asked = parse_quantity(str(((spec.get("resources") or {}).get("requests") or {}).get("storage", "0")))
    fitting: Objs = []
    for volume in context.cache.list(VOLUMES):
        ref = volume["spec"].get("claimRef")
        if ref:
            mine = (ref.get("namespace"), ref.get("name")) == (namespace, name) and ref.get("uid") in (
                None,
                "",
                claim["metadata"]["uid"],
            )
            if mine:
                return volume
            continue
        if is_deleting(volume) or (volume["spec"].get("storageClassName") or "") != (
            spec.get("storageClassName") or ""
        ):
            continue
        modes = set(spec.get("accessModes") or ()) <= set(volume["spec"].get("accessModes") or ())
        chosen = not spec.get("selector") or matches(spec["selector"], labels_of(volume))
        same = spec.get("volumeMode", "Filesystem") == volume["spec"].get("volumeMode", "Filesystem")
        if modes and chosen and same and _capacity(volume) >= asked:
            fitting.append(volume)
    return min(fitting, key=lambda v: (_capacity(v), v["metadata"]["name"]), default=None)


def _bind(context: Context, claim: Obj, volume: Obj) -> None:
    namespace, name = key_of(claim)
    ref = volume["spec"].get("claimRef") or {}
    if ref and (ref.get("namespace"), ref.get("name")) != (namespace, name):
        text = f'volume "{volume["metadata"]["name"]}" already bound to a different claim.'
        _tell(context, claim, "FailedBinding", text, "Warning")
        return
    if ref.get("uid") != claim["metadata"]["uid"]:
        annotations = {**(volume["metadata"].get("annotations") or {}), BY_CONTROLLER: "yes"}
        spec = {**volume["spec"], "claimRef": reference(claim)}
        volume = context.client.update(VOLUMES, {**with_meta(volume, annotations=annotations), "spec": spec})
    put_status(context, VOLUMES, volume, {"phase": "Bound"})
    annotations = {**(claim["metadata"].get("annotations") or {}), BOUND: "yes"}
    if not claim["spec"].get("volumeName"):
        annotations[BY_CONTROLLER] = "yes"
    spec = {**claim["spec"], "volumeName": volume["metadata"]["name"]}
    claim = context.client.update(CLAIMS, {**with_meta(claim, annotations=annotations), "spec": spec})
    status = {
        "phase": "Bound",
        "accessModes": volume["spec"].get("accessModes") or [],
        "capacity": volume["spec"].get("capacity") or {},
    }
    put_status(context, CLAIMS, claim, status)


def _provision(context: Context, claim: Obj, found: Obj, node: str) -> None:
    name = f"pvc-{claim['metadata']['uid']}"
    asked = ((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage", "1Gi")
    spec: Obj = {
        "accessModes": claim["spec"].get("accessModes") or ["ReadWriteOnce"],
        "capacity": {"storage": asked},
        "claimRef": reference(claim),
        "persistentVolumeReclaimPolicy": found.get("reclaimPolicy", "Delete"),
        "storageClassName": found["metadata"]["name"],
        "volumeMode": claim["spec"].get("volumeMode", "Filesystem"),
    }
    if found["provisioner"] in LOCAL_PROVISIONERS:
        spec["hostPath"] = {"path": f"/var/local-path-provisioner/{name}", "type": "DirectoryOrCreate"}
        if node:
            term = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}}
    else:
        spec["csi"] = {"driver": found["provisioner"], "volumeHandle": f"vol-{claim['metadata']['uid'][:8]}"}
    body = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: found["provisioner"]}},
        "spec": spec,
    }
    try:
        volume = context.client.create(VOLUMES, body)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
        return
    context.event(claim, "ProvisioningSucceeded", f"Successfully provisioned volume {name}")
    _bind(context, claim, volume)


def _reconcile_volume(context: Context, name: str) -> None:
    volume = context.cache.get(VOLUMES, "", name)
    if volume is None:
        return
    ref = volume["spec"].get("claimRef")
    if not ref or not ref.get("uid"):
        if not is_deleting(volume):
            put_status(context, VOLUMES, volume, {"phase": "Available"})
        return
    claim = context.cache.get(CLAIMS, ref.get("namespace", ""), ref["name"])
    if claim is not None and claim["metadata"]["uid"] == ref["uid"]:
        return
    provisioned = PROVISIONED_BY in (volume["metadata"].get("annotations") or {})
    if volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete" and provisioned:
        rest = {"metadata": {"finalizers": None}}
        context.client.patch(VOLUMES, name, "", rest)
        if not is_deleting(volume):
            context.client.delete(VOLUMES, name)
    else:
        put_status(context, VOLUMES, volume, {"phase": "Released"})


CONTROLLER = Controller(
    "persistentvolume-binder",
    {CLAIMS: own_key, VOLUMES: _keys_of_volume, CLASSES: _keys_of_class, "pods": _keys_of_pod},
    reconcile,
    component="persistentvolume-controller",
)
