"""What happens when a container's process starts: it serves, ends, fails for want of something, or waits for others.

Called by kubelets at container start, and again at `again_at` for processes that wait in a loop.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from itbench.core.documents.app import Program, Setting
from itbench.kube.client import Obj
from itbench.kube.quantity import parse_quantity
from itbench.world.agnhost import BATCH, greeting, unknown
from itbench.world.settings import evaluate, locate
from itbench.world.shell.coreutils import BUILTINS, COREUTILS
from itbench.world.shell.input import SHELLS
from itbench.world.shell.interpreter import Command, Io, Shell, Steps, Tool
from itbench.world.shell.machine import Machine
from itbench.world.shell.network import NETWORK
from itbench.world.shell.system import SYSTEM
from itbench.world.text import fill, log_line

TOOLS: dict[str, Tool] = {**BUILTINS, **COREUTILS, **SYSTEM, **NETWORK}
INTERPRETERS = {
    "python",
    "python3",
    "node",
    "java",
    "ruby",
    "php",
    "dotnet",
    "npm",
    "gunicorn",
    "uvicorn",
    "flask",
    "bundle",
    "tini",
    "dumb-init",
}
REASONS = {
    "nxdomain": "lookup {host}: no such host",
    "refused": "dial tcp {host}:{port}: connect: connection refused",
    "timeout": "dial tcp {host}:{port}: i/o timeout",
    "denied": "dial tcp {host}:{port}: i/o timeout",
    "tls": "tls: first record does not look like a TLS handshake",
}


@dataclass(slots=True)
class Launch:
    """What a process will do. Times are world seconds; `serves_at` inf means that it never listens."""

    lines: list[tuple[float, str]] = field(default_factory=list)
    exit_at: float = inf
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    serves_at: float = inf
    again_at: float = inf
    refused: str = ""
    """The runtime cannot even start it: text of the error."""


@dataclass(frozen=True, slots=True)
class Start:
    """Everything a start depends on."""

    program: Program
    tag: str
    spec: Obj
    env: dict[str, str]
    machine: Machine
    dial: Callable[[str, int], str]
    now: float


def memory_limit_mb(spec: Obj) -> float:
    """The container's memory limit in MiB, inf without one."""
    limit = ((spec.get("resources") or {}).get("limits") or {}).get("memory")
    return float(parse_quantity(str(limit))) / 2**20 if limit is not None else inf


def launch(start: Start) -> Launch:
    """Decide what the process does from what it finds."""
    argv = [*(start.spec.get("command") or ()), *(start.spec.get("args") or ())]
    overridden = bool(start.spec.get("command"))
    words = words_of(start.program, start.spec)
    if start.program.commands and words is not None:
        return _script(start, [start.program.process.split()[0], *words])
    if start.spec.get("stdin") and _waits(start.program, argv):
        return Launch()
    idle_image = start.program.runs_s is not None and not start.program.listens
    if argv and (overridden or idle_image):
        name = argv[0].rsplit("/", 1)[-1]
        if start.program.image.endswith("/curl") and not overridden:
            argv, name = ["curl", *argv], "curl"
        if name in TOOLS and start.machine.has(argv[0]):
            return _script(start, argv)
        if overridden and not _knows(start.program, argv[0]):
            return Launch(refused=no_such_file(argv[0]))
    if start.program.runs_s is not None:
        return _job(start)
    return _serve(start)


def _waits(program: Program, argv: list[Any]) -> bool:
    """Whether the process is a shell on an open standard input: it waits for somebody to attach."""
    words = argv or program.process.split()
    return len(words) == 1 and words[0].rsplit("/", 1)[-1] in SHELLS


def no_such_file(command: str) -> str:
    """The container runtime's error for a command that the image does not have."""
    tail = f"stat {command}: no such file or directory" if "/" in command else "executable file not found in $PATH"
    return (
        "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: "
        f'unable to start container process: error during container init: exec: "{command}": {tail}'
    )


def _knows(program: Program, command: str) -> bool:
    name = command.rsplit("/", 1)[-1]
    binary = program.process.split()[0].rsplit("/", 1)[-1].rstrip(":")
    return command in program.files or name == binary or name in INTERPRETERS


def words_of(program: Program, spec: Obj) -> list[str] | None:
    """The arguments of the image's own binary; None when the container runs something else."""
    command, args = list(spec.get("command") or ()), [str(arg) for arg in spec.get("args") or ()]
    if not command:
        return args or program.process.split()[1:]
    return [*map(str, command[1:]), *args] if command[0] == program.process.split()[0] else None


def running(program: Program, words: list[str] | None) -> Program:
    """The program as its arguments select it: programs of many commands open other ports with each."""
    if not program.commands or not words:
        return program
    return program.model_copy(update={"listens": program.commands.get(words[0], ())})


def _missing(start: Start) -> tuple[str, int] | None:
    """The last words and the exit code of a program that lacks something, or None."""
    release = start.program.releases.get(start.tag)
    if release is not None and release.crash is not None:
        return release.crash.log, release.crash.exit_code
    for need in start.program.needs.env:
        if need.name not in start.env:
            return need.log.replace("%s", need.name), need.exit_code
    for wanted in start.program.needs.files:
        if start.machine.read(wanted.path) is None and start.machine.entries(wanted.path) is None:
            return wanted.log.replace("%s", wanted.path), wanted.exit_code
    return None


