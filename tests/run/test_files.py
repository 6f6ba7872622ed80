"""Files of runs and trials."""

import pytest

from itbench.core.documents.result import Evidence, Snapshot
from itbench.core.errors import UsageError
from itbench.run.files import RunFolder, canonical, slug, write_atomic


def test_evidence_comes_back_as_it_was_written(tmp_path):
    folder = RunFolder(tmp_path).trial("sre-12", "./fix.sh --fast", 1)
    evidence = Evidence(
        scenario="sre-12",
        seed=0,
        trial=1,
        times={"hand_over": 700.0},
        snapshots={"baseline": Snapshot(t=1.5, objects={"pods": [{"metadata": {"name": "a"}}]})},
        journeys={"buy": [(5.0, 10.0, 1.0, 0.1, 0.2)]},
    )
    folder.write_evidence(evidence)
    assert folder.read_evidence() == evidence


def test_damaged_evidence_is_one_clear_line(tmp_path):
    folder = RunFolder(tmp_path).trial("sre-12", "nop", 1)
    folder.write_evidence(Evidence(scenario="sre-12", seed=0, trial=1, times={}))
    (folder.path / "evidence" / "times.json").write_text("{")
    with pytest.raises(UsageError, match="no complete evidence"):
        folder.read_evidence()


def test_equal_data_is_equal_bytes_whatever_the_order_of_keys():
    assert canonical({"b": 1, "a": [1.5]}) == canonical({"a": [1.5], "b": 1})


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "state.json"
    write_atomic(target, b"old")
    with pytest.raises(TypeError):
        write_atomic(target, "not bytes")
    assert target.read_bytes() == b"old" and [entry.name for entry in tmp_path.iterdir()] == ["state.json"]


def test_agents_names_become_single_path_components():
    assert (
        slug("./fix.sh --fast") == "fix.sh-fast" and slug("///") == "agent" and slug("ciso-40@twin") == "ciso-40@twin"
    )
