"""A readable difference of two specs, appended to the refusal of an update. Called by `pods` and `storage`."""

import difflib
import json
from typing import Any

from itbench.kube.kinds import structures


def diff_pods(old: Any, new: Any) -> str:
    """Unified difference of two pod specs."""
    return _diff(structures.pod_spec(old), structures.pod_spec(new))


def diff_structures(old: Any, new: Any, kind: str) -> str:
    """Unified difference of two values, as the internal structure `kind`."""
    return _diff(structures.structure(old, kind), structures.structure(new, kind))


def _diff(old: Any, new: Any) -> str:
    """Unified difference of the indented JSON, three lines around each change."""
    before, after = (json.dumps(value, indent=1, ensure_ascii=False).splitlines() for value in (old, new))
    lines = list(difflib.unified_diff(before, after, lineterm="", n=3))[2:]
    return "\n".join([*lines, ""])
