"""What is done to an estate after the agent left, to see whether the repair holds: replay, delete a pod, roll a node."""

from itbench.core.errors import ScenarioDefect
from itbench.evaluate.slo import ChallengeSpec
from itbench.kube.client import ApiError, Client, Obj
from itbench.kube.controllers.pods import is_ready
from itbench.stage.environment import Environment


async def challenge(spec: ChallengeSpec, environment: Environment) -> None:
    """Do one challenge `times` times, `gap` seconds apart, then wait until its effect must be over."""
    for number in range(spec.times):
        if number:
            await environment.advance(spec.gap)
        await _once(spec, environment)
    await environment.advance(spec.wait)


async def _once(spec: ChallengeSpec, environment: Environment) -> None:
    client = environment.client("grader")
    if spec.replay:
        await environment.replay()
    if spec.delete_pod:
        for pod in _pods(client, spec.delete_pod)[:1]:
            client.delete("pods", pod["metadata"]["name"], pod["metadata"]["namespace"])
    if spec.roll_node:
        await _roll(client, _pods(client, spec.roll_node), environment)


async def _roll(client: Client, pods: list[Obj], environment: Environment) -> None:
    """Cordon the node of the first pod, evict what runs there, let it come back."""
    nodes = [pod["spec"].get("nodeName", "") for pod in pods]
    node = next((name for name in nodes if name), "")
    if not node:
        return
    client.patch("nodes", node, "", {"spec": {"unschedulable": True}})
    for pod in client.list("pods", fields=f"spec.nodeName={node}"):
        owners = [owner["kind"] for owner in pod["metadata"].get("ownerReferences", [])]
        if "DaemonSet" in owners:
            continue
        try:
            client.evict(pod["metadata"]["name"], pod["metadata"]["namespace"])
        except ApiError as error:
            if error.code not in (404, 429):
                raise
    await environment.advance(60.0)
    client.patch("nodes", node, "", {"spec": {"unschedulable": False}})


def _pods(client: Client, entity: str) -> list[Obj]:
    """Pods of `deployment/ns/name`, those that serve first, else by name; a workload that is gone has none."""
    kind, _, rest = entity.partition("/")
    namespace, _, name = rest.partition("/")
    resource = {
        "deployment": "deployments.apps",
        "statefulset": "statefulsets.apps",
        "daemonset": "daemonsets.apps",
    }.get(kind)
    if resource is None or not name:
        raise ScenarioDefect("challenge target", seen=entity, expected="deployment/NAMESPACE/NAME")
    try:
        labels = client.get(resource, name, namespace)["spec"]["selector"]["matchLabels"]
    except ApiError as error:
        if error.code == 404:
            return []
        raise
    pods = client.list("pods", namespace, labels=",".join(f"{key}={value}" for key, value in sorted(labels.items())))
    return sorted(pods, key=lambda pod: (not is_ready(pod), pod["metadata"]["name"]))
