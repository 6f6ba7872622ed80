"""Controls on namespaces (CIS Kubernetes 5.3.2, 5.6.4): network policies where pods run, nothing in `default`."""

from collections.abc import Iterator

from itbench.policy.controls.model import Found, Objects, Subject, items, judged
from itbench.policy.controls.pods import WORKLOADS, controller

POLICIES = "networkpolicies.networking.k8s.io"
MOVABLE = (*WORKLOADS, "services", "persistentvolumeclaims", "configmaps")
OWN = frozenset({("Service", "kubernetes"), ("ConfigMap", "kube-root-ca.crt")})
"""What Kubernetes itself keeps in `default`."""


def network_policies(objects: Objects) -> Iterator[Found]:
    """Namespaces in which something runs and no policy says who may talk to it."""
    covered = {policy["metadata"]["namespace"] for policy in objects.get(POLICIES, ())}
    busy = {obj["metadata"].get("namespace", "") for obj in items(objects, WORKLOADS)}
    for namespace in objects.get("namespaces", ()):
        name, subject = namespace["metadata"]["name"], Subject.of(namespace)
        if name not in busy:
            yield Found(subject, "not_applicable", reason="nothing runs in this namespace")
        else:
            yield judged(subject, [] if name in covered else ["no NetworkPolicy"], "has a NetworkPolicy")


def default_namespace(objects: Objects) -> Iterator[Found]:
    """What lies in `default` although it could lie elsewhere."""
    found = sorted(
        f"{obj['kind']}/{obj['metadata']['name']}"
        for obj in items(objects, MOVABLE)
        if obj["metadata"].get("namespace") == "default"
        and not controller(obj)
        and (obj["kind"], obj["metadata"]["name"]) not in OWN
    )
    for namespace in objects.get("namespaces", ()):
        if namespace["metadata"]["name"] == "default":
            shown = ", ".join(found[:10]) + (f" and {len(found) - 10} more" if len(found) > 10 else "")
            yield judged(Subject.of(namespace), [f"holds {shown}"] if found else [], "holds nothing of its users")
