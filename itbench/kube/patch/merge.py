"""RFC 7386 JSON merge patch."""

from typing import Any

from itbench.kube.decode import clone


def apply_merge_patch(target: Any, patch: Any) -> Any:
    """The patched value; `target` is a private copy and may be changed."""
    if not isinstance(patch, dict):
        return clone(patch)
    if not isinstance(target, dict):
        target = {}
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        else:
            target[key] = apply_merge_patch(target.get(key), value)
    return target
