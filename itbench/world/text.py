"""Fills `{name}` holes of the log lines that app documents declare. Braces that name nothing stay, so JSON needs no escapes."""

import re

from itbench.core.clock import rfc3339, unix
from itbench.core.documents.app import Log

_HOLE = re.compile(r"\{([a-z0-9_]+)\}")


def fill(template: str, **values: object) -> str:
    """The template with known holes filled."""
    return _HOLE.sub(lambda hit: str(values[hit[1]]) if hit[1] in values else hit[0], template)


def log_line(log: Log, at: float, message: str, level: str = "INFO") -> str:
    """One line in the app's own format.

    Args:
        log: the program's log format.
        at: world second.
        message: what is said; quotes are escaped when the format is JSON.
        level: INFO, WARN, ERROR, DEBUG; formats may ask for {level_lower}.
    """
    if log.line.lstrip().startswith("{"):
        message = message.replace("\\", "\\\\").replace('"', '\\"')
    return fill(
        log.line,
        rfc3339=rfc3339(at, micro=True),
        seconds=rfc3339(at),
        unix=f"{unix(at):.6f}",
        unix_ms=f"{unix(at) * 1000:.0f}",
        unix_ns=f"{unix(at) * 1e9:.0f}",
        level=level,
        level_lower=level.lower(),
        message=message,
    )
