"""One whole trial by the command line: Ansible stands up the shop and breaks it, the reference repair mends it, it is judged."""

import json
import os
import subprocess
import sys
from pathlib import Path

EVIDENCE = {"times", "snapshots", "journeys", "actions", "writes", "submission", "cause", "facts", "evidence"}


def processes_of(mark: str) -> list[str]:
    """Command lines of other processes that have a text in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if entry.name != str(os.getpid()) and mark.encode() in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def test_the_reference_repair_of_sre_1_passes_and_leaves_evidence_a_report_and_nothing_running(tmp_path: Path) -> None:
    """Staged afresh in a cache of its own: pass by every check, all parts of the evidence, a report, no process left."""
    out = tmp_path / "out"
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    environment = os.environ | {
        "XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path / "home"), "TMPDIR": str(scratch),
    }  # fmt: skip
    command = [sys.executable, "-m", "itbench.cli.main", "run", "sre-1", "--agent", "oracle", "--out", str(out)]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

    (result_file,) = out.rglob("result.json")
    result = json.loads(result_file.read_text())
    assert (result["outcome"], result["scenario"], result["agent"]) == ("pass", "sre-1", "oracle")
    assert {"diagnosis", "slo", "alerts", "state", "collateral", "challenge"} == {c["kind"] for c in result["checks"]}
    assert all(check["passed"] for check in result["checks"])

    evidence = result_file.parent / "evidence"
    assert {file.stem for file in evidence.glob("*.json")} == EVIDENCE
    times = json.loads((evidence / "times.json").read_text())
    moments = [times[name] for name in ("fault", "symptom", "hand_over", "submit", "settled", "challenged")]
    assert moments == sorted(moments)
    writes = json.loads((evidence / "writes.json").read_text())
    assert any(write["resource"].startswith("deployments") and write["name"] == "product-catalog" for write in writes)
    buy = json.loads((evidence / "journeys.json").read_text())["browse"]
    assert any(row[2] < 0.99 for row in buy if times["fault"] < row[0] < times["hand_over"])
    assert json.loads((result_file.parent / "trajectory.json").read_text())
    assert (result_file.parent / "events.jsonl").read_text().count("\n") > 5

    reports = [file for file in out.rglob("*.html") if "sre-1" in file.read_text()]
    assert reports
    assert list((tmp_path / "cache" / "itbench" / "checkpoints").iterdir())
    assert processes_of(str(tmp_path)) == []
    assert [path for path in scratch.iterdir() if path.name.startswith("itbench-")] == []
