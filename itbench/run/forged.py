"""What runs in the forge (`forge.py`): imports what trials need, then forks a worker for each job and tells how it ended.

Nothing is imported at the beginning but what takes no time; there are no threads when it forks, and nothing of a job is in it.
"""

import contextlib
import gc
import json
import os
import select
import signal
import socket
import sys
from importlib import import_module
from typing import Any, NoReturn

from itbench.core.processes import die_with_parent, harden

PACKET = 1 << 20
COMMON = (
    "itbench.run.worker",
    "itbench.run.build",
    "uvloop",
    "itbench.run.sre",
    "itbench.agents.builtin",
    "itbench.agents.steps",
    "itbench.run.lodger",
    "itbench.tools.mcp",
    "itbench.tools.http",
    "jsonschema",
    "numpy.random",
    "cel_expr_python.cel",
    "itbench.engines.cel_objects",
    "cryptography.hazmat.backends",
    "itbench.world.flow.compiled:link_kept",
    "itbench.world.flow.layout:erlang_table",
    "itbench.run.checkpoints:sources_digest",
)
"""What is imported, or called, before anybody asks, as long as nobody does. Incidents come first: most rows are."""
NEW_OBJECTS = 20_000
"""After so many a worker looks for garbage: at Python's 700 it would, while it restores a checkpoint, all the time."""


def main() -> NoReturn:
    """Entry point of `python -m itbench.run.forged DESCRIPTOR PARENT`, the process id of who starts it."""
    die_with_parent(int(sys.argv[2]))
    harden()
    Serving(socket.socket(fileno=int(sys.argv[1]))).run()


class Serving:
    """The loop of the forge.

    Args:
        control: where messages come from and go to.
    """

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.children: dict[int, int] = {}
        self._ahead = list(COMMON)
        self._wake, self._alarm = os.pipe()
        for end in (self._wake, self._alarm):
            os.set_blocking(end, False)

    def run(self) -> NoReturn:
        """Import while nobody asks, then serve until the other side is gone."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._alarm)
        gc.disable()  # what an import leaves behind is there to stay: to look for garbage among it takes a tenth of the time
        while self._ahead and not self._asked(0.0):
            _import(self._ahead.pop(0))
        while True:
            self._asked(None)
            self._reap()
            if self._asked(0.0):
                self._serve()

    def _asked(self, timeout: float | None) -> bool:
        """Whether there is a message; waits for one, or for the end of a worker."""
        control = self.control.fileno()
        ready, _, _ = select.select([control, self._wake], [], [], timeout)
        return control in ready

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake, 4096)
        for pid in list(self.children):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                self._tell({"id": self.children.pop(pid), "exit": os.waitstatus_to_exitcode(status)})

    def _serve(self) -> None:
        """One message: what to import, a job, or the number of one that is not wanted any more."""
        text, fds, _, _ = socket.recv_fds(self.control, PACKET, 2)
        if not text:
            os._exit(0)
        message = json.loads(text)
        for name in message.get("import", ()):
            _import(name)
        while message.get("many") and self._ahead:  # else each job would import the rest for itself
            _import(self._ahead.pop(0))
        if "job" in message:
            gc.freeze()  # what is there now is not looked at again, and stays shared with the workers
            forge = os.getpid()
            pid = os.fork()
            if pid == 0:
                self._become_worker(message["job"], fds, forge)
            self.children[pid] = message["id"]
            self._tell({"id": message["id"], "pid": pid})
        for number in fds:
            os.close(number)
        for pid in [pid for pid, number in self.children.items() if number == message.get("end")]:
            os.kill(pid, signal.SIGTERM)

    def _tell(self, record: dict[str, Any]) -> None:
        try:
            self.control.send(json.dumps(record).encode())
        except OSError:
            os._exit(0)

    def _become_worker(self, job: str, fds: list[int], forge: int) -> NoReturn:
        """In the forked process: take the place of one that was started for this job alone."""
        code: Any = 1
        try:
            gc.set_threshold(NEW_OBJECTS)
            gc.enable()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self.control.close()
            os.setsid()
            for number in (self._wake, self._alarm):
                os.close(number)
            for place, number in enumerate(fds, start=1):
                os.dup2(number, place)
                os.close(number)
            worker = import_module("itbench.run.worker")
            code = worker.conduct(worker.Job.model_validate_json(job), forge)
        except SystemExit as end:
            code = end.code
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            with contextlib.suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code if isinstance(code, int) else 1)


def _import(name: str) -> None:
    """Import a module; one that cannot be is found missing again by the worker that needs it, which says so."""
    module, _, function = name.partition(":")
    with contextlib.suppress(Exception):
        found = import_module(module)
        if function:
            getattr(found, function)()


if __name__ == "__main__":
    main()
