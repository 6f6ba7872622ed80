"""One trial from start to result, on a fake estate."""

import asyncio
import json

import pytest

from itbench.agents.base import Outcome
from itbench.core.causes import TABLE, Cause
from itbench.core.errors import EnvironmentFault, ItbenchError, ScenarioDefect
from itbench.run import trial as module
from itbench.run.phases import Places, room

EVIDENCE = {
    "evidence.json",
    "times.json",
    "snapshots.json",
    "journeys.json",
    "actions.json",
    "writes.json",
    "submission.json",
    "cause.json",
    "facts.json",
}
STAGED = ["start", "stage", "baseline", "inject", "symptom"]
AFTER = ["settle", "challenge", "records", "close"]


class Killed(BaseException):
    """The end of the process: nothing of the runner catches it but its `finally`."""


@pytest.fixture(autouse=True)
def everything_is_worth_keeping(monkeypatch):
    """The fake estate takes no time at all."""
    monkeypatch.setattr(module, "WORTH_KEEPING_S", 0.0)


def evidence(base):
    return {file.name: file.read_bytes() for file in (base / "evidence").iterdir()}


def test_a_trial_passes_through_every_phase_and_leaves_evidence_result_and_trajectory(trial):
    result = trial.run()
    assert (result.outcome, result.cause) == ("pass", "checks")
    assert trial.log == [*STAGED, "hand_over", "submit", *AFTER]
    assert set(evidence(trial.base)) == EVIDENCE
    assert json.loads((trial.base / "evidence" / "times.json").read_bytes()) == {
        "staged": 10.0, "fault": 15.0, "hand_over": 22.0, "submit": 43.0, "settled": 73.0, "challenged": 76.0,
    }  # fmt: skip
    steps = json.loads((trial.base / "trajectory.json").read_bytes())["steps"]
    assert steps[0]["message"].startswith("Something is wrong since second 22.")
    assert steps[1]["tool_calls"][0]["function_name"] == "wait"


def test_nothing_private_stays_when_a_trial_has_ended(trial):
    trial.run()
    assert not (trial.base / "private").exists()
    with pytest.raises(Killed):
        trial.run(fail={"stage": [Killed()]}, checkpoint=False)
    assert not (trial.base / "private").exists()


def test_a_second_trial_starts_from_the_checkpoint_with_equal_evidence(trial):
    trial.run()
    first = evidence(trial.base)
    trial.log.clear()
    trial.run()
    assert trial.log == ["restore", "hand_over", "submit", *AFTER] and evidence(trial.base) == first


@pytest.mark.parametrize("damage", [b"", b"no checkpoint", None])
def test_a_damaged_checkpoint_is_dropped_and_the_estate_staged_anew(trial, damage):
    trial.run()
    first, file = evidence(trial.base), trial().checkpoint
    if damage is None:
        file.write(["not", "a", "checkpoint"])
    else:
        file.file.write_bytes(damage)
    trial.log.clear()
    assert trial.run().outcome == "pass"
    assert [step for step in trial.log if step in STAGED] == STAGED and evidence(trial.base) == first


@pytest.mark.parametrize(
    ("where", "again"),
    [
        ("settle", ["restore", "settle", "challenge", "records", "close"]),
        ("challenge", ["restore", "challenge", "records", "close"]),
        ("records", ["restore", "challenge", "records", "close"]),
    ],
)
def test_a_trial_that_died_after_the_agents_end_goes_on_from_its_last_phase(trial, where, again):
    trial.run()
    wanted, result = evidence(trial.base), (trial.base / "result.json").read_bytes()
    trajectory = (trial.base / "trajectory.json").read_bytes()
    with pytest.raises(Killed):
        trial.run(fail={where: [Killed()]})
    assert not (trial.base / "result.json").exists()
    assert {file.suffix for file in (trial.base / "private").iterdir()} == {".phase"}
    trial.log.clear()
    assert trial.run().outcome == "pass"
    assert trial.log == again and evidence(trial.base) == wanted
    assert (trial.base / "result.json").read_bytes() == result
    assert (trial.base / "trajectory.json").read_bytes() == trajectory and not (trial.base / "private").exists()


def test_what_takes_no_time_is_done_again_instead_of_kept(trial, monkeypatch):
    monkeypatch.setattr(module, "WORTH_KEEPING_S", 3600.0)
    trial.run()
    wanted = evidence(trial.base)
    with pytest.raises(Killed):
        trial.run(fail={"settle": [Killed()]})
    assert not list(trial.base.rglob("*.phase"))
    trial.log.clear()
    assert trial.run().outcome == "pass"
    assert trial.log[:2] == ["restore", "hand_over"] and evidence(trial.base) == wanted


def test_how_the_agent_ended_survives_the_crash(trial):
    ended = Outcome(None, "step_limit", "80 steps used", "landlock-7")
    with pytest.raises(Killed):
        trial.run(fail={"settle": [Killed()]}, agent=module_agent(ended))
    result = trial.run()
    assert (result.outcome, result.cause, result.detail) == ("fail", "step_limit", "80 steps used")
    assert result.isolation == "landlock-7"


def module_agent(end):
    """An agent that ends as told."""

    class Agent:
        name, scripted = "fake", True

        async def run(self, hand):
            (hand.workspace / "submission.json").write_text("{}")
            return end

    return Agent()


