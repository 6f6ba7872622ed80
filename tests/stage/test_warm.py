"""The warm interpreter of a play works for that play's processes and for nobody else."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from itbench.stage import ask

KEY = "k" * 64
SERVE = "import sys; from itbench.stage.warm import serve; serve(sys.argv[1], sys.argv[2].encode())"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The socket of a running server; sockets have short names only, so it lies in the working directory."""
    monkeypatch.chdir(tmp_path)
    server = subprocess.Popen([sys.executable, "-c", SERVE, "warm", KEY])
    for _ in range(600):
        with socket.socket(socket.AF_UNIX) as connection, contextlib.suppress(OSError):
            connection.connect("warm")
            break
        time.sleep(0.05)
    yield Path("warm")
    server.kill()
    server.wait()


def _write(folder: Path) -> tuple[Path, list[str]]:
    """A program that leaves a file, and how to call it."""
    program = folder / "program.py"
    program.write_text("import pathlib, sys; pathlib.Path(sys.argv[1]).write_text('done'); sys.exit(3)\n")
    return folder / "left", [str(program), str(folder / "left")]


def test_who_knows_the_key_is_served(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program runs with its arguments, and its exit code comes back."""
    left, argv = _write(tmp_path)
    monkeypatch.setenv("ITBENCH_WARM_KEY", KEY)
    assert ask.ask(str(place), argv) == 3
    assert left.read_text() == "done"


@pytest.mark.parametrize("key", ["", "k", "x" * 64, "k" * 63, "k" * 65, "k" * 63 + "x"])
def test_who_does_not_know_the_key_runs_nothing(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """A confined agent may find the socket and connect: its request is not even read."""
    left, argv = _write(tmp_path)
    monkeypatch.setenv("ITBENCH_WARM_KEY", key)
    try:
        code = ask.ask(str(place), argv)
    except OSError:  # the server hung up while the request was still being sent
        code = 1
    assert code == 1
    monkeypatch.setenv("ITBENCH_WARM_KEY", KEY)
    other = tmp_path / "other.py"
    other.write_text("")
    assert ask.ask(str(place), [str(other)]) == 0, "the server goes on"
    assert not left.exists()


def test_plays_have_keys_of_their_own() -> None:
    """Two plays, two keys; none is in this process's own environment."""
    from itbench.stage.ansible import Play, _environment

    plays = [Play(Path("p.yml"), Path("/nowhere"), Path("k"), {}) for _ in range(2)]
    keys = {_environment(play)["ITBENCH_WARM_KEY"] for play in plays}
    assert len(keys) == 2 and all(len(key) == 64 for key in keys)
    assert "ITBENCH_WARM_KEY" not in os.environ
