"""Trajectories: ours are valid, and documents that break a rule are refused with its reason."""

from typing import Any

import pytest
from pydantic import ValidationError

from itbench.report.atif import Trajectory, dump, trajectory_of
from itbench.report.model import TrialView


def document(**changes: Any) -> dict[str, Any]:
    steps = [
        {"step_id": 1, "source": "user", "message": "fix it"},
        {
            "step_id": 2,
            "source": "agent",
            "message": "",
            "tool_calls": [{"tool_call_id": "a", "function_name": "kubectl", "arguments": {}}],
            "observation": {"results": [{"source_call_id": "a", "content": "ok"}]},
        },
    ]
    return {"schema_version": "ATIF-v1.8", "agent": {"name": "x", "version": "1"}, "steps": steps, **changes}


def step(number: int, **changes: Any) -> dict[str, Any]:
    steps = document()["steps"]
    steps[number].update(changes)
    return document(steps=steps)


def test_a_trial_becomes_a_valid_trajectory(view: TrialView) -> None:
    data = dump(trajectory_of(view, version="0.1.0", outputs=["NAME READY"], scripted=True, trajectory_id="t-1"))
    assert dump(Trajectory.model_validate(data)) == data
    assert [each["step_id"] for each in data["steps"]] == list(range(1, 13))
    first = data["steps"][1]
    assert first["timestamp"] == "2026-01-12T08:07:10Z"
    assert first["observation"]["results"][0] == {"source_call_id": "call-2", "content": "NAME READY"}
    assert data["steps"][6]["extra"] == {"ok": False}


def test_older_versions_are_read() -> None:
    assert Trajectory.model_validate(document(schema_version="ATIF-v1.3")).steps[1].tool_calls is not None


WRONG = [
    (document(schema_version="ATIF-v2.0"), "schema_version"),
    (document(steps=[]), "at least 1"),
    (document(surprise=1), "surprise"),
    (step(1, step_id=3), "without gaps"),
    (step(0, model_name="m"), "a user step has no model_name"),
    (step(0, tool_calls=[]), "a user step has no tool_calls"),
    (step(1, llm_call_count=0, metrics={"prompt_tokens": 1}), "neither metrics nor reasoning_content"),
    (step(1, observation={"results": [{"source_call_id": "b"}]}), "names no tool call of this step"),
    (step(1, message=[{"type": "image", "text": "x"}]), "has a source and nothing else"),
    (step(1, observation={"results": [{"subagent_trajectory_ref": [{"session_id": "s"}]}]}), "needs trajectory_id or"),
    (document(final_metrics={"total_steps": 5}), "notes do not say why"),
    (document(subagent_trajectories=[document()]), "need a trajectory_id each"),
]


@pytest.mark.parametrize(("data", "reason"), WRONG)
def test_documents_that_break_a_rule_are_refused(data: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        Trajectory.model_validate(data)


def test_a_different_count_of_steps_is_allowed_with_a_note() -> None:
    assert Trajectory.model_validate(document(final_metrics={"total_steps": 5}, notes="3 copied steps left out"))