@pytest.mark.parametrize("where", ["stage", "symptom", "hand_over", "submit"])
def test_a_trial_that_died_before_begins_anew_and_keeps_the_old_attempt_without_secrets(trial, where):
    with pytest.raises(Killed):
        trial.run(fail={where: [Killed()]}, checkpoint=False)
    (trial.base / "private").mkdir(exist_ok=True)
    (trial.base / "private" / "kubeconfig-agent").write_text("secret")  # as after a kill that cannot be caught
    assert trial.run(checkpoint=False).outcome == "pass"
    old = trial.base / "attempts" / "1"
    marked = json.loads((old / "attempt.json").read_bytes())
    assert marked["cause"] == "runner_crash" and marked["state"] != "done"
    assert not list(trial.base.rglob("kubeconfig*")) and (old / "events.jsonl").is_file()


def test_a_damaged_phase_costs_the_attempt_and_nothing_else(trial):
    with pytest.raises(Killed):
        trial.run(fail={"settle": [Killed()]})
    (trial.base / "private" / "submit.phase").write_bytes(b"half")
    trial.log.clear()
    assert trial.run().outcome == "pass"
    assert trial.log[0] == "restore" and "hand_over" in trial.log and (trial.base / "attempts" / "1").is_dir()


def test_a_phase_that_cannot_be_restored_costs_the_attempt_and_nothing_else(trial):
    with pytest.raises(Killed):
        trial.run(fail={"settle": [Killed()]})
    assert trial.run(fail={"restore": [AttributeError("no such part")]}).outcome == "pass"


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (EnvironmentFault("task failed", cause="stage_failed"), "stage_failed"),
        (ScenarioDefect("wrong target"), "scenario_defect"),
        (ItbenchError("other"), "unknown"),
        (ZeroDivisionError("mistake"), "unknown"),
    ],
)
def test_what_goes_wrong_in_staging_is_invalid_with_its_cause_and_as_many_attempts_as_the_table_says(
    trial, error, cause
):
    attempts = TABLE[Cause(cause)].retries + 1
    result = trial.run(fail={"stage": [error] * 9})
    assert (result.outcome, result.cause) == ("invalid", cause) and str(error) in result.detail
    assert trial.log.count("start") == attempts == trial.log.count("close")
    assert len(list((trial.base / "attempts").glob("*"))) == attempts - 1 if attempts > 1 else True
    assert not (trial.base / "private").exists()


def test_a_trouble_that_passes_is_no_trouble(trial):
    result = trial.run(fail={"stage": [EnvironmentFault("once", cause="environment_lost")]})
    assert result.outcome == "pass"


def test_an_estate_lost_under_the_agent_gives_the_next_attempt_an_empty_workspace(trial):
    result = trial.run(fail={"submit": [EnvironmentFault("lost")]})
    assert result.outcome == "pass" and (trial.base / "attempts" / "1" / "workspace" / "notes").is_file()


def test_without_a_folder_nothing_is_kept_between_attempts_either(trial):
    result = trial.run(keeps=False, fail={"submit": [EnvironmentFault("lost")]})
    assert result.outcome == "pass" and not (trial.base / "attempts").exists()


@pytest.mark.parametrize(
    ("cause", "outcome"), [("no_submission", "fail"), ("wall_limit", "fail"), ("agent_crash", "fail")]
)
def test_the_agents_own_end_is_never_the_environments_fault(trial, cause, outcome):
    result = trial.run(agent=module_agent(Outcome(None, cause, "because")))
    assert (result.outcome, result.cause, result.detail) == (outcome, cause, "because")


def test_a_grader_that_raises_makes_the_trial_invalid_and_keeps_the_evidence(trial, monkeypatch):
    real = module.grade

    def broken(scenario, evidence, answers):
        if TABLE[Cause(evidence.cause)].grade:
            raise KeyError("hand_over")
        return real(scenario, evidence, answers)

    monkeypatch.setattr(module, "grade", broken)
    result = trial.run()
    assert (result.outcome, result.cause) == ("invalid", "evaluator_error") and "hand_over" in result.detail
    assert json.loads((trial.base / "evidence" / "cause.json").read_bytes()) == "checks"


def test_cancelling_a_trial_closes_the_estate_and_writes_no_result(trial):
    class Hanging:
        name, scripted = "hanging", False

        async def run(self, hand):
            await asyncio.Event().wait()

    async def cancelled():
        task = asyncio.create_task(trial(agent=Hanging()).run())
        while "hand_over" not in trial.log:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert trial.log[-1] == "close"
    assert not (trial.base / "result.json").exists() and not (trial.base / "private").exists()


def test_what_an_agent_sees_lies_in_a_room_whose_name_tells_nothing_and_comes_home_at_the_end(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    home = tmp_path / "runs" / "trials" / "sre-12" / "oracle" / "1"
    place = room(home)
    assert place == room(home) and "sre" not in str(place.relative_to(tmp_path)) and "oracle" not in str(place)
    places = Places(home, place / "private", place / "workspace")
    for folder in (home, places.private, places.workspace, place / "agent"):
        folder.mkdir(parents=True)
    (places.private / "kubeconfig-agent").write_text("secret")
    (places.workspace / "notes").write_text("mine")
    (place / "agent" / "stdout.txt").write_text("hello")
    places.clean(phases=False)
    assert not place.exists()
    assert (home / "workspace" / "notes").read_text() == "mine" and (
        home / "agent" / "stdout.txt"
    ).read_text() == "hello"
