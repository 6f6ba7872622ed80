"""Hosts a foreign agent: workspace, tool server, clean environment, confined process, and what its end means.

Called by the adapters `itbench.agents.command` and `itbench.agents.python`, which only differ in what they start.
"""

import asyncio
import contextlib
import os
import shutil
import socket
import sys
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import itbench
from itbench.agents import isolation
from itbench.agents.base import Cause, HandOver, Outcome, concluded, until_over
from itbench.agents.page import task_page
from itbench.core.documents.task import MAX_SUBMISSION_BYTES, SubmissionInvalid, Task, parse_submission
from itbench.core.ids import digest
from itbench.tools.files import OutsideWorkspace, read_bytes
from itbench.tools.kubectl import binary

ANSWER_FILE = "submission.json"
POLL_S = 0.5
"""Wall seconds between looks for the answer file while the agent runs."""
_PASSED_ON = ("LANG", "LC_ALL", "TERM", "TZ")
_TAIL = 2000
_FORWARD = (20_000, 8_000)
"""First port and number of ports from which `forward_ports` takes."""

ExitCauses = Callable[[isolation.Exit], tuple[Cause, str]]
"""What the end of a process without an answer means."""


@dataclass(frozen=True, slots=True)
class Start:
    """What an adapter wants started: argv with an absolute first word, files and folders it needs, and the meaning of its end."""

    argv: Sequence[str]
    needs: tuple[Path, ...] = ()
    means: ExitCauses | None = None


def _commands(room: Path) -> None:
    """`itbench`, and kubectl where PATH has none, in a folder that comes first in the agent's PATH."""
    script = room / "bin" / "itbench"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m itbench.agents.inside "$@"\n')
    aws = room / "bin" / "aws"
    found = shutil.which("aws")
    if found is None or Path(found).parent.name == "shims":  # a version manager's placeholder is no AWS CLI
        aws.write_text('#!/bin/sh\nexec itbench tool aws -- "$@"\n')
        aws.chmod(0o755)
    script.chmod(0o755)
    kubectl = room / "bin" / "kubectl"
    if shutil.which("kubectl") is None and not kubectl.is_symlink():
        kubectl.symlink_to(binary())
    package = Path(itbench.__file__).resolve().parent
    link = room / "lib" / "itbench"
    if package.parent != Path(sysconfig.get_path("purelib")).resolve() and not link.is_symlink():
        link.symlink_to(package)


def forward_ports(trial: str, count: int = 4) -> tuple[int, ...]:
    """Free ports that an agent may listen on and connect to, as `kubectl port-forward` needs.

    They lie below the range from which the kernel serves those who ask for any port, so no other trial has a door on one.
    """
    found: list[int] = []
    start = int.from_bytes(digest("forward", trial)[:2])
    for offset in range(_FORWARD[1]):
        port = _FORWARD[0] + (start + offset) % _FORWARD[1]
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == count:
            break
    return tuple(found)


