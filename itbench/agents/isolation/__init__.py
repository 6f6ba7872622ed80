"""Keeps an agent's process away from truths, other trials and the trial's own memory, and ends it with the trial.

`start()` is called by the adapters for every foreign agent.
"""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from itbench.agents.isolation import landlock
from itbench.agents.isolation.rules import Confinement, always_hidden, readable_paths, writable_paths
from itbench.core.errors import EnvironmentFault, UsageError
from itbench.core.starting import start_program

__all__ = ["Child", "Confinement", "Exit", "Program", "always_hidden", "grade", "start", "wrapper"]

_WARDEN = Path(__file__).with_name("warden.py")
_CONFINE = Path(__file__).with_name("confine.py")
_STOP_S = 10.0


@dataclass(frozen=True, slots=True)
class Exit:
    """How an agent's process ended: an exit code, a signal, or why it never started or could not go on."""

    code: int | None = None
    signal: int | None = None
    not_started: str = ""
    exhausted: str = ""
    """What it used up, where it was ended for that."""


def grade(mode: str) -> str:
    """The isolation that `mode` gives on this machine: `landlock-7` (the number is the kernel's ABI) or `none`.

    Raises:
        UsageError: an unknown mode.
        EnvironmentFault: isolation was wanted, and this kernel has none.
    """
    if mode == "none":
        return "none"
    if mode not in ("auto", "landlock"):
        raise UsageError("unknown isolation", seen=mode, expected="auto, landlock or none")
    version = landlock.abi()
    if not version:
        raise EnvironmentFault(
            "this kernel has no Landlock, so a foreign agent could read the answers",
            cause="unsupported_here",
            hint="use Linux 5.13 or newer with Landlock on, or ask for --isolation none",
        )
    return f"landlock-{min(version, landlock.NEWEST_ABI)}"


class Child:
    """A running agent behind its warden."""

    def __init__(self, process: asyncio.subprocess.Process, reached: str) -> None:
        self.grade = reached
        self.pid = 0
        self._process = process
        self._ended: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()
        self._reader = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        assert self._process.stdout is not None
        end = Exit(signal=9)
        while line := await self._process.stdout.readline():
            message = json.loads(line)
            if message["event"] == "started":
                self.pid = message["pid"]
            elif message["event"] == "failed":
                end = Exit(not_started=message["reason"])
            else:
                end = Exit(code=message["code"], signal=message["signal"], exhausted=message["exhausted"])
        await self._process.wait()
        self._ended.set_result(end)

    async def wait(self) -> Exit:
        """How it ended, once it and all that it started are gone."""
        return await asyncio.shield(self._ended)

    async def stop(self) -> Exit:
        """End it: a polite signal, two seconds of grace, then everything is killed."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError, ConnectionResetError, RuntimeError):
            self._process.stdin.write(b"stop\n")
            await self._process.stdin.drain()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOP_S):
                return await self.wait()
        return await self.kill()

    async def kill(self) -> Exit:
        """End it at once."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return await self.wait()

    async def close(self) -> None:
        """End it if it still runs, and release the pipes."""
        await self.kill()
        await self._reader
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            await self._process.stdin.wait_closed()


@dataclass(frozen=True, slots=True)
class Program:
    """What is started: argv (the first word an absolute path), its whole environment, folder, and files for its output."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: Path
    stdout: Path
    stderr: Path


def _rules(confinement: Confinement) -> dict[str, Any]:
    if grade(confinement.mode) == "none":
        return {"abi": 0, "read": [], "write": [], "ports": []}
    return {
        "abi": landlock.abi(),
        "read": readable_paths(confinement),
        "write": writable_paths(confinement),
        "ports": list(confinement.ports),
    }


def wrapper(confinement: Confinement, plan: Path) -> Callable[[Sequence[str]], list[str]]:
    """What makes an argv run confined, for programs that tools start on behalf of a foreign agent.

    Args:
        confinement: the agent's own.
        plan: file to keep the rules in; the agent must not be able to write it.
    """
    rules = _rules(confinement)
    if not rules["abi"]:
        return list
    plan.write_text(json.dumps(rules), encoding="utf-8")
    return lambda argv: [sys.executable, "-I", "-S", str(_CONFINE), str(plan), *argv]


async def start(program: Program, confinement: Confinement) -> Child:
    """Start a program behind a warden; `Child.wait()` tells when it never came to run.

    Raises:
        UsageError, EnvironmentFault: as in `grade`.
    """
    reached = grade(confinement.mode)
    plan = _rules(confinement) | {
        "argv": list(program.argv),
        "env": dict(program.env),
        "cwd": str(program.cwd),
        "stdout": str(program.stdout),
        "stderr": str(program.stderr),
        "written": [str(path) for path in (*confinement.writable, program.stdout, program.stderr)],
        "disk": confinement.disk,
    }
    process = await start_program(
        sys.executable,
        "-I",
        "-S",
        str(_WARDEN),
        str(os.getpid()),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={"LC_ALL": "C.UTF-8"},
    )
    assert process.stdin is not None
    child = Child(process, reached)
    process.stdin.write(json.dumps(plan).encode() + b"\n")
    await process.stdin.drain()
    return child
