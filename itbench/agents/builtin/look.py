"""Looking around an estate through the tools: JSON lists of objects by kubectl, the namespaces at hand.

Used by `heuristic` and `saboteur`; knows no more than what an agent's identity may read.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

from itbench.core.documents.task import Task
from itbench.tools.registry import Tools

SYSTEM = ("kube-system", "kube-public", "kube-node-lease", "default", "monitoring", "chaos-mesh")
Obj = dict[str, Any]


async def objects(tools: Tools, resource: str, namespace: str) -> list[Obj]:
    """All objects of a kind in a namespace (`""`: of the cluster); none when they may not be read."""
    place = ["-n", namespace] if namespace else []
    result = await tools.call("kubectl", {"command": ["get", resource, *place, "-o", "json"]})
    return parsed(result.text) if result.ok else []


def parsed(text: str) -> list[Obj]:
    """The items of a JSON list, whole or cut off in the middle: every item that is complete."""
    start = text.find('"items": [')
    if start < 0:
        return []
    at, decoder = start + len('"items": ['), json.JSONDecoder()
    found: list[Obj] = []
    while True:
        match = re.compile(r"[\s,]*").match(text, at)
        at = match.end() if match else at
        try:
            item, at = decoder.raw_decode(text, at)
        except ValueError:
            return found
        found.append(item)


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


def matches(selector: dict[str, str], labels: dict[str, str]) -> bool:
    """Whether equality selectors select these labels; an empty selector selects nothing."""
    return bool(selector) and all(labels.get(key) == value for key, value in selector.items())


def labels_of(workload: Obj) -> dict[str, str]:
    """The labels that a workload gives its pods."""
    found: dict[str, str] = workload["spec"]["template"]["metadata"].get("labels", {})
    return found


def newest(items: Iterable[Obj]) -> list[Obj]:
    """Objects, the youngest first."""
    return sorted(items, key=lambda obj: str(obj["metadata"].get("creationTimestamp", "")), reverse=True)