def _job(start: Start) -> Launch:
    missing = _missing(start)
    if missing is not None:
        return _failed(start, *missing)
    for source, target in start.program.copies.items():
        start.machine.write(target, start.machine.read(source) or "")
    return Launch(lines=_started(start), exit_at=start.now + max(start.program.runs_s or 0.0, 0.05))


def _failed(start: Start, text: str, code: int) -> Launch:
    at = start.now + max(0.2, 0.3 * start.program.start_s)
    said = at - 0.05
    lines = [(said, log_line(start.program.log, said, text, "ERROR"))] if text else []
    return Launch(lines=lines, exit_at=at, exit_code=code)


def _serve(start: Start) -> Launch:
    if start.program.memory_mb.base > memory_limit_mb(start.spec):
        return Launch(exit_at=start.now + 0.5 * start.program.start_s + 0.1, exit_code=137, reason="OOMKilled")
    missing = _missing(start)
    if missing is not None:
        return _failed(start, *missing)
    for need in start.program.needs.connects:
        host, port = locate(need.address, start.env)
        verdict = start.dial(host, port)
        if verdict == "ok":
            continue
        reason = fill(REASONS.get(verdict, verdict), host=host, port=port)
        text = fill(need.log, host=host, port=port, reason=reason)
        if need.retry_s is None:
            return _failed(start, text, need.exit_code)
        at = start.now + 0.2
        return Launch(lines=[(at, log_line(start.program.log, at, text, "WARN"))], again_at=start.now + need.retry_s)
    return Launch(lines=_started(start), serves_at=start.now + start.program.start_s)


def _started(start: Start) -> list[tuple[float, str]]:
    ports = ports_of(start.program, start.env)
    lines = []
    for index, message in enumerate(start.program.log.started):
        at = start.now + start.program.start_s * (index + 1) / (len(start.program.log.started) + 1)
        lines.append((at, log_line(start.program.log, at, fill(message, port=ports[0] if ports else ""))))
    return lines


def ports_of(program: Program, env: dict[str, str], words: list[str] | None = None) -> list[int]:
    """The ports that a program opens with this environment and these arguments."""
    found = []
    for listen in program.listens:
        given = option(words or [], listen.flag) if listen.flag else ""
        if given.isdigit():
            found.append(int(given))
            continue
        port = (
            evaluate(listen.port, env, lambda name, key: None, off=0.0)
            if isinstance(listen.port, Setting)
            else listen.port
        )
        found.append(int(port))
    return found


def option(words: list[str], name: str) -> str:
    """The value of `--name value` or `--name=value` (one dash will do), empty without."""
    plain = name.lstrip("-")
    for index, word in enumerate(words):
        key, equals, value = word.lstrip("-").partition("=")
        if word.startswith("-") and key == plain:
            return value if equals else words[index + 1] if index + 1 < len(words) else ""
    return ""


def _script(start: Start, argv: list[str]) -> Launch:
    """Run a script as far as it goes: sleeps in a loop suspend it (it starts over then), other sleeps only take time."""
    plan, clock = Launch(), [start.now + 0.05]

    def write(fd: int, text: str) -> None:
        plan.lines.extend((clock[0], line) for line in text.splitlines())

    shell = Shell(start.machine, {**TOOLS, **_server(start, plan, clock)}, cwd=start.machine.workdir)
    steps = shell.execute(argv, Io("", write))
    while True:
        try:
            pause = next(steps)
        except StopIteration as end:
            plan.exit_at, plan.exit_code = clock[0], int(end.value)
            return plan
        if pause == inf:
            return plan
        if shell.looping:
            plan.again_at = clock[0] + max(pause, 0.05)
            return plan
        clock[0] += pause


def _server(start: Start, plan: Launch, clock: list[float]) -> dict[str, Tool]:
    """The image's own binary as a command: a script may end by starting it."""

    def serve(call: Command) -> Steps:
        word = call.argv[1] if len(call.argv) > 1 else ""
        if start.program.commands and word not in start.program.commands:
            return (yield from BATCH.get(word, unknown)(call))
        program = running(start.program, call.argv[1:])
        inner = _serve(replace(start, program=program))
        said = greeting(word, ports_of(program, start.env, call.argv[1:]), clock[0])
        plan.lines += [*inner.lines, *([(clock[0], said)] if said and start.program.commands else [])]
        plan.serves_at = inner.serves_at
        yield (inner.exit_at - clock[0]) if inner.exit_at < inf else inf
        return inner.exit_code

    binary = start.program.process.split()[0]
    name = binary.rsplit("/", 1)[-1].rstrip(":")
    return {} if name in TOOLS else {name: serve, binary: serve}


def describe(spec: Obj, program: Program) -> str:
    """The command line as `ps` shows it."""
    argv: list[Any] = [*(spec.get("command") or ()), *(spec.get("args") or ())]
    return " ".join(map(str, argv)) if spec.get("command") else program.process
