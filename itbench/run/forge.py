"""A process that has imported what trials need, and forks once for each job: importing takes longer than many a trial.

`early` starts it before anything else, so that it imports while the command itself does; `pool` sends it jobs. It is told
what to do through a socket without a name that only this process holds, it forks before any job is read, and it dies with this
process. `forged.py` is what runs there. Without it every job is a process of its own, with the same result.
"""

import asyncio
import contextlib
import json
import os
import socket
import subprocess
from dataclasses import dataclass, field
from typing import IO, Any

from itbench.run import early

PACKET = 1 << 20
"""Bytes of the longest message."""
LINE = 1 << 26
"""Bytes of the longest line that a worker says."""


class Forged:
    """A worker that was forked; as much of `asyncio.subprocess.Process` as the pool needs."""

    def __init__(self, stdout: asyncio.StreamReader, pipe: asyncio.ReadTransport) -> None:
        self.stdout, self._pipe = stdout, pipe
        self.pid = 0
        self.returncode: int | None = None
        self.orphaned = False
        """Whether the forge ended before it: then `returncode` is the forge's, for nobody can know the worker's own."""
        self._begun, self._ended = asyncio.Event(), asyncio.Event()

    def hear(self, pid: int | None, code: int | None) -> None:
        """The forge tells that it began, or how it ended."""
        if pid is not None:
            self.pid = pid
        if code is not None:
            self.returncode = code
            self._ended.set()
        self._begun.set()

    async def begun(self) -> None:
        """Return when its number is known, or when it never began."""
        await self._begun.wait()

    async def wait(self) -> int | None:
        """Return when it has ended."""
        await self._ended.wait()
        return self.returncode

    async def close(self) -> None:
        """Hear nothing more from it."""
        self._pipe.close()
        await asyncio.sleep(0)  # the loop closes the descriptor at its next turn

    def send_signal(self, number: int) -> None:
        """Send it a signal; raises ProcessLookupError when it has ended."""
        if self.returncode is not None or not self.pid:
            raise ProcessLookupError
        os.kill(self.pid, number)


@dataclass
class Forge:
    """A running forge; get it with `take`, end it with `close`. Its workers live in one event loop of the caller."""

    process: "subprocess.Popen[bytes]"
    control: socket.socket
    _workers: dict[int, Forged] = field(default_factory=dict)
    _told: int = 0
    _heard: asyncio.AbstractEventLoop | None = None

    @classmethod
    def take(cls) -> "Forge":
        """The forge that `early` prepared, or a new one; the caller closes it."""
        return cls(*early.take())

    def expect(self, *modules: str, many: bool = False) -> None:
        """Tell what the coming jobs need beside what all need; with `many` to come, everything is imported before the first."""
        self._say(**{"import": modules, "many": many})

    async def launch(self, job: str, noise: IO[bytes]) -> Forged | None:
        """Fork a worker for a job.

        Args:
            job: as JSON.
            noise: where its standard error goes.

        Returns:
            The worker, or None when the forge has ended.
        """
        self._listen()
        self._told += 1
        number = self._told
        reading, writing = os.pipe()
        stream = asyncio.StreamReader(limit=LINE)
        pipe = os.fdopen(reading, "rb", 0)
        loop = asyncio.get_running_loop()
        with os.fdopen(writing, "wb", 0):
            transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stream), pipe)
            worker = self._workers[number] = Forged(stream, transport)
            try:
                message = json.dumps({"id": number, "job": job}).encode()
                socket.send_fds(self.control, [message], [writing, noise.fileno()])
            except OSError:
                self._lost()
        try:
            await worker.begun()
        except asyncio.CancelledError:  # it may have begun, or will: the forge ends it, after what it was told before
            self._say(end=number)
            raise
        finally:
            if not worker.pid:
                await worker.close()
        return worker if worker.pid else None

    def _say(self, **message: Any) -> None:
        with contextlib.suppress(OSError):
            self.control.send(json.dumps(message).encode())

    def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        if self._heard is not loop:
            loop.add_reader(self.control, self._hear)
            self._heard = loop

    def _hear(self) -> None:
        """Take everything that the forge has said."""
        while True:
            try:
                text = self.control.recv(PACKET, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            except OSError:
                text = b""
            if not text:
                self._lost()
                return
            record: dict[str, Any] = json.loads(text)
            worker = self._workers.get(record["id"])
            if worker is not None:
                worker.hear(record.get("pid"), record.get("exit"))
            if "exit" in record:
                self._workers.pop(record["id"], None)

    def _lost(self) -> None:
        """The forge has ended, and its workers are told to by the kernel."""
        self.process.kill()
        code = self.process.wait()
        if self._heard is not None:
            self._heard.remove_reader(self.control)
            self._heard = None
        workers, self._workers = self._workers, {}
        for worker in workers.values():
            worker.orphaned = True
            worker.hear(None, code)

    def close(self) -> None:
        """End the process. Never raises."""
        if self._heard is not None and not self._heard.is_closed():
            self._heard.remove_reader(self.control)
        self._heard = None
        early.end(self.process, self.control)
