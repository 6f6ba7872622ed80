"""Worker processes: what comes of those that crash, talk nonsense, or are not wanted any more."""

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

import pytest

from itbench.run import pool
from itbench.run.jobs import Job

RESULT = 'print(\'{"result": {"outcome": "pass"}}\', flush=True)\n'


@pytest.fixture
def worker(tmp_path, monkeypatch):
    """`worker(source)` puts a program in the place of the worker; it finds its job in `job`."""

    def put(source):
        program = tmp_path / "worker"
        program.write_text(
            "#!/usr/bin/env python3\nimport json, os, signal, sys, time\njob = json.loads(sys.stdin.readline())\n"
            + source
        )
        program.chmod(0o755)
        monkeypatch.setattr(pool.sys, "executable", str(program))

    monkeypatch.setattr(pool, "GRACE_S", 3.0)
    return put


def job(agent="nop"):
    return Job(scenario="sre-900", agent=agent)


async def test_the_result_of_a_worker_is_its_last_word_whatever_else_it_prints(worker):
    worker("print('no json'); print('[1]'); print('null'); print('{\"state\": \"agent\"}')\n" + RESULT + "print('{')\n")
    seen = []
    outcome = await pool.run_job(job(), lambda job, record: seen.append(record))
    assert outcome.result == {"outcome": "pass"} and seen == [{"state": "agent"}]


async def test_a_line_longer_than_any_record_is_passed_over(worker):
    worker("sys.stdout.write('x' * (2**26 + 2**20) + '\\n')\n" + RESULT)
    assert (await pool.run_job(job())).result == {"outcome": "pass"}


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "the worker was killed by signal 9; go on with --resume"),
        ("raise ZeroDivisionError('mistake')", "the worker ended with exit code 1: ZeroDivisionError: mistake"),
        ("print('nonsense')", "the worker ended with exit code 0; go on with --resume"),
        ("print('{\"result\": 5}')", "the worker ended with exit code 0; go on with --resume"),
    ],
)
async def test_a_worker_that_leaves_no_result_is_one_line_and_environment_trouble(worker, source, text):
    worker(source + "\n")
    outcome = await pool.run_job(job())
    assert outcome.result is None and outcome.exit_code == 3
    assert outcome.error.startswith(text) and "\n" not in outcome.error


async def test_an_error_that_the_worker_tells_is_passed_on_with_its_exit_code(worker):
    worker('print(\'{"error": "no such app", "exit": 2}\')\n')
    outcome = await pool.run_job(job())
    assert (outcome.error, outcome.exit_code) == ("no such app", 2)


async def test_a_worker_that_dies_before_it_reads_its_job_is_reported(monkeypatch):
    monkeypatch.setattr(pool.sys, "executable", "/bin/false")
    assert (await pool.run_job(job())).exit_code == 3


@pytest.mark.parametrize(
    ("limit", "folder", "why"), [("0", "", "File too large"), ("unlimited", "x", "Not a directory")]
)
async def test_a_trial_whose_files_cannot_be_written_says_where_and_leaves_none(
    tmp_path, monkeypatch, limit, folder, why
):
    """A limit on the size of files stands for a full disk, a file in the way for a folder that was taken away."""
    program = tmp_path / "limited"
    program.write_text(f"#!/bin/sh\ntrap '' XFSZ\nulimit -f {limit}\nexec {sys.executable} \"$@\"\n")
    program.chmod(0o755)
    monkeypatch.setattr(pool.sys, "executable", str(program))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    place = (program if folder else tmp_path) / "trial"
    outcome = await pool.run_job(Job(scenario="ciso-3", agent="nop", folder=str(place)))
    assert (
        outcome.error
        == f"cannot keep the trial's files in {str(place)!r}: {why}; make room there and go on with --resume"
    )
    assert outcome.exit_code == 3
    assert not [file for file in (tmp_path / "cache").rglob("trials/**/*") if file.is_file()]


async def test_one_crash_does_not_touch_other_jobs(worker):
    worker("if job['agent'] == 'bad': os.kill(os.getpid(), signal.SIGKILL)\n" + RESULT)
    outcomes = [outcome async for outcome in pool.run_jobs([job("bad"), job("nop"), job("oracle")], 2)]
    assert {outcome.job.agent: bool(outcome.result) for outcome in outcomes} == {
        "bad": False,
        "nop": True,
        "oracle": True,
    }


async def test_no_more_workers_at_once_than_asked_for(worker, tmp_path):
    worker(
        f"place = {str(tmp_path)!r} + '/' + job['agent']\n"
        "open(place + '.on', 'w').close(); time.sleep(0.2)\n"
        f"most = len([name for name in os.listdir({str(tmp_path)!r}) if name.endswith('.on')])\n"
        "os.remove(place + '.on')\nprint(json.dumps({'result': {'most': most}}))\n"
    )
    outcomes = [o async for o in pool.run_jobs([job(str(number)) for number in range(5)], 2)]
    assert max(outcome.result["most"] for outcome in outcomes) <= 2


@pytest.mark.parametrize("polite", [True, False])
async def test_leaving_early_ends_workers_and_all_they_started(worker, tmp_path, polite):
    worker(
        ("" if polite else "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n")
        + f"if job['agent'] == 'quick':\n    {RESULT}    sys.exit()\n"
        + "import subprocess\nchild = subprocess.Popen(['sleep', '300'])\n"
        + f"open({str(tmp_path / 'pids')!r}, 'a').write(f'{{os.getpid()}} {{child.pid}} ')\ntime.sleep(300)\n"
    )
    async with contextlib.aclosing(pool.run_jobs([job("slow"), job("quick")], 2)) as outcomes:
        async for _ in outcomes:
            while len((tmp_path / "pids").read_text().split() if (tmp_path / "pids").exists() else []) < 2:
                await asyncio.sleep(0.05)
            break
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    for _ in range(100):  # a killed process takes a moment to be gone
        if not any(map(alive, pids)):
            break
        await asyncio.sleep(0.05)
    assert not [pid for pid in pids if alive(pid)]


def alive(pid):
    """Whether a process runs; one that waits to be collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def test_a_process_that_keeps_the_workers_pipe_open_holds_nothing_up(worker, tmp_path):
    worker(
        "if os.fork() == 0:\n    os.setsid()\n    os.close(1)\n"
        f"    open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n    time.sleep(60)\n    os._exit(0)\n"
        f"while not os.path.exists({str(tmp_path / 'pid')!r}): time.sleep(0.01)\n" + RESULT
    )
    try:
        assert (await pool.run_job(job())).result == {"outcome": "pass"}
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
