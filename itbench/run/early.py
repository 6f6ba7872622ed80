"""Starts the forge (`forge.py`) before anything else of a command is imported. Imports next to nothing; called by `cli.main`."""

import os
import socket
import subprocess
import sys

from itbench.run.home import worker_environment

Started = tuple["subprocess.Popen[bytes]", socket.socket]
"""The process, and our end of the socket that tells it what to do."""
_prepared: list[Started] = []


def start() -> Started:
    """Start the process; it begins to import at once."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "itbench.run.forged", str(theirs.fileno()), str(os.getpid())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=worker_environment(),
        )
    return process, ours


def prepare() -> None:
    """Start a forge that `take` will hand out."""
    if not _prepared:
        _prepared.append(start())


def take() -> Started:
    """The prepared forge, or a new one."""
    return _prepared.pop() if _prepared else start()


def end(process: "subprocess.Popen[bytes]", control: socket.socket) -> None:
    """End a forge, and with it whatever it still runs."""
    control.close()
    process.kill()
    process.wait()


def discard() -> None:
    """End a prepared forge that nobody took."""
    while _prepared:
        end(*_prepared.pop())
