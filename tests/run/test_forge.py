"""The process that forks workers: jobs come out as from processes of their own, and nothing of it stays."""

import asyncio
import contextlib
import os
import signal
import socket
from pathlib import Path

import pytest

from itbench.run import early, forged, pool
from itbench.run.forge import Forge
from itbench.run.jobs import Job


@pytest.fixture
def forge(monkeypatch):
    """A running forge that imports nothing beforehand."""
    monkeypatch.setattr(early, "_prepared", [])
    with contextlib.closing(Forge.take()) as made:
        yield made


def job(scenario="no-such-row"):
    return Job(scenario=scenario, agent="nop")


def alive(pid):
    """Whether a process runs; one that waits to be collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


async def test_a_forked_worker_says_what_one_of_its_own_process_says(forge):
    forked, own = await pool.run_job(job(), forge=forge), await pool.run_job(job())
    assert (forked.error, forked.exit_code) == (own.error, own.exit_code) and forked.exit_code == 2
    assert "no such scenario" in forked.error


async def test_one_forge_serves_many_jobs_at_once(forge):
    jobs = [job(f"no-such-row-{number}") for number in range(5)]
    outcomes = [outcome async for outcome in pool.run_jobs(jobs, 3, forge=forge)]
    assert {outcome.job.scenario for outcome in outcomes} == {each.scenario for each in jobs}
    assert all(outcome.job.scenario in outcome.error for outcome in outcomes)


async def test_without_a_forge_that_lives_a_job_is_a_process_of_its_own(forge):
    forge.process.kill()
    forge.process.wait()
    assert "no such scenario" in (await pool.run_job(job(), forge=forge)).error


async def test_a_killed_worker_is_told_by_its_signal_and_the_forge_goes_on(forge, tmp_path):
    with (tmp_path / "noise").open("w+b") as noise:
        worker = await forge.launch(job().model_dump_json(), noise)
        assert worker is not None
        worker.send_signal(signal.SIGKILL)
        assert await worker.wait() in (-signal.SIGKILL, 2)
        await worker.close()
    assert "no such scenario" in (await pool.run_job(job(), forge=forge)).error


STAGING = Job(scenario="sre-1", agent="nop", fresh=True)


async def test_a_forge_that_is_killed_is_named_by_its_own_signal_and_its_workers_end(forge, monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    pids = []

    def progress(job, record):
        if not pids:
            pids.extend(worker.pid for worker in forge._workers.values())
            forge.process.send_signal(signal.SIGABRT)

    outcome = await pool.run_job(STAGING, progress, forge)
    assert outcome.error == "the process that forks workers was killed by signal 6; go on with --resume"
    assert outcome.exit_code == 3
    assert len(pids) == 1 and not alive(pids[0])


async def busy(forge):
    """A forge that reads nothing for the moment."""
    forge.process.send_signal(signal.SIGSTOP)
    while Path(f"/proc/{forge.process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "T":
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("moment", [0, 1, 2, 3, 20])
async def test_a_start_that_is_cancelled_leaves_no_worker_and_no_descriptor(forge, tmp_path, moment):
    await pool.run_job(job(), forge=forge)
    await busy(forge)
    before = set(Path("/proc/self/fd").iterdir())
    with (tmp_path / "noise").open("w+b") as noise:
        starting = asyncio.create_task(forge.launch(STAGING.model_dump_json(), noise))
        for _ in range(moment):
            await asyncio.sleep(0)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
    kept = list(forge._workers.values())
    assert len(kept) == 1 or moment < 20
    forge.process.send_signal(signal.SIGCONT)
    await asyncio.sleep(0)
    assert len(list(Path("/proc/self/fd").iterdir())) == len(before)
    assert "no such scenario" in (await pool.run_job(job(), forge=forge)).error
    for worker in kept:
        assert await worker.wait() in (-signal.SIGTERM, pool.INTERRUPTED)


async def test_closing_ends_the_process(forge):
    assert alive(forge.process.pid)
    forge.close()
    assert not alive(forge.process.pid)


def test_a_prepared_forge_that_nobody_takes_is_ended(monkeypatch):
    monkeypatch.setattr(early, "_prepared", [])
    early.prepare()
    ((process, _),) = early._prepared
    early.discard()
    assert not alive(process.pid) and not early._prepared


def test_all_that_is_imported_beforehand_exists():
    for name in forged.COMMON:
        module, _, function = name.partition(":")
        found = __import__(module, fromlist=["x"])
        assert not function or callable(getattr(found, function))


@pytest.mark.parametrize("many", [False, True])
def test_what_all_need_is_imported_before_the_first_of_many_jobs(monkeypatch, many):
    imported = []
    monkeypatch.setattr(forged, "_import", imported.append)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        Forge(None, ours).expect("a.driver", many=many)
        serving = forged.Serving(theirs)
        serving._serve()
    for end in (serving._wake, serving._alarm):
        os.close(end)
    assert imported == ["a.driver", *(forged.COMMON if many else ())]
