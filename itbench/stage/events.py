"""What a play tells while it runs, and what its failure means: one line, and whether trying again can help. Used by `ansible`."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_FAILED = ("runner_on_failed", "runner_on_unreachable")
_WRONG = re.compile(
    r"""
    Task\ failed:\ (?!.*\bplugin\ '[^']*'\ failed)                   # an expression; what a plugin met is not its fault
        .*(\bis\ undefined$ | \bhas\ no\ attribute\b | \bSyntax\ error\ in\b | \bplugin\ '[^']*'\ was\ not\ found)
    | Unsupported\ parameters\ for\ | missing\ required\ arguments:\  # what a module checks before it does anything
    | value\ of\ \S+\ must\ be\ one\ (or\ more\ )?of: | argument\ '[^']*'\ is\ of\ type\ .*\ unable\ to\ convert
    | parameters\ are\ mutually\ exclusive: | one\ of\ the\ following\ is\ required:
    | missing\ parameter\(s\)\ required\ by\ | \S+\ is\ .*\ but\ (all|any)\ of\ the\ following\ are\ missing:
    | the\ role\ '[^']*'\ was\ not\ found\b | Could\ not\ find\ or\ access\ '.*\ on\ the\ Ansible\ Controller
    """,
    re.VERBOSE | re.DOTALL,
)
"""How Ansible's own words about a playbook that is written wrongly begin; what a module reports of the world does not."""
_ERROR, _SYSTEM = "[ERROR]: ", "[Errno "
_CONTROL = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class Events:
    """What the callback saw that explains a failure."""

    failures: list[tuple[str, str]] = field(default_factory=list)
    """Failed tasks and their messages."""
    lines: list[str] = field(default_factory=list)
    killed: bool = False
    """Whether a signal ended the play."""

    def take(self, event: dict[str, Any]) -> bool:
        """Handler of ansible-runner; False: do not keep the event on disk."""
        data = event.get("event_data") or {}
        if event.get("event") in _FAILED and not data.get("ignore_errors"):
            place = _place(str(data.get("task_path") or ""))
            self.failures.append((f"task {data.get('task', '?')!r}{place}", _message(data.get("res") or {})))
        text = _CONTROL.sub("", event.get("stdout") or "").strip()
        if text:
            self.lines.append(text)
        return False

    def last(self) -> str:
        """The last that Ansible printed, such as the name of the task that hangs."""
        return _short(self.lines[-1], 200) if self.lines else "nothing"

    def reason(self) -> str:
        """The failed task and its message, else the last that Ansible printed."""
        if self.failures:
            return ": ".join((self.failures[0][0], _short(self.failures[0][1])))
        if self.killed:
            return f"ansible-playbook was killed; the last it said: {self.last()}"
        return _short(" ".join(self._errors() or self.lines[-3:])) or "ansible-playbook printed nothing"

    def _errors(self) -> list[str]:
        return [line for line in self.lines if _ERROR in line]

    def cause(self) -> str:
        """`scenario_defect` where trying again cannot help: the playbook cannot be read, or says what nobody can do."""
        if self.failures:
            wrong = bool(_WRONG.match(self.failures[0][1]))
        else:
            errors = self._errors()
            wrong = bool(errors) and not self.killed and not any(_SYSTEM in line for line in errors)
        return "scenario_defect" if wrong else "stage_failed"


def _place(path: str) -> str:
    """Where a task stands, from the folder of the fault or app on."""
    return f" ({'/'.join(Path(path).parts[-3:])})" if path else ""


def _message(result: dict[str, Any]) -> str:
    """What a result says of its failure; of a loop, what its first failed item says."""
    failed = [item for item in result.get("results") or () if isinstance(item, dict) and item.get("failed")]
    if failed:
        return _message(failed[0])
    for key in ("msg", "reason", "stderr", "module_stderr", "exception"):
        if result.get(key):
            return str(result[key])
    return str(result) if result else "no message"


def _short(text: str, limit: int = 600) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 3] + "..."
