"""Rules of thumb about a namespace: from objects to suspected causes, each with commands that should repair it. Pure.

Used by `heuristic`. Every rule looks at one well-known way for things to break; none knows any scenario.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from itbench.agents.builtin.look import Obj, name_of, pod_spec


@dataclass(frozen=True, slots=True)
class Finding:
    """A suspected cause and the kubectl commands (as words) that should repair it."""

    entity: str
    mechanism: str
    repair: tuple[tuple[str, ...], ...] = ()


@dataclass
class View:
    """What can be seen of a namespace."""

    namespace: str
    page: str = ""
    deployments: list[Obj] = field(default_factory=list)
    replicasets: list[Obj] = field(default_factory=list)
    pods: list[Obj] = field(default_factory=list)
    services: list[Obj] = field(default_factory=list)
    configmaps: list[Obj] = field(default_factory=list)
    nodes: list[Obj] = field(default_factory=list)

    def deployment_of(self, pod: Obj) -> Obj | None:
        """The deployment whose replica set owns a pod."""
        sets = {name_of(item): item for item in self.replicasets}
        for owner in pod["metadata"].get("ownerReferences", []):
            for above in sets.get(owner["name"], {}).get("metadata", {}).get("ownerReferences", []):
                for deployment in self.deployments:
                    if name_of(deployment) == above["name"]:
                        return deployment
        return None

    def revisions(self, deployment: Obj) -> int:
        """How many revisions a deployment can go back to, its present one included."""
        name = name_of(deployment)
        return sum(
            any(owner["name"] == name for owner in item["metadata"].get("ownerReferences", []))
            for item in self.replicasets
        )


Rule = Callable[[View], Iterator[Finding]]


def _entity(kind: str, view: View, obj: Obj) -> str:
    return f"{kind}/{view.namespace}/{name_of(obj)}"


def _undo(view: View, deployment: Obj) -> tuple[tuple[str, ...], ...]:
    if view.revisions(deployment) < 2:
        return ()
    return (("rollout", "undo", f"deployment/{name_of(deployment)}", "-n", view.namespace),)


def _states(pod: Obj, kind: str) -> list[Obj]:
    status = pod.get("status", {})
    every = [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
    return [item["state"][kind] for item in every if kind in item.get("state", {})]


_WAITING = {
    "ErrImagePull": "image-unavailable",
    "ImagePullBackOff": "image-unavailable",
    "InvalidImageName": "image-unavailable",
    "CreateContainerConfigError": "config-missing",
    "CrashLoopBackOff": "crash-on-start",
}


def waiting_pods(view: View) -> Iterator[Finding]:
    """Containers that cannot start, by the kubelet's reason; the last rollout is taken back."""
    for pod in view.pods:
        deployment = view.deployment_of(pod)
        for state in _states(pod, "waiting") if deployment else ():
            mechanism = _WAITING.get(state.get("reason", ""))
            if mechanism and deployment:
                yield Finding(_entity("deployment", view, deployment), mechanism, _undo(view, deployment))


def unschedulable_pods(view: View) -> Iterator[Finding]:
    """Pods without a node; a node selector that no node satisfies is removed, anything else is rolled back."""
    for pod in view.pods:
        conditions = pod.get("status", {}).get("conditions", [])
        stuck = any(item["type"] == "PodScheduled" and item["status"] == "False" for item in conditions)
        deployment = view.deployment_of(pod)
        if not (stuck and deployment):
            continue
        wanted = pod_spec(deployment).get("nodeSelector", {})
        labels = [node["metadata"].get("labels", {}) for node in view.nodes]
        missing = [key for key, value in wanted.items() if labels and all(have.get(key) != value for have in labels)]
        place = (f"deployment/{name_of(deployment)}", "-n", view.namespace)
        patch = {"spec": {"template": {"spec": {"nodeSelector": dict.fromkeys(missing)}}}}
        repair = (("patch", *place, "-p", json.dumps(patch)),) if missing else _undo(view, deployment)
        yield Finding(_entity("deployment", view, deployment), "unschedulable", repair)


def wrong_addresses(view: View) -> Iterator[Finding]:
    """Settings `service:port` whose service exists but does not offer the port."""
    ports = {name_of(item): [port["port"] for port in item["spec"].get("ports", [])] for item in view.services}
    for deployment in view.deployments:
        for container in pod_spec(deployment)["containers"]:
            for variable in container.get("env", []):
                match = re.fullmatch(
                    r"(?:\w+://)?([a-z][a-z0-9-]*)(?:\.[a-z0-9.-]+)?:(\d+)(/.*)?", variable.get("value", "")
                )
                if match is None or not ports.get(match[1]) or int(match[2]) in ports[match[1]]:
                    continue
                right = variable["value"].replace(f":{match[2]}", f":{ports[match[1]][0]}")
                place = (f"deployment/{name_of(deployment)}", "-n", view.namespace)
                repair = (("set", "env", *place, "-c", container["name"], f"{variable['name']}={right}"),)
                yield Finding(_entity("deployment", view, deployment), "endpoint-wrong", repair)


def _selects(selector: dict[str, str], pod: Obj) -> bool:
    labels = pod["metadata"].get("labels", {})
    return all(labels.get(key) == value for key, value in selector.items())


