"""Estates left running by `itbench up`: each is a process of its own with a folder that says where it is."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from itbench.core.errors import EnvironmentFault, UsageError
from itbench.run.home import cache_home, worker_environment
from itbench.run.jobs import Job

POLL_S = 0.1
END_S = 20.0
"""Wall seconds that an estate gets to end by itself."""


def estates_home() -> Path:
    """Where the folders of running estates are."""
    return cache_home() / "up"


@dataclass(frozen=True)
class Estate:
    """One estate: its folder and its process."""

    folder: Path

    @property
    def pid(self) -> int | None:
        """The process, if it is still the one that was started."""
        try:
            pid, started = json.loads((self.folder / "pid.json").read_bytes())
        except (OSError, ValueError):
            return None
        return pid if _start_time(pid) == started else None

    def end(self) -> bool:
        """End the process and remove the folder; False when it was not running."""
        pid = self.pid
        if pid is not None:
            os.killpg(pid, signal.SIGTERM)
            deadline = time.monotonic() + END_S
            while self.pid is not None and time.monotonic() < deadline:
                time.sleep(POLL_S)
            if self.pid is not None:
                os.killpg(pid, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)
        return pid is not None


def _start_time(pid: int) -> str | None:
    """When a process started, in kernel ticks; tells a process from a later one with the same number."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text.rsplit(")", 1)[1].split()
    return None if fields[0] == "Z" else fields[19]


def start(job: Job) -> tuple[Estate, dict[str, Any]]:
    """Start an estate and wait until it is handed over.

    Returns:
        The estate, and its page and endpoints.

    Raises:
        EnvironmentFault: it did not come up; nothing is left behind.
    """
    folder = estates_home() / f"{job.scenario}-{os.getpid()}"
    folder.mkdir(parents=True, mode=0o700)
    job = job.model_copy(update={"kind": "up", "folder": str(folder / "trial")})
    with (folder / "log.jsonl").open("wb") as log, (folder / "errors.txt").open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "itbench.run.worker", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=errors,
            start_new_session=True,
            env=worker_environment(),
        )
    (folder / "pid.json").write_text(json.dumps([process.pid, _start_time(process.pid)]))
    assert process.stdin is not None
    process.stdin.write(job.model_dump_json().encode() + b"\n")
    process.stdin.close()
    estate = Estate(folder)
    try:
        return estate, _announced(folder, process)
    except BaseException:
        estate.end()
        raise


def _announced(folder: Path, process: "subprocess.Popen[bytes]") -> dict[str, Any]:
    while True:
        for line in (folder / "log.jsonl").read_text().splitlines():
            record = json.loads(line)
            if "up" in record:
                found: dict[str, Any] = record["up"]
                return found
            if "error" in record:
                raise EnvironmentFault(str(record["error"]))
            if "result" in record:
                result = record["result"]
                raise EnvironmentFault("the estate did not come up", cause=result["cause"], seen=result["detail"])
        if process.poll() is not None:
            raise EnvironmentFault("the estate's process ended", seen=(folder / "errors.txt").read_text()[-500:])
        time.sleep(POLL_S)


def verdict(estate: Estate) -> dict[str, Any] | None:
    """The result of an estate whose answer was handed in and graded; None while there is none."""
    found = None
    for line in (estate.folder / "log.jsonl").read_text().splitlines():
        record = json.loads(line)
        found = record.get("result", found)
        if "error" in record:
            raise EnvironmentFault(str(record["error"]))
    return found


def await_verdict(estate: Estate) -> dict[str, Any]:
    """Wait until the answer has been handed in and graded.

    Raises:
        EnvironmentFault: the estate ended without a result.
    """
    while True:
        alive = estate.pid is not None
        found = verdict(estate)
        if found is not None:
            return found
        if not alive:
            raise EnvironmentFault("the estate ended without a result", seen=estate.folder.name)
        time.sleep(POLL_S)


def running() -> list[Estate]:
    """Estates whose folders exist, dead ones included."""
    return [Estate(folder) for folder in sorted(estates_home().glob("*")) if folder.is_dir()]


def named(text: str) -> Estate:
    """An estate by its folder or the folder's name; raises UsageError."""
    folder = Path(text) if "/" in text else estates_home() / text
    if not (folder / "pid.json").is_file():
        known = ", ".join(estate.folder.name for estate in running()) or "none is running"
        raise UsageError("no such estate", seen=text, expected=f"one of: {known}")
    return Estate(folder)
