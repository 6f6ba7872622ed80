"""Runs the collection script that an agent delivered, confined, with limits, against one cluster. Called by `clusters`."""

import asyncio
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import itbench
from itbench.agents.isolation import Confinement, Program, always_hidden, start
from itbench.tools.kubectl import binary

TIME_S = 60.0
MAX_BYTES = 8 * 1024 * 1024
RESULT = "collected_data.json"


@dataclass(frozen=True)
class Collected:
    """What a run left. `cause` is empty, `artifact_error` or `artifact_timeout`; `data` is None when there is no file."""

    data: Any = None
    exit: int | None = None
    cause: str = ""
    detail: str = ""


def deliverable(workspace: Path, name: str, limit: int = 1024 * 1024) -> str | None:
    """The text of a delivered file; None when it is missing, no ordinary file, too long or no text."""
    file = workspace / name
    if file.is_symlink() or not file.is_file() or file.stat().st_size > limit:
        return None
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


async def collect(script: str, kubeconfig: str, port: int, folder: Path, *, time_s: float = TIME_S) -> Collected:
    """Run a script once.

    Args:
        script: its text.
        kubeconfig: text of the collector's kubeconfig.
        port: the only TCP port that it may connect to.
        folder: fresh folder of this run, private to the trial.
        time_s: wall seconds.
    """
    work = folder / "work"
    work.mkdir(parents=True, mode=0o700)
    (folder / "script.sh").write_text(script, encoding="utf-8")
    (folder / "kubeconfig").write_text(kubeconfig, encoding="utf-8")
    kubectl = Path(binary()).resolve()
    (folder / "bin").mkdir()
    (folder / "bin" / "kubectl").symlink_to(kubectl)
    env = {
        "PATH": f"{folder / 'bin'}:{os.defpath}",
        "KUBECONFIG": str(folder / "kubeconfig"),
        "HOME": str(work),
        "TMPDIR": str(work),
        "KUBECACHEDIR": str(work / ".kube"),
        "LC_ALL": "C.UTF-8",
    }
    argv = ("/bin/sh", str(folder / "script.sh"))
    program = Program(argv, env, work, folder / "stdout", folder / "stderr")
    package = Path(itbench.__file__).parent
    confinement = Confinement(
        hidden=always_hidden(package), readable=(folder, kubectl), writable=(work,), ports=(port,)
    )
    child = await start(program, confinement)
    try:
        async with asyncio.timeout(time_s):
            ended = await child.wait()
    except TimeoutError:
        return Collected(cause="artifact_timeout", detail=f"script.sh ran longer than {time_s:g} s")
    finally:
        await child.close()
    if ended.not_started:
        return Collected(cause="artifact_error", detail=f"script.sh was not started: {ended.not_started}")
    return _result(work / RESULT, ended.code)


def _result(file: Path, code: int | None) -> Collected:
    if file.is_symlink() or not file.is_file():
        return Collected(exit=code, detail=f"no {RESULT}")
    if file.stat().st_size > MAX_BYTES:
        return Collected(exit=code, cause="artifact_error", detail=f"{RESULT} is longer than {MAX_BYTES} bytes")
    try:
        return Collected(json.loads(file.read_bytes()), code)
    except (ValueError, RecursionError):
        return Collected(exit=code, cause="artifact_error", detail=f"{RESULT} is not JSON")
