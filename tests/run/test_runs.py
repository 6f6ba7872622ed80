"""A run's folder: what was asked for, what it was measured with, and going on with it."""

import json
from pathlib import Path

import pytest

from itbench.core.documents.result import RunDocument
from itbench.core.errors import UsageError
from itbench.library.store import Library
from itbench.run.known import vocabulary
from itbench.run.runs import Run, create, resume, unchanged


@pytest.fixture
def library() -> Library:
    """The catalog."""
    return Library((), vocabulary())


@pytest.fixture
def run(tmp_path: Path, library: Library) -> Run:
    """A run that was just begun."""
    return create(RunDocument(scenarios=("sre-1",), agents=("nop",)), tmp_path / "run", library)


def _edit(run: Run, change: dict) -> None:
    file = run.folder.path / "lock.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))


def test_a_run_under_the_same_inputs_goes_on(run: Run, library: Library) -> None:
    again = resume(run.folder.path)
    unchanged(again, library)
    assert again.document == run.document


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"sources": "0"}, "sources"),
        ({"scenarios": {"sre-1": "0"}}, "scenarios sre-1"),
        ({"versions": {"itbench": "0.0.0"}}, "versions itbench"),
        ({"seed": 7}, "seed"),
    ],
)
def test_results_of_other_inputs_are_not_mixed_in(run: Run, library: Library, change: dict, named: str) -> None:
    _edit(run, change)
    with pytest.raises(UsageError, match=f"other inputs.*{named}"):
        unchanged(resume(run.folder.path), library)


def test_a_damaged_lock_is_said_in_one_line(run: Run, library: Library) -> None:
    (run.folder.path / "lock.json").write_text("{")
    with pytest.raises(UsageError, match="damaged"):
        unchanged(run, library)
