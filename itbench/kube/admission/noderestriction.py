"""NodeRestriction: what a kubelet may write, beyond what its node is authorized for. Texts are those of the real plugin."""

from itbench.kube import status
from itbench.kube.admission.write import Write
from itbench.kube.client import ApiError, Obj
from itbench.kube.nodeaccess import node_of, references

MIRROR = "kubernetes.io/config.mirror"
_OWN_LABELS = frozenset(
    {
        *("beta.kubernetes.io/arch", "beta.kubernetes.io/instance-type", "beta.kubernetes.io/os"),
        *("failure-domain.beta.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone"),
        *("kubernetes.io/arch", "kubernetes.io/hostname", "kubernetes.io/os"),
        *("node.kubernetes.io/instance-type", "topology.kubernetes.io/region", "topology.kubernetes.io/zone"),
    }
)
"""Labels of Kubernetes' own domains that a node may set on itself."""
_OWN_PREFIXES = ("kubelet.kubernetes.io", "node.kubernetes.io")
_SOURCES = ("configmaps", "persistentvolumeclaims")


def node_restriction(write: Write) -> None:
    """Refuse a node's writes to what is not its own."""
    node = node_of(write.user, write.groups)
    if not node:
        return
    if write.key == "pods":
        _check_pod(write, node)
    elif write.key == "nodes" and write.operation in ("CREATE", "UPDATE"):
        _check_node(write, node)
    elif write.key == "leases.coordination.k8s.io" and write.name != node:
        raise _no(write, "can only access node lease with the same name as the requesting node")
    elif write.key == "serviceaccounts" and write.subresource == "token":
        _check_token(write, node)


def _no(write: Write, text: str) -> ApiError:
    return status.forbidden(write.resource, write.name, text)


def _is_on(pod: Obj, node: str) -> bool:
    return bool((pod.get("spec") or {}).get("nodeName") == node)


def _check_pod(write: Write, node: str) -> None:
    if write.subresource == "eviction":
        entry = write.store.get("pods", write.namespace, write.name)
        if entry is not None and not _is_on(entry.object, node):
            raise _no(write, f"node {node} can only evict pods with spec.nodeName set to itself")
    elif write.subresource == "status":
        _check_status(write, node)
    elif write.subresource:
        text = f"unexpected pod subresource \"{write.subresource}\", only 'status' and 'eviction' are allowed"
        raise _no(write, text)
    elif write.operation == "CREATE":
        _check_mirror(write, node)
    elif write.operation == "DELETE" and not _is_on(write.object, node):
        raise _no(write, f'node "{node}" can only delete pods with spec.nodeName set to itself')


def _check_status(write: Write, node: str) -> None:
    before = write.old or {}
    if not _is_on(before, node):
        raise _no(write, f'node "{node}" can only update pod status for pods with spec.nodeName set to itself')
    if (before["metadata"].get("labels") or {}) != (write.object["metadata"].get("labels") or {}):
        raise _no(write, f'node "{node}" cannot update labels through pod status')


def _check_mirror(write: Write, node: str) -> None:
    pod, meta = write.object, write.object["metadata"]
    if MIRROR not in (meta.get("annotations") or {}):
        raise _no(write, f'pod does not have "{MIRROR}" annotation, node "{node}" can only create mirror pods')
    if not _is_on(pod, node):
        raise _no(write, f'node "{node}" can only create pods with spec.nodeName set to itself')
    entry = write.store.get("nodes", "", node)
    uid = entry.object["metadata"]["uid"] if entry is not None else ""
    owners = [
        (row.get("kind"), row.get("name"), row.get("uid"), bool(row.get("controller")))
        for row in meta.get("ownerReferences") or ()
    ]
    if owners != [("Node", node, uid, True)]:
        raise _no(write, f'node "{node}" can only create pods with an owner reference set to itself')
    for resource, _ in references(pod["spec"]):
        if resource in _SOURCES:
            raise _no(write, f'node "{node}" can not create pods that reference {resource}')


def _check_node(write: Write, node: str) -> None:
    if write.name != node:
        raise _no(write, f'node "{node}" is not allowed to modify node "{write.name}"')
    before, new = write.old or {}, write.object
    if write.operation == "UPDATE" and (before["spec"].get("taints") or []) != (new["spec"].get("taints") or []):
        raise _no(write, f'node "{node}" is not allowed to modify taints')
    old_labels, labels = ((one.get("metadata", {}).get("labels") or {}) for one in (before, new))
    changed = {key for key in {*old_labels, *labels} if old_labels.get(key) != labels.get(key)}
    wrong = sorted(key for key in changed if _is_reserved(key))
    if wrong:
        verb = "modify" if write.operation == "UPDATE" else "set"
        raise _no(write, f"is not allowed to {verb} labels: {', '.join(wrong)}")


def _is_reserved(key: str) -> bool:
    """Whether a label belongs to Kubernetes and is none of those that kubelets set."""
    domain, slash, _ = key.rpartition("/")
    if not slash or key in _OWN_LABELS:
        return False
    if any(domain == own or domain.endswith(f".{own}") for own in _OWN_PREFIXES):
        return False
    return any(domain == own or domain.endswith(f".{own}") for own in ("kubernetes.io", "k8s.io"))


def _check_token(write: Write, node: str) -> None:
    ref = (write.object.get("spec") or {}).get("boundObjectRef") or {}
    if ref.get("kind") != "Pod" or ref.get("apiVersion") != "v1":
        raise _no(write, "node requested token not bound to a pod")
    if not ref.get("uid"):
        raise _no(write, "node requested token with a pod binding without a uid")
    entry = write.store.get("pods", write.namespace, ref.get("name", ""))
    if entry is None or entry.object["metadata"]["uid"] != ref["uid"] or not _is_on(entry.object, node):
        raise _no(write, "node requested token bound to a pod scheduled on a different node")
