"""Sockets that start work for the trial: the forge's and the warm interpreter's. No agent gets anything done through them."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from itbench.agents.isolation import landlock
from itbench.agents.select import agent
from itbench.run import early
from itbench.run.forge import Forge

pytestmark = pytest.mark.skipif(not landlock.abi(), reason="this kernel has no Landlock")

ATTACK = """
import ctypes, json, os, socket, sys
pid, path, left = int(sys.argv[1]), sys.argv[2], sys.argv[3]
got = []

def attempt(what, act):
    try:
        act()
        got.append(what)
    except OSError:
        pass

def taken():
    call = ctypes.CDLL(None, use_errno=True).syscall
    handle = os.pidfd_open(pid)
    if not any(call(438, handle, number, 0) >= 0 for number in range(32)):
        raise OSError("no descriptor")

def traced():
    if ctypes.CDLL(None, use_errno=True).ptrace(16, pid, None, None) != 0:
        raise OSError("not attached")

attempt("descriptors listed", lambda: os.listdir(f"/proc/{pid}/fd"))
attempt("descriptor opened", lambda: [os.open(f"/proc/{pid}/fd/{n}", os.O_RDWR) for n in os.listdir(f"/proc/{pid}/fd")])
attempt("descriptor taken", taken)
attempt("traced", traced)
attempt("memory", lambda: open(f"/proc/{pid}/mem", "rb").close())
attempt("environment", lambda: open(f"/proc/{pid}/environ", "rb").read())
program = os.path.abspath("program.py")
open(program, "w").write(f"open({left!r}, 'w').write('done')")
request = json.dumps({"argv": [program], "cwd": "/", "env": {}}).encode()
for key in (b"", b"k", b"x" * 64, b"\\0" * 64):
    for place in (path, "\\0" + path):
        with socket.socket(socket.AF_UNIX) as connection:
            try:
                connection.settimeout(5)
                connection.connect(place)
                socket.send_fds(connection, [key + len(request).to_bytes(8, "big")], [0, 1, 2])
                connection.sendall(request)
                if connection.recv(1):
                    got.append("answered")
            except OSError:
                pass
print(json.dumps({"notes": ", ".join(got) or "nothing"}))
"""
SERVE = (
    "import os, sys; from itbench.stage.warm import serve; serve(sys.argv[1], os.environ['ITBENCH_WARM_KEY'].encode())"
)


async def attack(make_hand, folder: Path, pid: int, path: Path, left: Path) -> str:
    """What a confined agent got of a process and a socket; the answer it hands in."""
    (folder / "attack.sh").write_text(
        f"#!/bin/sh\n{sys.executable} - {pid} {path} {left} > found <<'END'\n{ATTACK}\nEND\nitbench submit found\n"
    )
    (folder / "attack.sh").chmod(0o755)
    outcome = await agent("./attack.sh", folder).run(make_hand(isolation="auto"))
    assert outcome.submission is not None, outcome.detail
    return str(outcome.submission.notes)


async def test_nobody_takes_the_socket_that_tells_the_forge_what_to_run(make_hand, tmp_path, monkeypatch):
    """It has no name, and the process that holds its other end lets nobody in."""
    monkeypatch.setattr(early, "_prepared", [])
    with contextlib.closing(Forge.take()) as forge:
        assert list(Path(f"/proc/{forge.process.pid}/fd").iterdir())
        left = tmp_path / "left"
        assert await attack(make_hand, tmp_path, forge.process.pid, tmp_path / "none", left) == "nothing"
        assert not left.exists() and forge.process.poll() is None


async def test_who_finds_the_warm_interpreters_socket_runs_nothing(make_hand, tmp_path):
    """Neither its key can be read nor a program be run without it; for its own play it goes on."""
    private = tmp_path / "p"
    private.mkdir(mode=0o700)
    place = private / "warm"
    key = "k" * 64
    server = subprocess.Popen(
        [sys.executable, "-c", SERVE, "warm"], cwd=private, env=os.environ | {"ITBENCH_WARM_KEY": key}
    )
    try:
        while True:
            with socket.socket(socket.AF_UNIX) as connection, contextlib.suppress(OSError):
                connection.connect(str(place))
                break
            time.sleep(0.05)
        left = tmp_path / "run" / "trial" / "workspace" / "left"
        assert await attack(make_hand, tmp_path, server.pid, place, left) == "nothing"
        assert not left.exists()
        request = json.dumps({"argv": ["/dev/null"], "cwd": "/", "env": {}}).encode()
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(place))
            socket.send_fds(connection, [key.encode() + len(request).to_bytes(8, "big")], [0, 1, 2])
            connection.sendall(request)
            assert connection.recv(1) == b"\0"
    finally:
        server.kill()
        server.wait()
