"""The example of docs/scenarios.md is a library that loads."""

import re
from pathlib import Path

import yaml

from itbench.library.store import Library
from itbench.run.known import vocabulary

PAGE = Path(__file__).parents[2] / "docs" / "scenarios.md"


def write(folder: Path) -> Path:
    """Write the files of the page's example; returns the library's folder."""
    for name, text in re.findall(r"`(mine/[^`]+)`:\n\n```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder / "mine"


def test_the_example_is_a_sound_library(tmp_path: Path) -> None:
    """Scenario and fault pass every check on loading; the playbooks are lists of tasks."""
    mine = write(tmp_path)
    found = Library((str(mine),), vocabulary()).scenario("sre-900")
    assert found.file.is_relative_to(mine)
    for name in ("inject.yml", "revert.yml"):
        tasks = yaml.safe_load((mine / "playbooks" / "faults" / "replicas-zero" / name).read_text())
        assert [task["name"] for task in tasks]
