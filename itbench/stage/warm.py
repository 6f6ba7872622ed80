"""An interpreter that has already imported the Kubernetes client, and forks once for each Ansible module.

Every Ansible task is a process that imports the client anew, which takes longer than all it then does. `launch.py` starts this
server beside ansible-playbook, so that the import happens while Ansible itself loads; `ask.py` is what Ansible takes for its
Python. Where the server does not answer, `ask.py` runs a plain interpreter, so nothing depends on it. It serves one play and dies
with its parent. Its socket lies in the private folder of that play, but a path is no lock: a confined agent of another trial can
see it in the kernel's lists and connect. So every request begins with the play's key, which only its own processes know.
"""

import contextlib
import gc
import hmac
import json
import os
import signal
import socket
import sys
import types
from importlib import import_module
from typing import Any, NoReturn

PRELOADED = ("kubernetes", "kubernetes.client", "kubernetes.config", "kubernetes.dynamic", "urllib3", "yaml")
HEADER = 8
"""Bytes of the length that precedes a request, after the key."""


def serve(path: str, key: bytes) -> NoReturn:
    """Import, then answer requests that begin with `key` on a Unix socket until killed."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(8)
        for name in PRELOADED:
            with contextlib.suppress(ImportError):
                import_module(name)
        _parse_fast()
        gc.freeze()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while True:
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                _answer(connection, key)
            connection.close()


def _parse_fast() -> None:
    """Let `yaml.safe_load` use libyaml where it is there; the Kubernetes module parses whole manifests with it."""
    with contextlib.suppress(ImportError, AttributeError):
        yaml = import_module("yaml")
        yaml.SafeLoader = yaml.CSafeLoader  # type: ignore[attr-defined]


def _answer(connection: socket.socket, key: bytes) -> NoReturn:
    """In the forked process: take the place of the interpreter that was asked for, and tell its exit code."""
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        head, fds, _, _ = socket.recv_fds(connection, len(key) + HEADER, 3)
        if not key or not hmac.compare_digest(head[: len(key)], key):
            os._exit(code)
        head = head[len(key) :]
        request = json.loads(_read(connection, int.from_bytes(head, "big")))
        for number, fd in enumerate(fds):
            os.dup2(fd, number)
            os.close(fd)
        os.environ.clear()
        os.environ.update(request["env"])
        os.chdir(request["cwd"])
        code = _run(request["argv"])
        connection.sendall(code.to_bytes(1, "big"))
    finally:
        os._exit(code)


def _read(connection: socket.socket, length: int) -> bytes:
    parts = bytearray()
    while len(parts) < length and (part := connection.recv(length - len(parts))):
        parts += part
    return bytes(parts)


def _run(argv: list[str]) -> int:
    """Run a program as `python ARGV` would, its source from standard input when there are no arguments."""
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    sys.argv = argv or ["-"]
    try:
        if argv and argv[0] != "-":
            main.__file__ = argv[0]
            with open(argv[0], "rb") as file:  # noqa: PTH123 - pathlib is not needed for one read
                source = file.read()
        else:
            source = sys.stdin.buffer.read()
        exec(compile(source, sys.argv[0], "exec"), main.__dict__)
        code: Any = 0
    except SystemExit as end:
        code = end.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    if isinstance(code, str):
        print(code, file=sys.stderr, flush=True)  # noqa: T201 - as an interpreter does
    return code & 255 if isinstance(code, int) else int(code is not None)
