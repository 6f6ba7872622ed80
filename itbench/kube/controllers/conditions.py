"""Status condition lists: the condition that changed its status last stands last, as real controllers leave it."""

from itbench.kube.client import Obj, Objs


def find(conditions: Objs | None, kind: str) -> Obj | None:
    """The condition of a type."""
    return next((c for c in conditions or () if c.get("type") == kind), None)


def set_condition(conditions: Objs | None, new: Obj) -> Objs:
    """The list with a condition set: unchanged when status and reason are; else moved to the end.

    `lastTransitionTime` is kept when the status stays.
    """
    old = find(conditions, new["type"])
    if old is not None and old.get("status") == new["status"] and old.get("reason") == new.get("reason"):
        return list(conditions or ())
    if old is not None and old.get("status") == new["status"] and "lastTransitionTime" in old:
        new = {**new, "lastTransitionTime": old["lastTransitionTime"]}
    return [*remove(conditions, new["type"]), new]


def remove(conditions: Objs | None, kind: str) -> Objs:
    """The list without a type."""
    return [c for c in conditions or () if c.get("type") != kind]


def upsert(conditions: Objs | None, new: Obj) -> Objs:
    """The list with a condition replaced in place (or appended); `lastTransitionTime` kept when the status stays."""
    found = list(conditions or ())
    for index, old in enumerate(found):
        if old.get("type") == new["type"]:
            if old.get("status") == new["status"] and "lastTransitionTime" in old:
                new = {**new, "lastTransitionTime": old["lastTransitionTime"]}
            found[index] = new
            return found
    return [*found, new]
