"""A child process that answers questions one JSON line at a time; it may crash or hang without harming its parent.

Policy engines run in such children: what agents and scenario authors write is never evaluated in the trial's own process.
"""

import contextlib
import json
import select
import subprocess
import sys
from typing import Any

from itbench.core.errors import ItbenchError


class EngineError(ItbenchError):
    """The engine refused the input: syntax, types, a run-time error. The text is the engine's own."""


class EngineCrash(EngineError):
    """The engine's process died or did not answer in time while it evaluated this input."""


class Child:
    """One engine process, started when first asked and again after a crash.

    Args:
        module: module to run with `python -m`; it calls `serve`.
        timeout_s: wall seconds for one answer, the start of the process included.
    """

    def __init__(self, module: str, timeout_s: float = 30.0) -> None:
        self.module, self.timeout_s = module, timeout_s
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process without waiting for it; `ask` does that too."""
        self._started()

    def ask(self, message: Any) -> Any:
        """Send one message, return the answer.

        Raises:
            EngineError: the engine reports an error. EngineCrash: it died or is too slow (it is then killed).
        """
        process = self._started()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
            ready, _, _ = select.select([process.stdout], [], [], self.timeout_s)
            line = process.stdout.readline() if ready else b""
        except BrokenPipeError:
            line = b""
        if not line.endswith(b"\n"):
            why = self._ending(process)
            self.close()
            raise EngineCrash("the engine gave up on this input", seen=why, expected="an answer")
        answer = json.loads(line)
        if "error" in answer:
            raise EngineError(str(answer["error"]))
        return answer["value"]

    def _ending(self, process: "subprocess.Popen[bytes]") -> str:
        """Why there is no answer. A process whose pipe has closed is about to end; its exit code takes a moment."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            if process.stdout is None or select.select([process.stdout], [], [], 0)[0]:
                return f"exit {process.wait(timeout=5)}"
        return f"no answer within {self.timeout_s:g} s"

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._process = subprocess.Popen(
                [sys.executable, "-m", self.module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        return self._process

    def close(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def serve(answer: Any) -> None:
    """The child's loop: for each JSON line on standard input, print `{"value": answer(message)}` or `{"error": text}`."""
    for line in sys.stdin:
        try:
            reply = {"value": answer(json.loads(line))}
        except Exception as error:  # the engine's own errors become answers; the process must go on
            reply = {"error": f"{error}"}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()
