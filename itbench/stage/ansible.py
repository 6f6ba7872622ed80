"""Runs a playbook with ansible-runner, in a thread, and turns a failed task into one line. The only importer of ansible_runner.

Called by the environments of `itbench.stage`. Everything Ansible writes (artifacts, temporary files, its home) lies in the
private folder of the trial; the process dies with the trial (`launch.py`).
"""

import asyncio
import contextlib
import os
import secrets
import signal
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from itbench.core.errors import EnvironmentFault
from itbench.stage.events import Events

LAUNCH = Path(__file__).with_name("launch.py")
ASK = Path(__file__).with_name("ask.py")
POLL_S = 0.2
"""Wall seconds between two looks at whether the play is to be cancelled."""
LIMIT_S = 900.0
"""Wall seconds that a play may take: a task that never ends must not hold a run for ever."""


@dataclass(frozen=True)
class Play:
    """One run of one playbook.

    Args:
        playbook: the file.
        private: folder of the trial; each play gets a folder of its own in it, readable for this user alone.
        kubeconfig: of the identity that stages.
        variables: extra vars.
        control_url, control_token: where the playbook's gate and wait tasks ask; empty when nobody answers.
        limit_s: wall seconds after which the play is ended and has failed.
    """

    playbook: Path
    private: Path
    kubeconfig: Path
    variables: dict[str, Any]
    control_url: str = ""
    control_token: str = ""
    limit_s: float = LIMIT_S


async def run_play(play: Play) -> None:
    """Run a playbook to its end; cancelling the caller ends the playbook's processes.

    Raises:
        EnvironmentFault: with the failed task and Ansible's message; cause `stage_failed`, or `scenario_defect` where the
            playbook itself is wrong.
    """
    stop = threading.Event()
    work = asyncio.ensure_future(asyncio.to_thread(_run, play, stop))
    try:
        status, events = await asyncio.shield(work)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait([work])
        raise
    if status == "timeout":
        raise EnvironmentFault(
            f"playbook {play.playbook.name} did not end",
            cause="stage_failed",
            expected=f"an end within {play.limit_s:g} s",
            hint=f"the last it said: {events.last()}",
        )
    if status != "successful":
        raise EnvironmentFault(f"playbook {play.playbook.name} failed", cause=events.cause(), hint=events.reason())


def _run(play: Play, stop: threading.Event) -> tuple[str, Events]:
    import ansible_runner  # heavy, and only staging needs it

    events = Events()
    play.private.mkdir(parents=True, exist_ok=True, mode=0o700)
    # A fresh folder: ansible-runner keeps what an earlier play left in its `env/` in preference to what it is given.
    play = replace(play, private=Path(tempfile.mkdtemp(prefix="play-", dir=play.private)))
    _prepare(play)
    try:
        return _played(ansible_runner, play, stop, events), events
    finally:
        end_all(play.private)


def end_all(folder: Path) -> None:
    """End every process that was started for a folder, whatever session it moved to: its environment names the folder.

    ansible-runner ends its own process group, but Ansible's workers, and what modules start, lead groups of their own.
    """
    mark = os.fsencode(folder)
    while True:
        found = [process for process in Path("/proc").glob("[0-9]*") if mark in _environ(process)]
        for process in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(process.name), signal.SIGKILL)
        if not found:
            return
        time.sleep(0.02)


def _environ(process: Path) -> bytes:
    """The environment a process was started with; empty for zombies and other users' processes."""
    try:
        return b"" if process.name == str(os.getpid()) else (process / "environ").read_bytes()
    except OSError:
        return b""


def _played(ansible_runner: Any, play: Play, stop: threading.Event, events: Events) -> str:
    runner = ansible_runner.run(
        private_data_dir=str(play.private),
        project_dir=str(play.playbook.parent),
        playbook=str(play.playbook),
        inventory="localhost,",
        extravars=play.variables,
        envvars=_environment(play),
        settings={"pexpect_timeout": POLL_S, "suppress_ansible_output": True, "job_timeout": play.limit_s},
        event_handler=events.take,
        cancel_callback=stop.is_set,
        quiet=True,
        only_failed_event_data=True,
    )
    events.killed = runner.rc is None
    return str(runner.status)


def _prepare(play: Play) -> None:
    for name in ("", "bin", "tmp", "home"):
        (play.private / name).mkdir(parents=True, exist_ok=True, mode=0o700)
    (play.private / "ansible.cfg").write_text("[defaults]\n")
    for name, command in (("ansible-playbook", f"-P '{LAUNCH}'"), ("python", f"-IS '{ASK}'")):
        program = play.private / "bin" / name
        program.write_text(f"#!/bin/sh\nexec '{sys.executable}' {command} \"$@\"\n")
        program.chmod(0o700)


def _environment(play: Play) -> dict[str, str]:
    home, temporary = str(play.private / "home"), str(play.private / "tmp")
    return {
        "ANSIBLE_CONFIG": str(play.private / "ansible.cfg"),
        "ANSIBLE_HOME": home,
        "ANSIBLE_LOCAL_TEMP": temporary,
        "ANSIBLE_REMOTE_TEMP": temporary,
        "ANSIBLE_PIPELINING": "1",
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_LOCALHOST_WARNING": "0",
        "ANSIBLE_DEPRECATION_WARNINGS": "0",
        "HOME": home,
        "PATH": os.pathsep.join([str(play.private / "bin"), os.environ.get("PATH", os.defpath)]),
        "PYTHONDONTWRITEBYTECODE": "",
        "TMPDIR": temporary,
        "ITBENCH_PYTHON": str(play.private / "bin" / "python"),
        "ITBENCH_WARM": str(play.private / "tmp" / "warm"),
        "ITBENCH_TRIAL_PID": str(os.getpid()),
        "ITBENCH_WARM_KEY": secrets.token_hex(32),
        "K8S_AUTH_KUBECONFIG": str(play.kubeconfig),
        "ITBENCH_CONTROL_URL": play.control_url,
        "ITBENCH_CONTROL_TOKEN": play.control_token,
        "no_proxy": "*",
    }
