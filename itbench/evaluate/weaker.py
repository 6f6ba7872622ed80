"""Whether an object ended weaker than it was: gone, fewer replicas, lost probes or limits, lost keys. Used by `collateral`."""

from typing import Any

Obj = dict[str, Any]
_EPHEMERAL = ("Pod", "ReplicaSet", "Event", "Job")


def weaker(before: Obj, after: Obj | None) -> str:
    """Why `after` is weaker than `before`; empty when it is not.

    Pods, ReplicaSets and Jobs come and go and are never weaker. `after` is None when the object is gone.
    """
    kind = str(before.get("kind", ""))
    if kind in _EPHEMERAL:
        return ""
    if after is None:
        return "deleted"
    old, new = before.get("spec") or {}, after.get("spec") or {}
    reasons = [_fewer(old, new), _budget(old, new), _data(before, after), *_containers(old, new)]
    return ", ".join(reason for reason in reasons if reason)


def _fewer(old: Obj, new: Obj) -> str:
    was, now = old.get("replicas"), new.get("replicas")
    if isinstance(was, int) and isinstance(now, int) and now < was:
        return f"{now} instead of {was} replicas"
    for field in ("minReplicas", "maxReplicas"):
        was, now = old.get(field), new.get(field)
        if isinstance(was, int) and isinstance(now, int) and now < was:
            return f"{field} {now} instead of {was}"
    return ""


def _budget(old: Obj, new: Obj) -> str:
    for field in ("minAvailable", "maxUnavailable"):
        if field in old and old.get(field) != new.get(field):
            return f"{field} is {new.get(field)!r} instead of {old[field]!r}"
    return ""


def _data(before: Obj, after: Obj) -> str:
    gone = sorted(set(before.get("data") or {}) - set(after.get("data") or {}))
    return "lost keys " + ", ".join(gone) if gone else ""


def _containers(old: Obj, new: Obj) -> list[str]:
    def by_name(spec: Obj) -> dict[str, Obj]:
        pod = ((spec.get("template") or {}).get("spec")) or {}
        return {item["name"]: item for item in pod.get("containers") or []}

    was, now = by_name(old), by_name(new)
    reasons = [f"container {name} is gone" for name in sorted(set(was) - set(now))]
    for name in sorted(set(was) & set(now)):
        for field in ("readinessProbe", "livenessProbe", "startupProbe"):
            if field in was[name] and field not in now[name]:
                reasons.append(f"{name} lost its {field}")
        limits = (was[name].get("resources") or {}).get("limits") or {}
        kept = (now[name].get("resources") or {}).get("limits") or {}
        reasons += [f"{name} lost its {resource} limit" for resource in sorted(set(limits) - set(kept))]
    return reasons
