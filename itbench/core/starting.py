"""Starting of child processes that a cancellation cannot tear in two; called wherever a program is started.

asyncio leaves a start that is cancelled half done: it may wait for ever for pipes that grandchildren hold open, and what the
program had already started lives on.
"""

import asyncio
import contextlib
import os
import signal
from typing import Any


async def start_program(*argv: str, **options: Any) -> asyncio.subprocess.Process:
    """`asyncio.create_subprocess_exec`; cancelled meanwhile, the process is killed first, with its group if it leads one.

    Raises:
        OSError: the program cannot be started.
    """
    starting = asyncio.ensure_future(asyncio.create_subprocess_exec(*argv, **options))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with contextlib.suppress(OSError):
            await kill(await starting, group=bool(options.get("start_new_session")))
        raise


async def kill(process: asyncio.subprocess.Process, *, group: bool) -> None:
    """End a process, and where asked all of its group, at once; returns when it is gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL) if group else process.kill()
    await process.wait()
