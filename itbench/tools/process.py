"""Runs a program for a tool: argv only, a clean environment, nothing left behind. Called by `kubectl`.

There is no shell between the agent's words and the program; what only a shell could do is refused with a clear line.
"""

import asyncio
import contextlib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from itbench.core.starting import kill, start_program

MAX_OUTPUT = 4 * 1024 * 1024
"""Bytes kept of each stream; the rest is read and dropped."""
_OPERATORS = "|&;<>"


class NotPlain(ValueError):
    """A command line that would need a shell."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A program that ended."""

    code: int
    stdout: str
    stderr: str

    @property
    def text(self) -> str:
        """Both streams, as a terminal would show them."""
        parts = [part for part in (self.stdout.rstrip("\n"), self.stderr.rstrip("\n")) if part]
        return "\n".join(parts)


def split(command: str) -> list[str]:
    """One command line -> argv.

    Raises:
        NotPlain: pipes, redirections, lists, substitutions outside quotes, or unbalanced quotes.
    """
    lexer = shlex.shlex(command, posix=True, punctuation_chars=_OPERATORS)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        plain, words = shlex.split(command), list(lexer)
    except ValueError as error:
        raise NotPlain(f"cannot split the command ({error}): {command[:200]!r}") from error
    shell = [word for word in words if set(word) <= set(_OPERATORS)] + [w for w in plain if w.startswith(("$(", "`"))]
    if any(shell):
        raise NotPlain(
            f"there is no shell here, so {shell[0]!r} means nothing; give one plain command, read its output"
        )
    return plain


async def run(argv: Sequence[str], env: Mapping[str, str], *, stdin: bytes = b"", cwd: str | None = None) -> Finished:
    """Run argv to its end in a process group of its own; cancelled, the whole group is killed.

    Args:
        argv: program and arguments.
        env: the whole environment.
        stdin: what it reads; then end of file.
        cwd: working folder.
    """
    process = await start_program(
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(env),
        cwd=cwd,
        start_new_session=True,
    )
    try:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        out, err, _ = await asyncio.gather(
            _read(process.stdout), _read(process.stderr), _feed(process.stdin, stdin), return_exceptions=False
        )
        return Finished(await process.wait(), out, err)
    finally:
        await kill(process, group=True)


async def _read(stream: asyncio.StreamReader) -> str:
    kept = bytearray()
    while chunk := await stream.read(65536):
        if len(kept) < MAX_OUTPUT:
            kept += chunk
    return bytes(kept[:MAX_OUTPUT]).decode("utf-8", "replace")


async def _feed(stream: asyncio.StreamWriter, data: bytes) -> None:
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        stream.write(data)
        await stream.drain()
    stream.close()
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        await stream.wait_closed()
