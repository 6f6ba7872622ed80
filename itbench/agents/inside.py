"""What a command agent types inside a trial: `itbench submit`, `itbench tool`, `itbench task`.

Started by the `itbench` that a workspace's PATH finds first, and by the command line's verbs of the same names.
"""

import json
import sys
from pathlib import Path
from typing import Any

from itbench.agents.page import task_page
from itbench.core.errors import ItbenchError, UsageError
from itbench.tools.registry import ToolResult
from itbench.tools.remote import Connection

USAGE = """\
usage: itbench submit [FILE]         hand in an answer (JSON from FILE, or from standard input)
       itbench tool                  list the tools
       itbench tool NAME [JSON]      call one with its arguments as a JSON object
       itbench tool NAME KEY=VALUE…  the same with plain texts; kubectl and aws also take their own words after --
       itbench task [--json]         print the task: the page and the form of the answer, or all of it as JSON
"""


def _read(source: str) -> Any:
    try:
        text = sys.stdin.read() if source in ("", "-") else Path(source).read_text(encoding="utf-8")
        return json.loads(text)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"cannot read the answer ({error})", seen=source or "standard input", expected="JSON"
        ) from error


def _arguments(words: list[str]) -> dict[str, Any]:
    if words[:1] == ["--"]:
        return {"command": words[1:]}
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        try:
            found: dict[str, Any] = json.loads(words[0])
        except ValueError as error:
            raise UsageError(f"arguments are not JSON ({error})", seen=words[0][:200]) from error
        return found
    pairs = [word.partition("=") for word in words]
    if any(not equals for _, equals, _ in pairs):
        raise UsageError(
            "cannot read the arguments", seen=" ".join(words)[:200], expected="a JSON object, or KEY=VALUE words"
        )
    return {key: _plain(value) for key, _, value in pairs}


def _plain(text: str) -> Any:
    return float(text) if text.replace(".", "", 1).isdigit() else text


def _show(result: ToolResult) -> int:
    (sys.stdout if result.ok else sys.stderr).write(result.text + "\n")
    return 0 if result.ok else 1


def _run(words: list[str]) -> int:
    connection = Connection.from_environment()
    verb, rest = words[0], words[1:]
    if verb == "submit":
        answer = _read(rest[0] if rest else "")
        if not isinstance(answer, dict):
            raise UsageError("the answer is not a JSON object", seen=str(answer)[:100])
        return _show(connection.submit(answer))
    if verb == "tool" and rest:
        return _show(connection.call(rest[0], _arguments(rest[1:])))
    if verb == "tool":
        return _show(ToolResult("\n".join(f"{tool.name:10} {tool.description}" for tool in connection.tools())))
    if rest not in ([], ["--json"]):
        raise UsageError("cannot read the arguments of task", seen=" ".join(rest)[:200], expected="nothing, or --json")
    task = connection.task()
    sys.stdout.write(task.model_dump_json(by_alias=True, indent=2) + "\n" if rest else task_page(task))
    return 0


def main(words: list[str] | None = None) -> int:
    """Carry out one verb; returns the exit code."""
    words = sys.argv[1:] if words is None else words
    if not words or words[0] not in ("submit", "tool", "task"):
        sys.stderr.write(USAGE)
        return 2
    if words[1:2] in (["--help"], ["-h"]):
        sys.stdout.write(USAGE)
        return 0
    try:
        return _run(words)
    except ItbenchError as error:
        sys.stderr.write(f"itbench: {error}\n")
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
