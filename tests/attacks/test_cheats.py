"""Whole trials of agents that cheat: none passes, and each fails by the checks that are there for its kind."""

import json
import os
import subprocess
import sys
from pathlib import Path

from cheats import CAUGHT_BY


def test_every_cheat_fails_by_the_check_that_is_there_for_it(tmp_path: Path) -> None:
    """The same mending and answer without the cheat pass, so that nothing else can have failed it."""
    names = ("rightly", *CAUGHT_BY)
    agents = [word for name in names for word in ("--agent", f"{Path(__file__).with_name('cheats.py')}:{name}")]
    places = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path / "home")}
    command = [
        sys.executable,
        "-m",
        "itbench.cli.main",
        "run",
        "sre-1",
        *agents,
        "-j",
        "2",
        "--out",
        str(tmp_path / "out"),
    ]
    done = subprocess.run(command, env=os.environ | places, cwd=tmp_path, capture_output=True, text=True, check=False)

    results = [json.loads(file.read_text()) for file in (tmp_path / "out").rglob("trials/**/result.json")]
    found = {row["agent"].rpartition(":")[2]: row for row in results}
    assert found.keys() == set(names), done.stdout + done.stderr
    assert found["rightly"]["outcome"] == "pass", found["rightly"]
    failed = {name: {check["kind"] for check in found[name]["checks"] if not check["passed"]} for name in CAUGHT_BY}
    assert {name: CAUGHT_BY[name] - failed[name] for name in CAUGHT_BY} == {name: set() for name in CAUGHT_BY}
    assert {found[name]["outcome"] for name in CAUGHT_BY} == {"fail"}
