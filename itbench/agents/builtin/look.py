"""Looking around an estate through the tools: JSON lists of objects by kubectl, the namespaces at hand.

Used by `heuristic` and `saboteur`; knows no more than what an agent's identity may read.
"""

import json
import re
from typing import Any

from itbench.core.documents.task import Task
from itbench.tools.registry import Tools

SYSTEM = ("kube-system", "kube-public", "kube-node-lease", "default", "monitoring", "chaos-mesh")
Obj = dict[str, Any]


async def objects(tools: Tools, resource: str, namespace: str) -> list[Obj]:
    """All objects of a kind in a namespace (`""`: of the cluster); none when they may not be read."""
    place = ["-n", namespace] if namespace else []
    command = ["get", resource, *place, "-o", "json"]
    result = await tools.call("kubectl", {"command": command, "limit": 2_000_000})
    try:
        found: list[Obj] = json.loads(result.text)["items"] if result.ok else []
    except (ValueError, KeyError):
        return []
    return found


async def namespaces(tools: Tools, task: Task) -> list[str]:
    """The applications' namespaces: those that can be listed, else the current context's, else words of the page."""
    result = await tools.call("kubectl", {"command": ["get", "namespaces", "-o", "name"]})
    names = [line.removeprefix("namespace/") for line in result.text.split()] if result.ok else []
    if not names:
        command = ["config", "view", "--minify", "-o", "jsonpath={..namespace}"]
        current = await tools.call("kubectl", {"command": command})
        names = current.text.split() if current.ok else []
    if not names:
        names = re.findall(r"(?:namespace[s]? |-n )([a-z][a-z0-9-]+)", task.page)
    return [name for name in dict.fromkeys(names) if name not in SYSTEM]


def name_of(obj: Obj) -> str:
    """metadata.name."""
    return str(obj["metadata"]["name"])


def pod_spec(workload: Obj) -> Obj:
    """The pod template's spec of a workload."""
    spec: Obj = workload["spec"]["template"]["spec"]
    return spec
