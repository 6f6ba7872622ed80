"""Flow schemas: each says whether its priority level exists. Nothing is queued here: requests are served as they come."""

from itbench.kube.client import Change, Obj
from itbench.kube.controllers.base import Context, Controller, own_key, put_status
from itbench.kube.controllers.cache import Cache, Key
from itbench.kube.controllers.conditions import find, set_condition

SCHEMAS = "flowschemas.flowcontrol.apiserver.k8s.io"
LEVELS = "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io"
TEXTS = {
    False: 'This FlowSchema references the PriorityLevelConfiguration object named "{level}" and it exists',
    True: 'This FlowSchema references the PriorityLevelConfiguration object named "{level}" but there is no such object',
}


def _all(change: Change, cache: Cache) -> list[Key]:
    """A level that comes or goes concerns every schema that names it."""
    level = change.object["metadata"]["name"]
    if change.type == "MODIFIED":
        return []
    return [("", schema["metadata"]["name"]) for schema in cache.list(SCHEMAS) if _level(schema) == level]


def _level(schema: Obj) -> str:
    spec = schema.get("spec") or {}
    return str((spec.get("priorityLevelConfiguration") or {}).get("name", ""))


def reconcile(context: Context, _: str, name: str) -> None:
    """Say whether one schema dangles."""
    schema = context.cache.get(SCHEMAS, "", name)
    if schema is None:
        return
    level = _level(schema)
    dangling = context.cache.get(LEVELS, "", level) is None
    status = schema.get("status") or {}
    old = find(status.get("conditions"), "Dangling")
    wanted = {"type": "Dangling", "status": str(dangling), "reason": "NotFound" if dangling else "Found"}
    if old is None or old["status"] != wanted["status"]:
        new = {**wanted, "message": TEXTS[dangling].format(level=level), "lastTransitionTime": context.stamp()}
        put_status(context, SCHEMAS, schema, {**status, "conditions": set_condition(status.get("conditions"), new)})


CONTROLLER = Controller("priority-and-fairness-config-controller", {SCHEMAS: own_key, LEVELS: _all}, reconcile)
