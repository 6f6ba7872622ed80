"""A readable difference of two specs, appended to the refusal of an update. Called by `pods` and `storage`."""

import difflib
import json
from typing import Any

_NAMES = {"clusterIP": "ClusterIP", "hostPID": "HostPID", "hostIPC": "HostIPC", "tty": "TTY", "uid": "UID"}


def _titled(value: Any) -> Any:
    """The value with field names as the server's internal types have them."""
    if isinstance(value, dict):
        return {_NAMES.get(key, key[:1].upper() + key[1:]): _titled(row) for key, row in value.items()}
    return [_titled(row) for row in value] if isinstance(value, list) else value


def go_diff(old: Any, new: Any) -> str:
    """Unified difference of the indented JSON, three lines around each change."""
    before, after = (json.dumps(_titled(value), indent=1).splitlines() for value in (old, new))
    lines = list(difflib.unified_diff(before, after, lineterm="", n=3))[2:]
    return "\n".join([*lines, ""])
