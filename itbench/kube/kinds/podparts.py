"""What the subresources of pods may change: `ephemeralcontainers`, `resize`, `status`. Called by the registry."""

from collections.abc import Callable

from itbench.kube.client import Obj
from itbench.kube.kinds.check import Check
from itbench.kube.kinds.diff import diff_structures
from itbench.kube.kinds.pods import qos_class
from itbench.kube.quantity import parse_quantity

Change = Callable[[Obj, Obj, Check], None]
_EPHEMERAL = "spec.ephemeralContainers"
_MUTABLE = ("cpu", "memory")


def _check_ephemeral(pod: Obj, old: Obj, check: Check) -> None:
    """Ephemeral containers are added, never changed or taken away."""
    new = {row["name"]: row for row in pod["spec"].get("ephemeralContainers") or ()}
    for row in old["spec"].get("ephemeralContainers") or ():
        name = row["name"]
        if name not in new:
            check.forbidden(_EPHEMERAL, f'existing ephemeral containers "{name}" may not be removed\n')
        elif new[name] != row:
            text = diff_structures(row, new[name], "EphemeralContainer")
            check.forbidden(_EPHEMERAL, f'existing ephemeral containers "{name}" may not be changed\n{text}')


def _check_resize(pod: Obj, old: Obj, check: Check) -> None:
    """Only CPU and memory of running containers change, and the pod stays in its class."""
    before = qos_class(old["spec"])
    if before != qos_class(pod["spec"]):
        check.invalid("spec", before, "Pod QOS Class may not change as a result of resizing")
    sidecars = [row.get("restartPolicy") == "Always" for row in old["spec"].get("initContainers") or ()]
    if _is_other(pod, old, "initContainers", [not side for side in sidecars]):
        check.forbidden("spec", "resources for non-sidecar init containers are immutable")
    for key in ("containers", "initContainers"):
        rows = zip(pod["spec"].get(key) or (), old["spec"].get(key) or (), strict=False)
        for index, (new, was) in enumerate(rows):
            _check_removed(new, was, f"spec.{key}[{index}].resources", check)
    fixed = any(
        _fixed(new) != _fixed(was)
        for key in ("containers", "initContainers")
        for new, was in zip(pod["spec"].get(key) or (), old["spec"].get(key) or (), strict=False)
    )
    if fixed:
        check.forbidden("spec", "only cpu and memory resources are mutable")


def _is_other(pod: Obj, old: Obj, key: str, watched: list[bool]) -> bool:
    rows = zip(pod["spec"].get(key) or (), old["spec"].get(key) or (), watched, strict=False)
    return any(watch and new.get("resources") != was.get("resources") for new, was, watch in rows)


def _check_removed(new: Obj, old: Obj, field: str, check: Check) -> None:
    for part in ("limits", "requests"):
        before = (old.get("resources") or {}).get(part) or {}
        after = (new.get("resources") or {}).get(part) or {}
        if any(name in before and name not in after for name in _MUTABLE):
            check.forbidden(f"{field}.{part}", f"resource {part} cannot be removed")


def _fixed(container: Obj) -> Obj:
    """A container without what a resize may change."""
    resources = container.get("resources") or {}
    kept = {
        part: {name: parse_quantity(str(value)) for name, value in rows.items() if name not in _MUTABLE}
        for part, rows in resources.items()
        if isinstance(rows, dict)
    }
    other = {part: rows for part, rows in resources.items() if not isinstance(rows, dict)}
    kept = {part: rows for part, rows in kept.items() if rows}
    return {**container, "resources": kept | other}


def _check_status(pod: Obj, old: Obj, check: Check) -> None:
    new, was = pod.get("status") or {}, old.get("status") or {}
    if was.get("qosClass") and new.get("qosClass") != was["qosClass"]:
        check.immutable("status.qosClass", new.get("qosClass", ""), was["qosClass"])
    if new.get("observedGeneration", 0) < 0:
        check.invalid("status.observedGeneration", new["observedGeneration"], "must be a non-negative integer")


CHANGES: dict[tuple[str, str], Change] = {
    ("pods", "ephemeralcontainers"): _check_ephemeral,
    ("pods", "resize"): _check_resize,
    ("pods", "status"): _check_status,
}
"""Rules about changes through a subresource, instead of those of the kind."""
