"""A few quick specs of the official end-to-end suite pass against `itbench kube`; ITBENCH_REAL names the suite's folder."""

import importlib.util
import os
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("e2e", ROOT / "scripts" / "e2e.py")
assert SPEC is not None and SPEC.loader is not None
e2e = sys.modules["e2e"] = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(e2e)
NAMES = (Path(__file__).parent / "quick.txt").read_text().splitlines()
REPORT = """<testsuites><testsuite>
<testcase name="[BeforeSuite]" status="passed" time="0.1"/>
<testcase name="[It] [sig-a] A should b [Conformance] [sig-a, Conformance]" status="passed" time="1.26"/>
<testcase name="[It] [sig-a] A should c [Serial] [Conformance] [sig-a, Serial, Conformance]" status="failed" time="2">
<failure message="Expected&#10;  1 to equal 2"/></testcase>
<testcase name="[It] [sig-a] A should d [sig-a]" status="skipped" time="0"/>
</testsuite></testsuites>"""


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.skipif("ITBENCH_REAL" not in os.environ, reason="ITBENCH_REAL is unset")
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="the suite runs kubectl, which is not here")
def test_quick_specs_pass(tmp_path: Path) -> None:
    """One process of the suite over all of them, and each is there and has passed."""
    with e2e.cluster(tmp_path / "kube") as kubeconfig:
        found = e2e.run(kubeconfig, e2e.exactly(NAMES), tmp_path, timeout="10m")
    assert {one.name: (one.result, one.why) for one in found} == dict.fromkeys(NAMES, ("passed", ""))


def test_a_report_gives_names_results_and_why(tmp_path: Path) -> None:
    """Specs that did not run are left out, labels are cut off."""
    file = tmp_path / "junit.xml"
    file.write_text(REPORT)
    assert e2e.outcomes(file) == [
        e2e.Outcome("[sig-a] A should b [Conformance]", "passed", 1.3),
        e2e.Outcome("[sig-a] A should c [Serial] [Conformance]", "failed", 2.0, "Expected 1 to equal 2"),
    ]


def test_the_page_says_what_is_kept() -> None:
    """The committed table is what the results say, and gives a reason for everything that does not pass."""
    assert e2e.PAGE.read_text() == e2e.page()
    assert "not looked into" not in e2e.PAGE.read_text()
    assert set(NAMES) <= {name for name, row in e2e.kept(e2e.RESULTS).items() if row["result"] == "passed"}