def _environment(hand: HandOver, task: Task, room: Path, forward: Sequence[int]) -> dict[str, str]:
    """Only what is named here; the user's own variables stay outside."""
    environ = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    environ |= {
        "PATH": f"{room / 'bin'}:{os.environ.get('PATH', os.defpath)}",
        "HOME": str(room / "home"),
        "TMPDIR": str(room / "tmp"),
        "KUBECACHEDIR": str(room / "tmp" / "kube-cache"),
        "PYTHONPATH": str(room / "lib"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": "127.0.0.1,localhost",
        "ITBENCH_FORWARD_PORTS": " ".join(map(str, forward)),
    }
    return environ | dict(hand.env) | task.endpoints.environment()


def _confinement(hand: HandOver, room: Path, start: Start, ports: Sequence[int]) -> isolation.Confinement:
    package = Path(itbench.__file__).resolve().parent
    endpoints = hand.task.endpoints
    named = [Path(path) for path in (endpoints.kubeconfig, *endpoints.databases.values()) if path]
    return isolation.Confinement(
        mode=hand.isolation,
        hidden=(*isolation.always_hidden(package), *hand.hidden, hand.folder),
        readable=(*named, *hand.agent_dirs, *start.needs, room / "bin", room / "lib"),
        writable=(hand.workspace, room / "home", room / "tmp"),
        ports=(*hand.ports, *ports),
    )


def _with_scratch(confinement: isolation.Confinement, hand: HandOver) -> isolation.Confinement:
    """The same for programs that tools start: they may also write their own caches."""
    scratch = hand.toolbox.context.scratch
    for name in ("home", "tmp"):
        (scratch / name).mkdir(parents=True, exist_ok=True)
    return replace(confinement, writable=(*confinement.writable, scratch / "home", scratch / "tmp"))


def _served(hand: HandOver, url: str, token: str) -> Task:
    endpoints = hand.task.endpoints.model_copy(
        update={
            "workspace": str(hand.workspace),
            "tools_url": url,
            "tools_token": token,
            "mcp_url": f"{url}/mcp",
        }
    )
    return hand.task.model_copy(update={"endpoints": endpoints})


def _prepare(hand: HandOver, task: Task, room: Path) -> None:
    hand.workspace.mkdir(parents=True, exist_ok=True)
    for name in ("home", "tmp", "bin", "lib"):
        (room / name).mkdir(parents=True, exist_ok=True)
    _commands(room)
    (hand.workspace / "TASK.md").write_text(task_page(task), encoding="utf-8")
    (hand.workspace / "task.json").write_text(task.model_dump_json(by_alias=True, indent=2), encoding="utf-8")


async def _watch_answer(hand: HandOver) -> None:
    """Hand in the answer file as soon as it can be read as a submission."""
    seen = b""
    while True:
        await asyncio.sleep(POLL_S)
        try:
            data = read_bytes(hand.workspace, ANSWER_FILE, MAX_SUBMISSION_BYTES)
            if data != seen:
                seen = data
                await hand.toolbox.submit(parse_submission(data))
        except (OutsideWorkspace, OSError, SubmissionInvalid):
            continue


async def _last_answer(hand: HandOver) -> str:
    """After the agent's end: the answer file, or why it cannot be read; empty when there is none or it was handed in."""
    if hand.toolbox.context.submission is not None:
        return ""
    try:
        data = read_bytes(hand.workspace, ANSWER_FILE, MAX_SUBMISSION_BYTES)
    except FileNotFoundError:
        return ""
    except (OutsideWorkspace, OSError) as error:
        return f"{ANSWER_FILE}: {error}"
    try:
        await hand.toolbox.submit(parse_submission(data))
    except SubmissionInvalid as error:
        return str(error)
    return ""


def exit_causes(end: isolation.Exit) -> tuple[Cause, str]:
    """The meaning of a command's end without an answer."""
    if end.not_started:
        return "agent_not_startable", end.not_started
    if end.exhausted:
        return "resource_exhausted_by_agent", end.exhausted
    if end.signal is not None:
        return "agent_crash", f"ended by signal {end.signal}"
    if end.code:
        return "agent_exit_nonzero", f"exit code {end.code}"
    return "no_submission", "the agent ended without an answer"


def _tail(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(0, stream.tell() - _TAIL))
            lines = stream.read().decode("utf-8", "replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1] if lines else ""


async def host(hand: HandOver, start: Start) -> Outcome:
    """Run a foreign agent from hand-over to its end.

    Args:
        hand: the trial.
        start: what to start.

    Returns:
        Its outcome, once the agent and everything it started are gone.

    Raises:
        UsageError, EnvironmentFault: the isolation asked for cannot be had.
    """
    from itbench.tools.http import ToolServer  # brings aiohttp, which checking an agent's name does without

    room = hand.folder / "agent"
    server = ToolServer(hand.toolbox)
    task = await server.open(lambda url, token: _served(hand, url, token))
    try:
        _prepare(hand, task, room)
        forward = forward_ports(task.trial)
        program = isolation.Program(
            start.argv,
            _environment(hand, task, room, forward),
            hand.workspace,
            hand.folder / "agent.out",
            hand.folder / "agent.err",
        )
        confinement = _confinement(hand, room, start, (server.port, *forward))
        hand.toolbox.context.confine = isolation.wrapper(
            _with_scratch(confinement, hand), hand.folder / "confinement.json"
        )
        child = await isolation.start(program, confinement)
        end = await _attend(hand, child)
    finally:
        await server.close()
        await asyncio.to_thread(shutil.rmtree, room, ignore_errors=True)
    problem = await _last_answer(hand)
    if problem:
        return Outcome(None, "submission_invalid", problem, child.grade)
    cause, detail = (start.means or exit_causes)(end)
    if cause != "no_submission":
        detail = " - ".join(part for part in (detail, _tail(program.stderr)) if part)
    return concluded(hand, child.grade, cause=cause, detail=detail)


async def _attend(hand: HandOver, child: isolation.Child) -> isolation.Exit:
    """Stay with the agent until it ends, answers, or meets a limit; then see to it that it is gone."""
    ended = asyncio.ensure_future(child.wait())
    watch = asyncio.ensure_future(_watch_answer(hand))
    try:
        await until_over(hand, [ended, watch])
        if not ended.done() and hand.toolbox.context.submitted.is_set():
            await asyncio.wait([ended], timeout=1.0)
        return await child.stop()
    finally:
        watch.cancel()
        await asyncio.gather(watch, return_exceptions=True)
        await child.close()
        await asyncio.gather(ended, return_exceptions=True)
