"""A small process between a trial and its agent: confines the agent, and takes all of it down when the trial ends or dies.

Run by path in a bare interpreter (`python -I -S warden.py PARENT`), standard library only. Standard input comes from the trial:
one line of JSON, the plan; later `stop` for a polite end; end of file means that the trial is gone, however it went. Standard
output carries one JSON object per line back: `started`, `failed`, `ended`.

The warden is the subreaper of everything the agent starts, so a process that detaches itself becomes its child and is found.
"""

import contextlib
import importlib.util
import json
import os
import resource
import select
import signal
import stat
import sys
import time
from types import ModuleType
from typing import Any, NoReturn

_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 36, 38
GRACE_S = 2.0
LOOK_S = 1.0
"""Wall seconds between looks at how much the agent has written; more where a look takes long."""
_MAX_FILE = 1 << 30
_MAX_DESCRIPTORS = 8192


def _load(path: str) -> ModuleType:
    """A module by its file, named from this file's folder on."""
    spec = importlib.util.spec_from_file_location("loaded", os.path.join(os.path.dirname(__file__), path))  # noqa: PTH118, PTH120
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


processes, landlock = _load("../../core/processes.py"), _load("landlock.py")


def _say(**message: object) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(1, json.dumps(message).encode() + b"\n")


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))


def _confine(plan: dict[str, Any], warden: int) -> None:
    """In the agent's process, just before it becomes the agent's program."""
    os.setsid()
    processes.die_with_parent(warden)
    for kind, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, _MAX_FILE),
        (resource.RLIMIT_NOFILE, _MAX_DESCRIPTORS),
    ):
        _limit(kind, value)
    os.chdir(plan["cwd"])
    os.umask(0o077)
    if plan["abi"]:
        if os.geteuid() == 0:
            for capability in range(64):
                processes.prctl(_PR_CAPBSET_DROP, capability)
        own = f"/proc/{os.getpid()}"
        landlock.restrict(plan["abi"], [*plan["read"], own], plan["write"], plan["ports"])
    processes.prctl(_PR_SET_NO_NEW_PRIVS, 1)


def _become(plan: dict[str, Any], report: int, warden: int) -> NoReturn:
    """Turn into the agent's program; what goes wrong before that is told through the pipe `report`."""
    try:
        null = os.open(os.devnull, os.O_RDONLY)
        out = os.open(plan["stdout"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        err = os.open(plan["stderr"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for source, target in ((null, 0), (out, 1), (err, 2)):
            os.dup2(source, target)
        _confine(plan, warden)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        os.closerange(3, report)
        os.closerange(report + 1, 65536)
        os.execve(plan["argv"][0], plan["argv"], plan["env"])
    except BaseException as error:
        os.write(report, f"{type(error).__name__}: {error}".encode())
    os._exit(127)


def _children() -> list[int]:
    """Direct children of this process, those adopted from the agent included."""
    me = os.getpid()
    try:
        with open(f"/proc/{me}/task/{me}/children") as file:  # noqa: PTH123
            return [int(word) for word in file.read().split()]
    except OSError:
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat") as file:  # noqa: PTH123
                if int(file.read().rpartition(")")[2].split()[1]) == me:
                    found.append(int(name))
        return found


def _kill_all() -> None:
    """Kill children until there are none: orphans of those killed become children, and are next."""
    while True:
        try:
            for child in _children():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _written(path: str) -> int:
    """Bytes on disk below a path, links not followed; what vanishes meanwhile counts nothing."""
    with contextlib.suppress(OSError):
        total = os.lstat(path).st_blocks * 512
        if stat.S_ISDIR(os.lstat(path).st_mode):
            with os.scandir(path) as entries:
                total += sum(_written(entry.path) for entry in entries)
        return total
    return 0


class _Watch:
    """Waits for the first of: the agent ends, the trial says stop, the trial is gone, the agent has written too much.

    Args:
        agent: its process.
        written: where it writes.
        disk: how many bytes it may write there.
    """

    def __init__(self, agent: int, written: list[str], disk: int) -> None:
        self.agent, self.written, self.disk = agent, written, disk
        self._look_s, self._next = LOOK_S, 0.0
        self.status: int | None = None
        self.wake, write = os.pipe()
        os.set_blocking(write, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: None)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)

    def reap(self) -> None:
        """Collect what has ended; keep the agent's own status."""
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] == self.agent:
                    self.status = found[1]

    def _due(self) -> bool:
        """Whether it is time to look again; a busy agent wakes the warden more often."""
        return time.monotonic() >= self._next

    def full(self) -> bool:
        """Whether the agent has written more than it may."""
        begun = time.monotonic()
        total = sum(map(_written, self.written))
        self._look_s = max(LOOK_S, 20 * (time.monotonic() - begun))
        self._next = time.monotonic() + self._look_s
        return total > self.disk

    def run(self, line: int, deadline: float | None = None) -> str:
        """`ended`, `stop`, `gone`, `full` or `late`."""
        while True:
            self.reap()
            if self.status is not None:
                return "ended"
            left = self._look_s if deadline is None else max(0.0, deadline - time.monotonic())
            ready, _, _ = select.select([line, self.wake] if deadline is None else [self.wake], [], [], left)
            if not ready and deadline is not None:
                return "late"
            if deadline is None and self._due() and self.full():
                return "full"
            if self.wake in ready and signal.SIGTERM in os.read(self.wake, 512):
                return "gone"
            if line in ready:
                return "stop" if os.read(line, 512) else "gone"


def _read_plan() -> dict[str, Any]:
    data = b""
    while not data.endswith(b"\n"):
        chunk = os.read(0, 65536)
        if not chunk:
            os._exit(1)
        data += chunk
    plan: dict[str, Any] = json.loads(data)
    return plan


def _start(plan: dict[str, Any]) -> int:
    """The agent's process id, or 0 when its program could not be started."""
    report, write = os.pipe()
    warden = os.getpid()
    agent = os.fork()
    if agent == 0:
        os.close(report)
        _become(plan, write, warden)
    os.close(write)
    problem = b"".join(iter(lambda: os.read(report, 4096), b""))
    os.close(report)
    if problem:
        _say(event="failed", reason=problem.decode("utf-8", "replace"))
        return 0
    return agent


def main() -> None:
    """Start the agent, watch, take everything down, tell how it ended."""
    processes.die_with_parent(int(sys.argv[1]), signal.SIGTERM)
    processes.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    os.setsid()
    plan = _read_plan()
    agent = _start(plan)
    if not agent:
        return
    watch = _Watch(agent, plan["written"], plan["disk"])
    _say(event="started", pid=agent)
    why = watch.run(0)
    if why == "stop":
        with contextlib.suppress(ProcessLookupError):
            os.killpg(agent, signal.SIGTERM)
        watch.run(0, time.monotonic() + GRACE_S)
    status = watch.status
    _kill_all()
    exhausted = f"it wrote more than {plan['disk'] >> 20} MiB" if why == "full" else ""
    code = -int(signal.SIGKILL) if status is None else os.waitstatus_to_exitcode(status)
    _say(event="ended", code=code if code >= 0 else None, signal=-code if code < 0 else None, exhausted=exhausted)


if __name__ == "__main__":
    main()
