"""A process ends with the parent that started it, whatever number that parent has; its memory is its own."""

import ast
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import itbench
from itbench.core import processes

ROOT = Path(itbench.__file__).parent
CHILD = (
    "import sys, time; from itbench.core.processes import die_with_parent;"
    "die_with_parent(int(sys.argv[1])); print('alive', flush=True); time.sleep(60)"
)
STARTER = (
    "import subprocess, os, sys; print(subprocess.Popen([sys.executable, '-c', sys.argv[1], str(os.getpid())]).wait())"
)


def test_a_process_ends_when_its_parent_is_killed() -> None:
    """Even by kill -9; the pipe that the process holds open closes when it is gone."""
    parent = subprocess.Popen([sys.executable, "-c", STARTER, CHILD], stdout=subprocess.PIPE)
    assert parent.stdout is not None and parent.stdout.readline() == b"alive\n"
    parent.kill()
    assert parent.communicate()[0] == b""


def test_a_process_whose_parent_has_ended_already_ends_at_once() -> None:
    """The parent it was told is not the one it has."""
    stranger = subprocess.run([sys.executable, "-c", CHILD, str(os.getppid())], capture_output=True, check=False)
    assert (stranger.returncode, stranger.stdout) == (-signal.SIGKILL, b"")


@pytest.mark.parametrize(("told", "sent"), [(1, []), (2, [signal.SIGTERM])])
def test_a_parent_with_the_number_one_is_a_parent(monkeypatch: pytest.MonkeyPatch, told: int, sent: list[int]) -> None:
    """So it is where the command is the first process of a container."""
    kills: list[int] = []
    monkeypatch.setattr(processes, "prctl", lambda option, value: True)
    monkeypatch.setattr(processes.os, "getppid", lambda: 1)
    monkeypatch.setattr(processes.os, "kill", lambda pid, number: kills.append(number))
    processes.die_with_parent(told, signal.SIGTERM)
    assert kills == sent


def test_nothing_else_asks_the_kernel_or_takes_one_number_for_an_orphans() -> None:
    """One room calls `prctl` for all (Landlock's own file is loaded alone); none compares with the number 1."""
    allowed = {"core/processes.py", "agents/isolation/landlock.py"}
    callers = set()
    for file in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in ("prctl", "getppid"):
                callers.add((str(file.relative_to(ROOT)), ast.unparse(node)))
    assert {(file, call) for file, call in callers if file not in allowed} == {
        ("agents/isolation/warden.py", "processes.prctl")
    }


def test_a_hardened_process_is_not_dumpable() -> None:
    """Another process of the same user, root aside, cannot read its memory or environment."""
    code = "from itbench.core.processes import harden; import ctypes; print(harden(), ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "0"]