def empty_services(view: View) -> Iterator[Finding]:
    """Services that select nothing, though without one of their labels they would select pods.

    Of several such labels the one goes that leaves the service's own name in the selector: `version` rather than `app`.
    """
    for service in view.services:
        selector = service["spec"].get("selector") or {}
        if not selector or any(_selects(selector, pod) for pod in view.pods):
            continue
        rests = {key: {name: selector[name] for name in selector if name != key} for key in sorted(selector)}
        guilty = [key for key, rest in rests.items() if rest and any(_selects(rest, pod) for pod in view.pods)]
        guilty.sort(key=lambda key: name_of(service) not in rests[key].values())
        for key in guilty[:1]:
            patch = json.dumps({"spec": {"selector": {key: None}}})
            repair = (("patch", f"service/{name_of(service)}", "-n", view.namespace, "-p", patch),)
            yield Finding(_entity("service", view, service), "selector-mismatch", repair)


def closed_ports(view: View) -> Iterator[Finding]:
    """Services that send to a port on which the selected pods' containers do not listen."""
    for service in view.services:
        selector = service["spec"].get("selector") or {}
        pods = [pod for pod in view.pods if selector and _selects(selector, pod)]
        open_ports = [port for pod in pods[:1] for item in pod["spec"]["containers"] for port in item.get("ports", [])]
        numbers = {port["containerPort"] for port in open_ports} | {port.get("name") for port in open_ports}
        for index, port in enumerate(service["spec"].get("ports", [])):
            target = port.get("targetPort", port["port"])
            if not open_ports or target in numbers or len(open_ports) > 1:
                continue
            path = f"/spec/ports/{index}/targetPort"
            patch = json.dumps([{"op": "replace", "path": path, "value": open_ports[0]["containerPort"]}])
            repair = (("patch", f"service/{name_of(service)}", "-n", view.namespace, "--type=json", "-p", patch),)
            yield Finding(_entity("service", view, service), "port-mismatch", repair)


def _words(text: str) -> set[str]:
    parts = re.sub(r"([a-z])([A-Z])", r"\1 \2", text).lower()
    return {word.removesuffix("s") for word in re.findall(r"[a-z]{3,}", parts)}


def active_flags(view: View) -> Iterator[Finding]:
    """Feature flags that are on and whose name speaks of what the page complains about; switched off, and read again."""
    complained = _words(view.page)
    for configmap in view.configmaps:
        for key, text in (configmap.get("data") or {}).items():
            flags = _flags(text)
            guilty = [name for name, flag in flags.items() if _is_on(flag) and _words(name) & complained]
            if not guilty:
                continue
            document = json.loads(text)
            for name in guilty:
                document["flags"][name]["defaultVariant"] = "off"
            patch = json.dumps({"data": {key: json.dumps(document, indent=2)}})
            change = ("patch", f"configmap/{name_of(configmap)}", "-n", view.namespace, "--type=merge", "-p", patch)
            readers = [name_of(item) for item in view.deployments if _mounts(item, name_of(configmap))]
            restarts = [("rollout", "restart", f"deployment/{name}", "-n", view.namespace) for name in readers]
            yield Finding(_entity("configmap", view, configmap), "flag-activated-defect", (change, *restarts))


def _flags(text: str) -> dict[str, Obj]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    flags = found.get("flags") if isinstance(found, dict) else None
    return flags if isinstance(flags, dict) else {}


def _is_on(flag: Obj) -> bool:
    return flag.get("state") == "ENABLED" and flag.get("defaultVariant") != "off" and "off" in flag.get("variants", {})


def _mounts(deployment: Obj, configmap: str) -> bool:
    volumes = pod_spec(deployment).get("volumes", [])
    return any(volume.get("configMap", {}).get("name") == configmap for volume in volumes)


def memory_kills(view: View) -> Iterator[Finding]:
    """Containers that the kernel ended for want of memory and that are not ready now."""
    for pod in view.pods:
        deployment = view.deployment_of(pod)
        for status in pod.get("status", {}).get("containerStatuses", []):
            last = status.get("lastState", {}).get("terminated", {}) or status.get("state", {}).get("terminated", {})
            if deployment and last.get("reason") == "OOMKilled" and not status.get("ready"):
                yield Finding(_entity("deployment", view, deployment), "out-of-memory", _undo(view, deployment))


def retries(view: View) -> Iterator[Finding]:
    """Callers that repeat failed requests: in an overload that does not end by itself, the repeats keep it alive."""
    for deployment in view.deployments:
        for container in pod_spec(deployment)["containers"]:
            for variable in container.get("env", []):
                value = variable.get("value", "")
                if (
                    re.search(r"RETRIES$|MAX_RETR|RETRY_(COUNT|MAX)", variable["name"])
                    and value.isdigit()
                    and int(value) > 0
                ):
                    place = (f"deployment/{name_of(deployment)}", "-n", view.namespace)
                    repair = (("set", "env", *place, "-c", container["name"], f"{variable['name']}=0"),)
                    yield Finding(_entity("deployment", view, deployment), "retry-amplification", repair)


CERTAIN: tuple[Rule, ...] = (
    unschedulable_pods,
    wrong_addresses,
    memory_kills,
    waiting_pods,
    empty_services,
    closed_ports,
)
"""Things that are wrong whatever the symptom is; the first finding for an entity and mechanism counts."""

PLAUSIBLE: tuple[Rule, ...] = (active_flags, retries)
"""Things that may explain a symptom, and are as often there without one."""


def findings(view: View, rules: tuple[Rule, ...]) -> list[Finding]:
    """What the rules find, each entity and mechanism once."""
    found: dict[tuple[str, str], Finding] = {}
    for rule in rules:
        for finding in rule(view):
            found.setdefault((finding.entity, finding.mechanism), finding)
    return list(found.values())
