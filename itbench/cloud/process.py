"""The parent's end of the pipe to the account's process: start it, ask it, end it. Held by the front and the account driver."""

import asyncio
import contextlib
import os
import struct
import sys
from typing import Any

import msgpack

from itbench.core.errors import EnvironmentFault
from itbench.core.starting import start_program


class AccountProcess:
    """One moto in one child process. Requests are answered one after the other, so equal orders give equal identifiers.

    Args:
        seed: of the identifiers that the account gives out.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()

    async def start(self) -> None:
        """Start the process and the empty account; raises EnvironmentFault when it does not come up."""
        self._process = await start_program(
            sys.executable,
            "-m",
            "itbench.cloud.child",
            str(os.getpid()),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={**os.environ, "PYTHONHASHSEED": "0"},
        )
        await self.ask({"op": "start", "seed": self.seed})

    async def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a message and wait for its answer.

        Raises:
            EnvironmentFault: cause `environment_lost`, when the process has ended or fails on the message.
        """
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise EnvironmentFault("the account's process is not running", cause="environment_lost")
        data = msgpack.packb(message)
        async with self._turn:
            try:
                process.stdin.write(struct.pack(">I", len(data)) + data)
                await process.stdin.drain()
                (size,) = struct.unpack(">I", await process.stdout.readexactly(4))
                answer: dict[str, Any] = msgpack.unpackb(await process.stdout.readexactly(size))
            except (OSError, asyncio.IncompleteReadError) as error:
                raise EnvironmentFault("the account's process ended", cause="environment_lost") from error
        if "error" in answer:
            raise EnvironmentFault(
                "the account's process failed", cause="environment_lost", seen=answer["error"].strip().splitlines()[-1]
            )
        return answer

    async def close(self) -> None:
        """End the process; nothing is left of it."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        transport = getattr(process, "_transport", None)
        if transport is not None:
            transport.close()
