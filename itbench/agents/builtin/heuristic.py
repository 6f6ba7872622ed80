"""`heuristic`: what an on-call engineer's rules of thumb are worth without a model, and without knowledge of the scenario.

It reads the page, looks at objects and alerts, repairs what its rules find, watches whether the symptom goes away by itself
otherwise, and answers with what it found. Cloud accounts: `itbench.agents.builtin.account`.
"""

from itbench.agents.builtin.account import repair_account
from itbench.agents.builtin.look import Obj, namespaces, objects
from itbench.agents.builtin.rules import CERTAIN, Finding, Rule, View, active_flags, findings, retries
from itbench.core.documents.task import RootCause, Submission, Task
from itbench.tools.registry import Tools

WATCH_S = 60.0
WATCHES = 6
"""How often it looks whether alerts clear by themselves before it acts on a mere suspicion."""
_LEVEL_OF_NOISE = ("Watchdog", "InfoInhibitor")


async def solve(task: Task, tools: Tools) -> Submission:
    """Look around, judge by rules, repair, answer."""
    names = {tool.name for tool in tools.specs}
    if "aws" in names:
        return await repair_account(task, tools)
    if "kubectl" not in names:
        return Submission(verdict="no-change")
    nodes = await objects(tools, "nodes", "")
    views = [await _view(task, tools, namespace, nodes) for namespace in await namespaces(tools, task)]
    found = await _repair(tools, views, CERTAIN)
    if found:
        return await _answer(tools, found)
    if await _clears(tools):
        return Submission(verdict="recovered", notes="The alerts cleared without any change.")
    firing = await _firing(tools)
    for rule in (active_flags, retries) if firing else (active_flags,):
        found = await _repair(tools, views, (rule,))
        if found:
            return await _answer(tools, found)
    quiet = "recovered" if await _fired_before(tools) else "no-incident"
    return Submission(verdict="incident" if firing else quiet, notes="No rule applies.")


async def _view(task: Task, tools: Tools, namespace: str, nodes: list[Obj]) -> View:
    view = View(namespace=namespace, page=task.page, nodes=nodes)
    view.deployments = await objects(tools, "deployments", namespace)
    if view.deployments:
        view.replicasets = await objects(tools, "replicasets", namespace)
        view.pods = await objects(tools, "pods", namespace)
        view.services = await objects(tools, "services", namespace)
        view.configmaps = await objects(tools, "configmaps", namespace)
    return view


async def _repair(tools: Tools, views: list[View], rules: tuple[Rule, ...]) -> list[Finding]:
    found = [finding for view in views for finding in findings(view, rules)]
    done: set[tuple[str, ...]] = set()
    for finding in found:
        for command in finding.repair:
            if command not in done:
                done.add(command)
                await tools.call("kubectl", {"command": list(command)})
    return found


async def _firing(tools: Tools) -> list[str]:
    if "alerts" not in {tool.name for tool in tools.specs}:
        return []
    result = await tools.call("alerts", {"state": "firing"})
    lines = result.text.splitlines() if result.ok else []
    return [line for line in lines if line.startswith("firing") and not any(name in line for name in _LEVEL_OF_NOISE)]


async def _fired_before(tools: Tools) -> bool:
    """Whether anything fired within the last half hour."""
    if "promql" not in {tool.name for tool in tools.specs}:
        return False
    names = "|".join(_LEVEL_OF_NOISE)
    query = f'count(max_over_time(ALERTS{{alertstate="firing",alertname!~"{names}"}}[30m]))'
    result = await tools.call("promql", {"query": query})
    return result.ok and result.text.startswith("{}")


async def _clears(tools: Tools) -> bool:
    """Whether something fired and stopped while nobody did anything."""
    if not await _firing(tools):
        return False
    for _ in range(WATCHES):
        await tools.call("wait", {"seconds": WATCH_S})
        if not await _firing(tools):
            return True
    return False


async def _answer(tools: Tools, found: list[Finding]) -> Submission:
    """Give the repair a little time, then name what was found."""
    await tools.call("wait", {"seconds": WATCH_S})
    causes = tuple(RootCause(entity=finding.entity, mechanism=finding.mechanism) for finding in found[:20])
    return Submission(diagnosis=causes, verdict="incident")
