"""The audit on a real control plane: the same findings as on an embedded one, and no write by the auditor in its audit log."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from itbench.audit.access import connect, profile
from itbench.audit.assess import assess
from itbench.audit.collect import collect
from itbench.cli.main import main
from itbench.kube.remote import RemoteClient

REAL = os.environ.get("ITBENCH_REAL", "")
pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.skipif(not REAL, reason="ITBENCH_REAL is not set: no real control plane to compare with"),
]


@pytest.fixture(scope="module")
def cluster():
    """A real control plane of its own; its folder."""
    folder = Path(tempfile.mkdtemp(prefix="itbench-audit-"))
    program = [sys.executable, f"{REAL}/cluster.py"]
    try:
        subprocess.run([*program, "up", str(folder)], check=True, capture_output=True, timeout=120)
        yield folder
    finally:
        subprocess.run([*program, "down", str(folder)], check=False, capture_output=True, timeout=60)
        shutil.rmtree(folder, ignore_errors=True)


def test_findings_are_right_and_nothing_is_written(cluster, estate, expected, tmp_path, capsys):
    kubeconfig = str(cluster / "kubeconfig")
    client = RemoteClient(kubeconfig)
    for resource, obj in estate:
        client.create(resource, obj)
    client.close()
    log = cluster / "audit.jsonl"
    before = log.stat().st_size
    options = ["--format", "json,oscal,sarif,html", "--out", str(tmp_path), "--json"]
    assert main(["audit", "--profile", "cis-k8s", "--kubeconfig", kubeconfig, *options]) == 0
    told = json.loads(capsys.readouterr().out)
    states = {
        (
            v["control"]["id"],
            "/".join(filter(None, (v["subject"]["kind"], v["subject"]["namespace"], v["subject"]["name"]))),
        ): v["state"]
        for v in told["verdicts"]
    }
    assert {key: states.get(key) for key in expected} == expected
    with log.open() as lines:
        lines.seek(before)
        events = [json.loads(line) for line in lines]
    own = [event for event in events if event.get("userAgent") == "itbench"]
    assert len(own) > 10 and {event["verb"] for event in own} <= {"get", "list"}
    assert not [event for event in own if (event.get("objectRef") or {}).get("resource") == "secrets"]


def test_the_roles_of_a_real_cluster_are_taken_for_what_they_are(cluster):
    wanted = profile("cis-k8s")
    client, about = connect(str(cluster / "kubeconfig"), "")
    try:
        facts = collect(client, wanted.resources, lambda: "2026-11-30T12:00:00Z", about)
    finally:
        client.close()
    assert about["server_version"].startswith("v1.") and not facts.gaps(wanted.resources)
    bad = {(v.control.id, v.subject.text) for v in assess(wanted, facts).verdicts if v.state == "not_satisfied"}
    assert {subject for number, subject in bad if number in ("5.1.1", "5.1.2", "5.1.3", "5.1.8")} <= {
        "ClusterRole/wild"
    }
