"""Controls on what pods may do to their node (CIS Kubernetes 5.2, 5.4.1, 5.6.2): every kind that makes pods, every container.

A pod that a controller made is judged with its template; it is reported by itself only where it is worse than what made it.
"""

from collections.abc import Callable, Iterator
from typing import Any

from itbench.policy.controls.model import Check, Found, Obj, Objects, Subject, items, judged

TEMPLATES: dict[str, tuple[str, ...]] = {
    "pods": ("spec",),
    "deployments.apps": ("spec", "template", "spec"),
    "daemonsets.apps": ("spec", "template", "spec"),
    "statefulsets.apps": ("spec", "template", "spec"),
    "replicasets.apps": ("spec", "template", "spec"),
    "replicationcontrollers": ("spec", "template", "spec"),
    "jobs.batch": ("spec", "template", "spec"),
    "cronjobs.batch": ("spec", "jobTemplate", "spec", "template", "spec"),
}
"""Every resource that holds a pod, and where its pod specification is."""
WORKLOADS = tuple(TEMPLATES)
LISTS = (
    ("initContainers", "init container"),
    ("containers", "container"),
    ("ephemeralContainers", "ephemeral container"),
)
SAFE_PROFILES = ("RuntimeDefault", "Localhost")
MAY_ADD = frozenset({"NET_BIND_SERVICE"})

Spec = dict[str, Any]


def pod_spec(resource: str, obj: Obj) -> Spec:
    """The pod specification of an object; empty when it has none (a ReplicationController without a template)."""
    found: Any = obj
    for step in TEMPLATES[resource]:
        found = (found or {}).get(step)
    return found or {}


def workloads(objects: Objects) -> Iterator[tuple[Obj, Spec]]:
    """Every object that holds a pod specification, with it."""
    for resource in WORKLOADS:
        for obj in objects.get(resource, ()):
            if spec := pod_spec(resource, obj):
                yield obj, spec


def containers(spec: Spec) -> Iterator[tuple[str, Obj]]:
    """Every container of a pod, however it is started, with words for it."""
    for key, words in LISTS:
        for container in spec.get(key) or ():
            yield f"{words} {container.get('name', '')}", container


def controller(obj: Obj) -> str:
    """The uid of what made an object; empty when nobody did."""
    owners = obj["metadata"].get("ownerReferences") or ()
    return next((str(owner.get("uid", "")) for owner in owners if owner.get("controller")), "")


def per_workload(faults: Callable[[Spec], Iterator[str]], fine: str) -> Check:
    """A control from a function that names what is wrong with a pod specification."""

    def check(objects: Objects) -> Iterator[Found]:
        judgements: dict[str, Found] = {}
        for obj, spec in _owners_first(objects):
            found = judged(Subject.of(obj), faults(spec), fine)
            above = judgements.get(controller(obj))
            judgements[obj["metadata"].get("uid") or str(found.subject)] = found
            if above is None or (found.state == "not_satisfied" and found.observed != above.observed):
                yield found

    return check


def _owners_first(objects: Objects) -> Iterator[tuple[Obj, Spec]]:
    """Makers before what they made: two levels (CronJob, Job, pod; Deployment, ReplicaSet, pod) are all there is."""
    order = ("deployments.apps", "daemonsets.apps", "statefulsets.apps", "cronjobs.batch", "replicationcontrollers")
    for resource in (*order, "replicasets.apps", "jobs.batch", "pods"):
        yield from workloads({resource: objects.get(resource, [])})


def context(holder: Obj) -> Obj:
    """`securityContext` of a pod or container, never None."""
    return holder.get("securityContext") or {}


def flag_of_pod(field: str) -> Callable[[Spec], Iterator[str]]:
    """hostPID, hostIPC, hostNetwork."""

    def faults(spec: Spec) -> Iterator[str]:
        if spec.get(field):
            yield f"{field}: true"

    return faults


def privileged(spec: Spec) -> Iterator[str]:
    """Containers with all rights of the node."""
    for name, container in containers(spec):
        if context(container).get("privileged"):
            yield f"{name}: privileged: true"


def escalation(spec: Spec) -> Iterator[str]:
    """Containers whose processes may gain more rights than their parents: left out means allowed."""
    for name, container in containers(spec):
        value = context(container).get("allowPrivilegeEscalation")
        if value is not False:
            yield f"{name}: allowPrivilegeEscalation {'is not set' if value is None else 'is true'}"


