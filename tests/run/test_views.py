"""What reports are told of a trial and of a run."""

import json
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import parse

from itbench.core.documents.result import Action, Evidence, Result, Write
from itbench.run.files import RunFolder, TrialFolder
from itbench.run.views import run_view, trial_view, write_report

TIMES = {"staged": 0.0, "fault": 100.0, "symptom": 120.0, "hand_over": 150.0, "submit": 300.0, "settled": 500.0}


def leave(folder: Path, agent: str = "oracle", outcome: str = "pass", **more: Any) -> TrialFolder:
    """A finished trial on disk."""
    trial = TrialFolder(folder)
    trial.write_evidence(
        Evidence(
            scenario="sre-0",
            seed=1,
            trial=1,
            times=TIMES,
            journeys={"buy": [(10.0, 5.0, 1.0, 0.1, 0.2), (20.0, 0.0, 0.0, None, None)]},
            actions=[
                Action(t=160.0, end=165.0, tool="kubectl", arguments={"command": ["get", "pods"]}, ok=True, digest="x"),
                Action(t=170.0, end=175.0, tool="promql", arguments={"query": "up"}, ok=False, digest="y"),
            ],
            writes=[Write(t=161.0, user="oncall", verb="patch", resource="pods", namespace="shop", name="a", code=200)],
            submission={"verdict": "incident", "answer": {}, "schema": "itbench/submission/v1"},
            facts={
                "slo": {"buy": {"success": 0.99, "p99_ms": 500.0}},
                "alerts": [("Slow", 130.0, None, "journey=buy")],
                "silences": [],
            },
        )
    )
    result = {"scenario": "sre-0", "seed": 1, "trial": 1, "agent": agent, "outcome": outcome, "cause": "checks"}
    trial.write_result(Result.model_validate(result | {"metrics": {"time_to_mitigate_s": 40.0}} | more))
    (folder / "trajectory.json").write_text(json.dumps({"steps": [{"message": "Something is slow."}]}))
    return trial


def test_a_trial_is_shown_with_everything_that_was_recorded(tmp_path: Path) -> None:
    view = trial_view(leave(tmp_path))
    assert view.phases == [
        ("baseline", 0.0),
        ("fault", 100.0),
        ("symptom", 120.0),
        ("hand-over", 150.0),
        ("submit", 300.0),
        ("settle", 300.0),
        ("challenge", 500.0),
    ]
    assert view.recovered_at == 190.0
    good, silent = view.journeys["buy"]
    assert (good.ok, good.p99, silent.ok, silent.p99) == (1.0, 0.2, None, None)
    assert (view.slos["buy"].ok, view.slos["buy"].p99) == (0.99, 0.5)
    assert [(a.name, a.end) for a in view.alerts] == [("Slow", None)]
    assert [(a.tool, a.text, a.ok) for a in view.actions] == [
        ("kubectl", "get pods", True),
        ("promql", "query=up", False),
    ]
    assert (view.page, view.cause) == ("Something is slow.", "")
    assert json.loads(view.submission) == {"verdict": "incident"}
    assert [title for title, _ in view.evidence] == ["Writes of the agent"]
    assert "shop/a" in view.evidence[0][1]


def test_a_cause_other_than_the_checks_is_said_with_its_detail(tmp_path: Path) -> None:
    view = trial_view(leave(tmp_path, outcome="invalid", cause="stage_failed", detail="no such app", metrics={}))
    assert (view.cause, view.recovered_at) == ("stage_failed no such app", None)


def test_a_trial_without_trajectory_has_no_page(tmp_path: Path) -> None:
    trial = leave(tmp_path)
    (tmp_path / "trajectory.json").unlink()
    assert trial_view(trial).page == ""


def test_a_run_counts_by_agent_and_leaves_damaged_trials_out(tmp_path: Path) -> None:
    trials = tmp_path / "trials" / "sre-0"
    leave(trials / "oracle" / "1")
    leave(trials / "nop" / "1", agent="nop", outcome="fail")
    leave(trials / "nop" / "2", agent="nop", outcome="invalid", cause="unknown", trial=2)
    damaged = leave(trials / "nop" / "3", agent="nop", trial=3)
    (damaged.path / "evidence" / "journeys.json").write_text("{")
    run = RunFolder(tmp_path)
    view = run_view(run)
    headline = dict(view.headline)
    one = "1 valid trial of 1 scenario"
    assert headline["oracle: pass@1"] == f"1.000 [no interval: one family only], {one}"
    assert f"{one}; 1 invalid (as failed 0.000, bounds 0.000 to 0.500 of all trials)" in headline["nop: pass@1"]
    assert headline["nop: time to mitigate"].startswith("40 s")
    assert len(view.trials) == 3
    text = write_report(run).read_text()
    assert "Incident timeline" in text
    assert "Something is slow." in text
    suites = parse(tmp_path / "junit.xml").getroot()
    assert (len(suites), suites.get("errors")) == (3, "1")
