"""CustomResourceDefinitions: which names they get, when they are established, and their end.

The real server does this in its own process within milliseconds; here it happens before time goes on.
"""

from itbench.kube.client import ApiError, Change, Obj
from itbench.kube.controllers.base import Context, Controller, is_deleting, with_meta
from itbench.kube.controllers.cache import Cache, Key
from itbench.kube.controllers.conditions import upsert
from itbench.kube.custom.cleanup import DEFINITIONS, FINALIZER, terminating
from itbench.kube.custom.definition import APPROVAL

_FIELDS = (
    ("plural", "PluralConflict", False),
    ("singular", "SingularConflict", False),
    ("shortNames", "ShortNamesConflict", False),
    ("kind", "KindConflict", True),
    ("listKind", "ListKindConflict", True),
)
"""Names in the order in which they are looked at, and whether they are kinds."""


def _keys_of_group(change: Change, cache: Cache) -> list[Key]:
    """The definition itself, and its group, whose names may have become free."""
    group = change.object["spec"]["group"]
    rows = [obj for obj in cache.list(DEFINITIONS) if obj["spec"]["group"] == group]
    own = [("", change.object["metadata"]["name"])]
    return own + [("", obj["metadata"]["name"]) for obj in rows if _is_unsettled(obj)]


def _is_unsettled(definition: Obj) -> bool:
    rows = (definition.get("status") or {}).get("conditions") or ()
    return not any(row.get("type") == "NamesAccepted" and row.get("status") == "True" for row in rows)


def _taken(context: Context, definition: Obj) -> tuple[set[str], set[str]]:
    """Resource names and kinds of the group that others have."""
    names: set[str] = set()
    kinds: set[str] = set()
    for other in context.cache.list(DEFINITIONS):
        if other["spec"]["group"] != definition["spec"]["group"]:
            continue
        if other["metadata"]["name"] == definition["metadata"]["name"]:
            continue
        accepted = (other.get("status") or {}).get("acceptedNames") or {}
        names |= {accepted.get("plural", ""), accepted.get("singular", ""), *(accepted.get("shortNames") or ())}
        kinds |= {accepted.get("kind", ""), accepted.get("listKind", "")}
    return names - {""}, kinds - {""}


def _accept(wanted: Obj, accepted: Obj, names: set[str], kinds: set[str]) -> tuple[Obj, tuple[str, str] | None]:
    """The names after this look, and the last conflict as reason and message."""
    out = dict(accepted)
    problem: tuple[str, str] | None = None
    for field, reason, is_kind in _FIELDS:
        value, others = wanted.get(field), kinds if is_kind else names
        asked = value if isinstance(value, list) else [value] if value else []
        taken = [f'"{name}" is already in use' for name in asked if name in others and value != accepted.get(field)]
        if taken:
            problem = (reason, taken[0] if len(taken) == 1 else f"[{', '.join(taken)}]")
        elif value:
            out[field] = value
        else:
            out.pop(field, None)
    if wanted.get("categories"):
        out["categories"] = wanted["categories"]
    else:
        out.pop("categories", None)
    return out, problem


def _approval(definition: Obj) -> tuple[str, str, str] | None:
    """Status, reason and message of the approval of groups of the project itself; None for other groups."""
    if not definition["spec"]["group"].endswith((".k8s.io", ".kubernetes.io")):
        return None
    text = (definition["metadata"].get("annotations") or {}).get(APPROVAL, "")
    if text.startswith("unapproved"):
        return "False", "UnapprovedAnnotation", f'not approved: "{text}"'
    if text.startswith(("https://", "http://")):
        return "True", "ApprovedAnnotation", f"approved in {text}"
    return "False", "MissingAnnotation", f'protected groups must have approval annotation "{APPROVAL}"'


def _findings(definition: Obj, problem: tuple[str, str] | None) -> list[tuple[str, str, str, str]]:
    found = []
    approval = _approval(definition)
    if approval is not None:
        found.append(("KubernetesAPIApprovalPolicyConformant", *approval))
    if problem is None:
        found.append(("NamesAccepted", "True", "NoConflicts", "no conflicts found"))
        found.append(("Established", "True", "InitialNamesAccepted", "the initial names have been accepted"))
        return found
    found.append(("NamesAccepted", "False", *problem))
    rows = (definition.get("status") or {}).get("conditions") or ()
    if not any(row.get("type") == "Established" and row.get("status") == "True" for row in rows):
        found.append(("Established", "False", "NotAccepted", "not all names are accepted"))
    return found


def reconcile(context: Context, _: str, name: str) -> None:
    """Names and conditions of one definition, or its end."""
    definition = context.cache.get(DEFINITIONS, "", name)
    if definition is None:
        return
    if is_deleting(definition):
        if FINALIZER in (definition["metadata"].get("finalizers") or ()):
            _clean(context, definition)
        return
    state = dict(definition.get("status") or {})
    names, kinds = _taken(context, definition)
    wanted, accepted = definition["spec"]["names"], state.get("acceptedNames") or {}
    state["acceptedNames"], problem = _accept(wanted, accepted, names, kinds)
    conditions = state.get("conditions")
    for kind, status, reason, message in _findings(definition, problem):
        row = {
            "type": kind,
            "status": status,
            "lastTransitionTime": context.stamp(),
            "reason": reason,
            "message": message,
        }
        conditions = upsert(conditions, row)
    state["conditions"] = conditions
    if state != definition.get("status"):
        context.client.update(DEFINITIONS, {**definition, "status": state}, subresource="status")


def _clean(context: Context, definition: Obj) -> None:
    """Delete what is left of the kind; let the definition go when nothing is."""
    name = definition["metadata"]["name"]
    rows = (definition.get("status") or {}).get("conditions") or []
    row = terminating("InstanceDeletionInProgress", "CustomResource deletion is in progress", context.stamp())
    conditions = upsert([old for old in rows if old.get("type") != "Terminating"], row)
    if not any(old.get("reason") == row["reason"] for old in rows if old.get("type") == "Terminating"):
        state = {**definition["status"], "conditions": conditions}
        definition = context.client.update(DEFINITIONS, {**definition, "status": state}, subresource="status")
    left = context.cache.list(name)
    for obj in left:
        if not is_deleting(obj):
            _delete(context, name, obj)
    if not left:
        rest = [one for one in definition["metadata"].get("finalizers") or () if one != FINALIZER]
        context.client.update(DEFINITIONS, with_meta(definition, finalizers=rest or None))


def _delete(context: Context, resource: str, obj: Obj) -> None:
    meta = obj["metadata"]
    try:
        context.client.delete(resource, meta["name"], meta.get("namespace", ""))
    except ApiError as error:
        if error.code != 404:
            raise


def _keys_of_instance(change: Change, cache: Cache) -> list[Key]:
    """The definition of an object that went while its definition waits for that."""
    if change.type != "DELETED":
        return []
    owner = cache.get(DEFINITIONS, "", change.resource)
    return [("", change.resource)] if owner is not None and is_deleting(owner) else []


CONTROLLER = Controller(
    "definition-controller", {DEFINITIONS: _keys_of_group, "*": _keys_of_instance}, reconcile, "apiextensions"
)
