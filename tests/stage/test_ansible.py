"""Running playbooks: failures in one clear line, nothing left running."""

import asyncio
import contextlib
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from itbench.core.errors import EnvironmentFault
from itbench.stage.ansible import Play, run_play

HEAD = "- hosts: localhost\n  connection: local\n  gather_facts: false\n  tasks:\n"


def _play(folder: Path, text: str) -> Play:
    playbook = folder / "play.yml"
    playbook.write_text(text)
    return Play(playbook, folder / "private", folder / "kubeconfig", {"greeting": "good morning"})


async def test_a_failed_task_is_an_environment_fault_with_ansibles_own_message(tmp_path: Path) -> None:
    """The error names the task and shows its message; its cause is `stage_failed`."""
    tasks = "    - name: Bring up the shop\n      ansible.builtin.fail: {msg: 'no {{ greeting }} today'}\n"
    with pytest.raises(EnvironmentFault) as caught:
        await run_play(_play(tmp_path, HEAD + tasks))
    assert caught.value.cause == "stage_failed"
    assert "'Bring up the shop'" in str(caught.value)
    assert "no good morning today" in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_a_playbook_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    """A misspelt module is reported, although no task ever ran."""
    with pytest.raises(EnvironmentFault, match="no_such_module") as caught:
        await run_play(_play(tmp_path, HEAD + "    - no_such_module: {a: 1}\n"))
    assert caught.value.cause == "scenario_defect"


@pytest.mark.parametrize(
    "argument", ["msg: '{{ nobody }}'", "msg: '{{ greeting.tone }}'", "msg: '{{ greeting'", "mgs: hi"]
)
async def test_a_playbook_that_is_written_wrongly_is_a_defect_with_its_place(tmp_path: Path, argument: str) -> None:
    """It would fail the same way at every try; the task's file and line are named."""
    tasks = f"    - name: Say it\n      ansible.builtin.debug: {{{argument}}}\n"
    with pytest.raises(EnvironmentFault, match=r"play\.yml:5") as caught:
        await run_play(_play(tmp_path, HEAD + tasks))
    assert caught.value.cause == "scenario_defect"


async def test_a_play_that_is_killed_may_be_tried_again(tmp_path: Path) -> None:
    """Killed before any task, too; nothing of it lives on."""
    work = asyncio.ensure_future(run_play(_play(tmp_path, HEAD + "    - ansible.builtin.command: {cmd: sleep 300}\n")))
    while not (found := _children_of(os.getpid(), tmp_path)):
        await asyncio.sleep(0.02)
    os.kill(found[0], signal.SIGKILL)
    with pytest.raises(EnvironmentFault, match="ansible-playbook was killed") as caught:
        await work
    assert caught.value.cause == "stage_failed"
    assert _running(tmp_path) == []


def _children_of(parent: int, folder: Path) -> list[int]:
    """Processes that a process started for a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            ours = (process / "stat").read_text().rpartition(")")[2].split()[1] == str(parent)
            if ours and os.fsencode(folder) in (process / "environ").read_bytes():
                found.append(int(process.name))
    return found


async def test_a_play_that_never_ends_is_ended_with_all_it_started(tmp_path: Path) -> None:
    """The error says how long it had; its processes are gone."""
    tasks = "    - name: Wait for ever\n      ansible.builtin.command: {cmd: sleep 300}\n"
    with pytest.raises(EnvironmentFault, match=r"play.yml did not end; expected an end within 6 s") as caught:
        await run_play(replace(_play(tmp_path, HEAD + tasks), limit_s=6.0))
    assert caught.value.cause == "stage_failed"
    for _ in range(50):
        if not _running(tmp_path):
            break
        await asyncio.sleep(0.1)
    assert _running(tmp_path) == []


async def test_a_cancelled_play_leaves_no_process(tmp_path: Path) -> None:
    """Whoever ends a trial in the middle of a play ends the play."""
    tasks = "    - ansible.builtin.command: {cmd: sleep 300}\n"
    work = asyncio.ensure_future(run_play(_play(tmp_path, HEAD + tasks)))
    while not _running(tmp_path):
        await asyncio.sleep(0.1)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    for _ in range(50):
        if not _running(tmp_path):
            break
        await asyncio.sleep(0.1)
    assert _running(tmp_path) == []


def _running(folder: Path) -> list[str]:
    """Command lines of processes that were started in or for a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if str(folder) in line:
            found.append(line)
    return found
