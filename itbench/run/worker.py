"""The process of one trial: reads a job from standard input, runs it, prints progress and the result as JSON lines.

Started by `itbench.run.pool` or `up`, or forked by a forge (`forged.py`). It dies with its parent, unless it holds an estate up,
and everything it starts dies with it.
"""

import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

from itbench.core.errors import ItbenchError
from itbench.core.processes import die_with_parent, harden
from itbench.run.files import locked
from itbench.run.jobs import Job

PATIENCE_S = 30.0
"""Wall seconds that the worker of a resumed trial waits for the one before it to be gone."""


def emit(record: dict[str, Any]) -> None:
    """One JSON line for the parent."""
    sys.stdout.write(json.dumps(record) + "\n")
    sys.stdout.flush()


async def perform(job: Job, base: Path) -> dict[str, Any]:
    """Run one job with `base` as its folder; returns the result document."""
    from itbench.run.build import revert_proof, trial_runner
    from itbench.run.lodger import Lodger

    harden()
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    if job.kind == "revert":
        return await revert_proof(job, base, emit)
    agent = Lodger(emit) if job.kind == "up" else None
    result = await trial_runner(job, base, emit, agent).run()
    return result.model_dump(mode="json", by_alias=True)


def main() -> int:
    """Entry point of `python -m itbench.run.worker PARENT`, the process id of who starts it."""
    return conduct(Job.model_validate_json(sys.stdin.readline()), int(sys.argv[1]))


def conduct(job: Job, parent: int) -> int:
    """Run a job in this process, which has nothing else to do; returns the exit code."""
    if job.kind != "up":
        die_with_parent(parent, signal.SIGTERM)
    if job.cwd:
        os.chdir(job.cwd)
    base = Path(job.folder) if job.folder else Path(tempfile.mkdtemp(prefix="itbench-"))
    try:
        import uvloop

        base.mkdir(parents=True, exist_ok=True, mode=0o700)
        with locked(base, PATIENCE_S):
            emit({"result": uvloop.run(perform(job, base))})
        return 0
    except ItbenchError as error:
        emit({"error": str(error), "exit": error.exit_code})
        return error.exit_code
    except (asyncio.CancelledError, KeyboardInterrupt):
        emit({"error": "interrupted", "exit": 130})
        return 130
    except OSError as error:  # a disk without room or that cannot be written, a folder that was taken away
        why = f"cannot keep the trial's files in {str(base)!r}: {error.strerror or error}"
        emit({"error": f"{why}; make room there and go on with --resume", "exit": 3, "trace": traceback.format_exc()})
        return 3
    except Exception as error:
        emit({"error": f"{type(error).__name__}: {error}", "exit": 3, "trace": traceback.format_exc()})
        return 3
    finally:
        if not job.folder:
            shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
