"""A start that is cancelled leaves nothing behind and holds nothing up."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from itbench.core.starting import kill, start_program

PIPES = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.PIPE}


def marked(mark: str) -> list[str]:
    """Processes that live and carry a text in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            ended = (entry / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
            if not ended and mark in (entry / "environ").read_bytes().decode(errors="replace"):
                found.append(entry.name)
        except OSError:
            continue
    return found


@pytest.mark.parametrize("moment_s", [0.0, 0.0005, 0.001, 0.002, 0.004, 0.008])
async def test_cancelled_at_any_moment_the_program_and_its_children_are_gone(tmp_path: Path, moment_s: float) -> None:
    """Children that hold the pipes open keep nobody waiting, for the whole group is ended."""
    environment = {"PATH": os.environ["PATH"], "MARK": str(tmp_path)}
    command = ("sh", "-c", "sleep 600 & exec sleep 601")
    for _ in range(5):
        job = asyncio.create_task(start_program(*command, env=environment, start_new_session=True, **PIPES))
        await asyncio.sleep(moment_s)
        job.cancel()
        (done,) = await asyncio.gather(job, return_exceptions=True)
        if isinstance(done, asyncio.subprocess.Process):
            await kill(done, group=True)
    for _ in range(500):
        if not marked(str(tmp_path)):
            break
        await asyncio.sleep(0.01)
    assert marked(str(tmp_path)) == []


async def test_without_a_group_of_its_own_only_the_program_is_ended() -> None:
    """The caller's own group is not touched."""
    process = await start_program("sleep", "600")
    await kill(process, group=False)
    assert process.returncode == -signal.SIGKILL


async def test_a_program_that_is_not_there_is_an_error_of_the_system() -> None:
    """As asyncio says it."""
    with pytest.raises(FileNotFoundError):
        await start_program("no-such-program-at-all")
