"""Bundles: what is packed can be checked, and every kind of edit is found."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from itbench.core.errors import UsageError
from itbench.library.store import Library
from itbench.run.bundles import INDEX, _zipped, opened, pack, problems
from itbench.run.known import vocabulary

LIBRARY = Library((), vocabulary())
TRIAL = "trials/sre-1/oracle/1"


def itbench(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command line, with a cache of its own."""
    environment = os.environ | {"XDG_CACHE_HOME": str(home / "cache"), "HOME": str(home)}
    command = [sys.executable, "-m", "itbench.cli.main", *words]
    return subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run of the reference repair, staged afresh, and of doing nothing, from the checkpoint."""
    home = tmp_path_factory.mktemp("bundled")
    done = itbench(home, "run", "sre-1", "--agent", "oracle", "--agent", "nop", "--out", "run")
    assert done.returncode == 0, done.stdout + done.stderr
    return home / "run"


def wrong(file: Path) -> list[str]:
    """Everything that is wrong with a bundle."""
    with opened(file) as bundle:
        return [*bundle.problems, *problems(bundle.run, LIBRARY)]


@pytest.fixture
def copy(run, tmp_path):
    """A copy of the run, to edit before it is packed anew."""
    return Path(shutil.copytree(run, tmp_path / "copy"))


def change(file: Path, **values) -> None:
    """Set keys of a JSON document."""
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


def test_a_bundle_of_a_run_is_sound_and_the_same_every_time(run, tmp_path):
    assert pack(run, tmp_path / "one.zip") == 2 == pack(run, tmp_path / "two.zip")
    assert wrong(tmp_path / "one.zip") == []
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


def test_a_run_that_is_not_finished_is_not_packed(copy, tmp_path):
    (copy / TRIAL / "result.json").unlink()
    with pytest.raises(UsageError, match="1 of 2 trials without a result"):
        pack(copy, tmp_path / "half.zip")
    assert not (tmp_path / "half.zip").exists()


def _outcome(run):
    change(run / TRIAL.replace("oracle", "nop") / "result.json", outcome="pass")


def _metric(run):
    file = run / TRIAL / "result.json"
    change(file, metrics=json.loads(file.read_text())["metrics"] | {"time_to_mitigate_s": 1.0})


def _check(run):
    file = run / TRIAL.replace("oracle", "nop") / "result.json"
    change(file, checks=[check | {"passed": True} for check in json.loads(file.read_text())["checks"]])


def _excuse(run):
    change(run / TRIAL.replace("oracle", "nop") / "result.json", outcome="invalid", cause="stage_failed")


def _isolation(run):
    change(run / TRIAL / "result.json", isolation="none")


def _family(run):
    change(run / TRIAL / "result.json", family="another")


def _other_trial(run):
    shutil.rmtree(run / TRIAL.replace("oracle", "nop") / "evidence")
    shutil.copytree(run / TRIAL / "evidence", run / TRIAL.replace("oracle", "nop") / "evidence")


def _whole_trial(run):
    shutil.rmtree(run / TRIAL.replace("oracle", "nop"))
    shutil.copytree(run / TRIAL, run / TRIAL.replace("oracle", "nop"))


def _calls(run):
    file = run / TRIAL / "evidence" / "actions.json"
    file.write_text(json.dumps(json.loads(file.read_text())[1:]))


def _answer(run):
    change(run / TRIAL / "evidence" / "submission.json", verdict="no-incident")


def _moments(run):
    change(run / TRIAL / "evidence" / "times.json", submit=0.0)


def _journeys(run):
    (run / TRIAL / "evidence" / "journeys.json").write_text("{}")


def _inputs(run):
    change(run / "lock.json", scenarios={"sre-1": "0" * 64})


def _seed(run):
    change(run / "lock.json", seed=7)


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (_outcome, "outcome differ"),
        (_metric, "metrics differ"),
        (_check, "checks differ"),
        (_excuse, "cause, outcome differ"),
        (_family, "family differ"),
        (_isolation, "the agent was not isolated"),
        (_other_trial, "trajectory and evidence tell of different calls"),
        (_whole_trial, "the evidence is that of another trial"),
        (_calls, "trajectory and evidence tell of different calls"),
        (_answer, "the answer is not the one that was handed in"),
        (_moments, "the moments of the trial are not in order"),
        (_journeys, "differ"),
        (_inputs, "another version of the scenario"),
        (_seed, "lock.json speaks of seed 7"),
    ],
)
def test_an_edited_run_that_is_packed_anew_is_found_out(copy, tmp_path, edit, text):
    edit(copy)
    pack(copy, tmp_path / "edited.zip")
    found = wrong(tmp_path / "edited.zip")
    assert any(text in line for line in found), found


def rewritten(file: Path, target: Path, **changes) -> None:
    """The same zip with other contents; None leaves a file out."""
    with zipfile.ZipFile(file) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    contents |= changes
    target.write_bytes(_zipped({name: data for name, data in contents.items() if data is not None}))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({f"{TRIAL}/result.json": b"{}"}, "changed after packing"),
        ({f"{TRIAL}/result.json": None}, "missing"),
        ({"trials/sre-1/oracle/2/result.json": b"{}"}, f"not in {INDEX}"),
        ({INDEX: None}, f"{INDEX} is missing or damaged"),
        ({INDEX: b"{}"}, f"{INDEX} is missing or damaged"),
    ],
)
def test_a_bundle_that_was_edited_is_found_out(run, tmp_path, changes, text):
    pack(run, tmp_path / "one.zip")
    rewritten(tmp_path / "one.zip", tmp_path / "edited.zip", **changes)
    found = wrong(tmp_path / "edited.zip")
    assert any(text in line for line in found), found


def test_a_file_that_would_leave_its_folder_is_not_unpacked(tmp_path):
    index = {"schema": "itbench/bundle/v1", "version": "0", "files": {"../out": {"sha256": "0" * 64, "size": 0}}}
    (tmp_path / "bad.zip").write_bytes(_zipped({INDEX: json.dumps(index).encode(), "../out": b""}))
    assert "../out: leaves the bundle" in wrong(tmp_path / "bad.zip")


def test_what_is_no_zip_is_no_bundle(tmp_path):
    (tmp_path / "no.zip").write_text("no")
    with pytest.raises(UsageError, match="no bundle"):
        wrong(tmp_path / "no.zip")


def test_trials_that_are_done_again_give_the_same_evidence_from_a_checkpoint_as_afresh(run):
    home = run.parent
    assert itbench(home, "bundle", "run", "-o", "run.zip").returncode == 0
    done = itbench(home, "verify", "run.zip", "--replay", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        done.stdout.strip() == "sound: 2 trials graded again with the same results, 2 done again with the same evidence"
    )


def test_the_verdict_on_an_edited_bundle_is_exit_code_one(copy):
    home = copy.parent
    _outcome(copy)
    assert itbench(home, "bundle", "copy").returncode == 0
    done = itbench(home, "verify", "copy.itbench.zip", "--json")
    assert done.returncode == 1 and json.loads(done.stdout)["sound"] is False
