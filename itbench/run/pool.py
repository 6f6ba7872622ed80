"""Worker processes, at most so many at once: sends jobs, relays their progress, collects results. Called by run and prove."""

import asyncio
import contextlib
import json
import os
import signal
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass, field
from typing import IO, Any

from itbench.core.starting import start_program
from itbench.run.forge import LINE, Forge, Forged
from itbench.run.home import worker_environment
from itbench.run.jobs import Job

Progress = Callable[[Job, dict[str, Any]], None]
GRACE_S = 10.0
"""Wall seconds that an interrupted worker gets to clean up."""

INTERRUPTED = 130
"""Exit code of a worker that was told to end."""
TAIL = 1 << 16
"""Bytes of a worker's standard error that are kept."""


@dataclass(frozen=True)
class Outcome:
    """How a job ended: its result document, or one line that says why there is none."""

    job: Job
    result: dict[str, Any] | None = None
    error: str = ""
    exit_code: int = 0
    trace: str = ""


@dataclass
class _Lines:
    last: dict[str, Any] = field(default_factory=dict)


async def _relay(stream: asyncio.StreamReader, job: Job, progress: Progress) -> dict[str, Any]:
    """Hand progress on; the last record that carries a result or an error ends the job."""
    kept = _Lines()
    while True:
        try:
            line = await stream.readline()
            if not line:
                return kept.last
            record = json.loads(line)
        except ValueError:  # no JSON, or a line longer than any record
            continue
        if not isinstance(record, dict):
            continue
        if "result" in record or "error" in record:
            kept.last = record
        else:
            progress(job, record)


async def run_job(job: Job, progress: Progress = lambda job, record: None, forge: Forge | None = None) -> Outcome:
    """Run one job in a process of its own, forked by `forge` if there is one; never raises for what happens inside it.

    Its standard error goes to a file: what a worker leaves running may hold a pipe open for ever.
    """
    with tempfile.TemporaryFile() as noise:
        process = await forge.launch(job.model_dump_json(), noise) if forge is not None else None
        return await _run_job(job, progress, noise, process or await _spawn(job, noise))


async def _spawn(job: Job, noise: IO[bytes]) -> asyncio.subprocess.Process:
    """A worker of its own, which imports everything itself."""
    process = await start_program(
        sys.executable,
        "-m",
        "itbench.run.worker",
        str(os.getpid()),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=noise,
        start_new_session=True,
        env=worker_environment(),
        limit=LINE,
    )
    assert process.stdin is not None
    process.stdin.write(job.model_dump_json().encode() + b"\n")
    process.stdin.close()
    return process


async def _run_job(
    job: Job, progress: Progress, noise: IO[bytes], process: asyncio.subprocess.Process | Forged
) -> Outcome:
    assert process.stdout is not None
    try:
        last = await _relay(process.stdout, job, progress)
        await process.wait()
    finally:
        await _end(process)
        if isinstance(process, Forged):
            await process.close()
    if isinstance(last.get("result"), dict):
        return Outcome(job, last["result"])
    said = _tail(noise)
    if isinstance(process, Forged) and process.orphaned and last.get("exit", INTERRUPTED) == INTERRUPTED:
        return Outcome(job, None, _ended("the process that forks workers", process.returncode, ""), 3, said)
    text = last.get("error") or _ended("the worker", process.returncode, said)
    return Outcome(job, None, str(text), int(last.get("exit", 3)), last.get("trace", said))


def _tail(noise: IO[bytes]) -> str:
    """The end of what a worker wrote to standard error."""
    noise.seek(max(0, noise.seek(0, os.SEEK_END) - TAIL))
    return noise.read().decode(errors="replace")


def _ended(what: str, code: int | None, noise: str) -> str:
    """One line on a process that left neither result nor error."""
    how = f"was killed by signal {-code}" if code is not None and code < 0 else f"ended with exit code {code}"
    lines = noise.strip().splitlines()
    return f"{what} {how}" + (f": {lines[-1][:300]}" if lines else "") + "; go on with --resume"


async def _end(process: asyncio.subprocess.Process | Forged) -> None:
    """End a worker and whatever is left of its process group."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), GRACE_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


async def run_jobs(
    jobs: Iterable[Job],
    workers: int,
    progress: Progress = lambda job, record: None,
    forge: Forge | None = None,
) -> AsyncGenerator[Outcome, None]:
    """Run jobs, `workers` at once; outcomes come as they end. Leaving the iteration early ends the rest."""
    slots = asyncio.Semaphore(workers)

    async def one(job: Job) -> Outcome:
        async with slots:
            return await run_job(job, progress, forge)

    tasks = [asyncio.create_task(one(job)) for job in jobs]
    try:
        for done in asyncio.as_completed(tasks):
            yield await done
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
