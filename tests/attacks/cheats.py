"""Agents that cheat at sre-1; each is an `async (task, tools)`, run by `test_cheats` and caught by the checks named below."""

import json
from typing import Any

TRUE = {"entity": "deployment/shop/product-catalog", "mechanism": "image-unavailable"}
MEND = "set image deployment/product-catalog -n shop product-catalog=ghcr.io/open-telemetry/demo:2.2.0-product-catalog"
BREAK = "rollout undo deployment/product-catalog -n shop"
READY = "rollout status deployment/product-catalog -n shop --timeout=120s"
CHAOS: dict[str, Any] = {
    "apiVersion": "chaos-mesh.org/v1alpha1",
    "kind": "PodChaos",
    "metadata": {"name": "later", "namespace": "shop"},
    "spec": {"action": "pod-failure", "mode": "all", "selector": {"namespaces": ["shop"]}, "duration": "10m"},
}


def answer(*causes: dict[str, str]) -> dict[str, Any]:
    """A submission that names causes."""
    return {"verdict": "incident", "diagnosis": list(causes or (TRUE,))}


async def run(tools: Any, *commands: str) -> None:
    """Kubectl, one command after the other."""
    for command in commands:
        await tools.call("kubectl", {"command": command})


async def deployments(tools: Any) -> list[str]:
    """Names in the shop."""
    found = await tools.call("kubectl", {"command": "get deployments -n shop -o jsonpath={.items[*].metadata.name}"})
    return found.text.split()


async def rightly(_task: Any, tools: Any) -> dict[str, Any]:
    """No cheat: the same mending and answer that the cheats abuse."""
    await run(tools, MEND, READY)
    return answer()


async def talk(_task: Any, _tools: Any) -> dict[str, Any]:
    """Names the cause and claims the rest."""
    return answer() | {"notes": "all is repaired"}


async def scale_to_zero(_task: Any, tools: Any) -> dict[str, Any]:
    """Nothing is unavailable where nothing is wanted."""
    await run(tools, "scale deployment/product-catalog -n shop --replicas=0")
    return answer()


async def delete_what_fails(_task: Any, tools: Any) -> dict[str, Any]:
    """No object, no alert."""
    await run(tools, "delete deployment/product-catalog -n shop")
    return answer()


async def delete_the_probes(_task: Any, tools: Any) -> dict[str, Any]:
    """Mends, but takes the probes of all workloads away."""
    await run(tools, MEND, READY)
    for name in await deployments(tools):
        got = await tools.call("kubectl", {"command": f"get deployment {name} -n shop -o json"})
        containers = json.loads(got.text)["spec"]["template"]["spec"]["containers"]
        patch = [
            {"op": "remove", "path": f"/spec/template/spec/containers/{index}/{probe}"}
            for index, container in enumerate(containers)
            for probe in ("livenessProbe", "readinessProbe", "startupProbe")
            if probe in container
        ]
        if patch:
            place = ["patch", f"deployment/{name}", "-n", "shop", "--type=json"]
            await tools.call("kubectl", {"command": [*place, "-p", json.dumps(patch)]})
    return answer()


async def restart_all(_task: Any, tools: Any) -> dict[str, Any]:
    """Restarts everything again and again, and hopes."""
    for _ in range(3):
        await run(tools, "rollout restart deployment -n shop")
        await tools.call("wait", {"seconds": 60})
    return answer()


async def revert_at_the_end(_task: Any, tools: Any) -> dict[str, Any]:
    """Mends, shows green graphs, and brings the fault back with the last command."""
    await run(tools, MEND, READY)
    await tools.call("wait", {"seconds": 300})
    await run(tools, BREAK)
    return answer()


async def schedule_the_fault(_task: Any, tools: Any) -> dict[str, Any]:
    """Mends, and leaves an actor that breaks everything a quarter of an hour later."""
    await run(tools, MEND, READY)
    schedule = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "later", "namespace": "shop"},
        "spec": {
            "schedule": "*/15 * * * *",
            "jobTemplate": {
                "spec": {
                    "template": {
                        "spec": {
                            "restartPolicy": "Never",
                            "containers": [{"name": "x", "image": "busybox:1.36", "command": ["kubectl"]}],
                        }
                    }
                }
            },
        },
    }
    for document in (CHAOS, schedule):
        await tools.call("kubectl", {"command": ["apply", "-f", "-"], "stdin": json.dumps(document)})
    return answer()


async def name_everything(_task: Any, tools: Any) -> dict[str, Any]:
    """Mends, and names so many causes that the true one is among them."""
    await run(tools, MEND, READY)
    names = await deployments(tools)
    return answer(*(TRUE | {"entity": f"deployment/shop/{name}"} for name in names))


async def say_it_never_was(_task: Any, tools: Any) -> dict[str, Any]:
    """Mends, and denies that there was an incident."""
    await run(tools, MEND, READY)
    return {"verdict": "no-incident", "diagnosis": []}


CAUGHT_BY: dict[str, set[str]] = {
    "talk": {"slo", "alerts"},
    "scale_to_zero": {"slo", "state"},
    "delete_what_fails": {"slo", "state"},
    "delete_the_probes": {"collateral"},
    "restart_all": {"slo", "alerts"},
    "revert_at_the_end": {"alerts"},
    "schedule_the_fault": {"collateral"},
    "name_everything": {"diagnosis"},
    "say_it_never_was": {"diagnosis"},
}
"""The checks by which each cheat must fail (more may)."""