def root(spec: Spec) -> Iterator[str]:
    """Containers that may run as root: the container's word goes before the pod's, a user id before the promise."""
    pod = context(spec)
    for name, container in containers(spec):
        own = context(container)
        user = own.get("runAsUser", pod.get("runAsUser"))
        promise = own.get("runAsNonRoot", pod.get("runAsNonRoot"))
        if user == 0:
            yield f"{name}: runAsUser is 0"
        elif user is None and promise is not True:
            yield f"{name}: runAsNonRoot {'is false' if promise is False else 'is not set'}, no runAsUser"


def _capabilities(container: Obj, part: str) -> set[str]:
    listed = (context(container).get("capabilities") or {}).get(part) or ()
    return {str(name).upper().removeprefix("CAP_") for name in listed}


def raw_network(spec: Spec) -> Iterator[str]:
    """Containers that can forge packets."""
    for name, container in containers(spec):
        added, dropped = _capabilities(container, "add"), _capabilities(container, "drop")
        if added & {"NET_RAW", "ALL"}:
            yield f"{name}: adds {', '.join(sorted(added & {'NET_RAW', 'ALL'}))}"
        elif not dropped & {"NET_RAW", "ALL"} and not context(container).get("privileged"):
            yield f"{name}: does not drop NET_RAW"
        elif context(container).get("privileged"):
            yield f"{name}: privileged, so nothing is dropped"


def capabilities(spec: Spec) -> Iterator[str]:
    """Containers that keep, or add, rights of the kernel."""
    for name, container in containers(spec):
        extra = _capabilities(container, "add") - MAY_ADD
        if extra:
            yield f"{name}: adds {', '.join(sorted(extra))}"
        elif "ALL" not in _capabilities(container, "drop"):
            yield f"{name}: does not drop ALL"


def host_process(spec: Spec) -> Iterator[str]:
    """Windows containers that run on the node itself."""
    if (context(spec).get("windowsOptions") or {}).get("hostProcess"):
        yield "pod: hostProcess: true"
    for name, container in containers(spec):
        if (context(container).get("windowsOptions") or {}).get("hostProcess"):
            yield f"{name}: hostProcess: true"


def host_paths(spec: Spec) -> Iterator[str]:
    """Volumes that are folders of the node."""
    for volume in spec.get("volumes") or ():
        if "hostPath" in volume:
            yield f"volume {volume.get('name', '')}: hostPath {(volume['hostPath'] or {}).get('path', '')}"


def host_ports(spec: Spec) -> Iterator[str]:
    """Ports opened on the node."""
    for name, container in containers(spec):
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                yield f"{name}: hostPort {port['hostPort']}"


def secrets_in_environment(spec: Spec) -> Iterator[str]:
    """Secrets that every process of a container, and every crash dump, sees."""
    for name, container in containers(spec):
        for entry in container.get("env") or ():
            if (entry.get("valueFrom") or {}).get("secretKeyRef"):
                yield f"{name}: env {entry.get('name', '')} from secret {entry['valueFrom']['secretKeyRef'].get('name', '')}"
        for source in container.get("envFrom") or ():
            if source.get("secretRef"):
                yield f"{name}: envFrom secret {source['secretRef'].get('name', '')}"


def seccomp(spec: Spec) -> Iterator[str]:
    """Containers whose system calls are not filtered: a container's own profile goes before the pod's."""
    pod = (context(spec).get("seccompProfile") or {}).get("type")
    for name, container in containers(spec):
        effective = (context(container).get("seccompProfile") or {}).get("type", pod)
        if effective not in SAFE_PROFILES:
            yield f"{name}: seccompProfile {effective or 'is not set'}"


def token_mounts(objects: Objects) -> Iterator[Found]:
    """Workloads whose pods get a token because nobody decided: pod and service account both say nothing."""
    decided = {
        (obj["metadata"]["namespace"], obj["metadata"]["name"]): obj.get("automountServiceAccountToken")
        for obj in items(objects, ["serviceaccounts"])
    }
    for obj, spec in _owners_first(objects):
        if controller(obj):
            continue
        account = spec.get("serviceAccountName") or "default"
        own = spec.get("automountServiceAccountToken")
        above = decided.get((obj["metadata"].get("namespace", ""), account))
        place = "pod" if own is not None else f"service account {account}"
        fault = [f"automountServiceAccountToken is not set on the pod or on service account {account}"]
        effective = above if own is None else own
        yield judged(Subject.of(obj), fault if effective is None else [], f"{place}: automount {effective}".lower())
