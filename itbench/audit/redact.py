"""Leaves out of evidence what an auditor must not carry around: values of variables, contents of ConfigMaps, bookkeeping."""

import copy
from typing import Any

from itbench.policy.controls.pods import TEMPLATES, containers, pod_spec

HIDDEN = "(left out)"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

Obj = dict[str, Any]


def redacted(resource: str, obj: Obj) -> Obj:
    """A copy of an object as it may be kept."""
    kept = copy.deepcopy(obj)
    meta = kept.get("metadata", {})
    meta.pop("managedFields", None)
    if _LAST_APPLIED in (meta.get("annotations") or {}):
        meta["annotations"][_LAST_APPLIED] = HIDDEN
    for part in ("data", "binaryData", "stringData"):
        if part in kept:
            kept[part] = dict.fromkeys(kept[part] or {}, HIDDEN)
    if resource in TEMPLATES:
        for _, container in containers(pod_spec(resource, kept)):
            for entry in container.get("env") or ():
                if "value" in entry:
                    entry["value"] = HIDDEN
    return kept
