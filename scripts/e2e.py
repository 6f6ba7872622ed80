"""Run the official Kubernetes end-to-end suite against `itbench kube`, keep what came of it, write the table.

    python scripts/e2e.py                            # all [Conformance] specs of the six groups (two hours: many only wait)
    python scripts/e2e.py --focus 'sig-apps. Job'    # those whose name matches
    python scripts/e2e.py --names tests/e2e/quick.txt
    python scripts/e2e.py --table                    # only write docs/conformance-e2e.md from what is kept

ITBENCH_REAL names the folder of `cluster.py`, which knows where the suite's program is. Results are kept in
`tests/e2e/results.yaml`; `tests/e2e/reasons.yaml` says why a spec does not pass.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "tests" / "e2e" / "results.yaml"
REASONS = ROOT / "tests" / "e2e" / "reasons.yaml"
PAGE = ROOT / "docs" / "conformance-e2e.md"
FOCUS = r"\[sig-(api-machinery|apps|auth|scheduling|cli|instrumentation)\].*\[Conformance\]"
SERIAL = "[Serial]"
_TAGS = re.compile(r"^\[It\] (.*?)(?: \[[^\[\]]*\])?$")
_FLAGS = ("--provider=local", "--allowed-not-ready-nodes=-1", "--minStartupPods=0", "-ginkgo.no-color")


@dataclass(frozen=True)
class Outcome:
    """What came of one spec: `result` is passed, failed, timedout, interrupted or panicked."""

    name: str
    result: str
    seconds: float
    why: str = ""


def program() -> str:
    """The suite's program; raises KeyError where ITBENCH_REAL is unset."""
    tool = str(Path(os.environ["ITBENCH_REAL"]) / "cluster.py")
    found = subprocess.run([sys.executable, tool, "program", "e2e"], check=True, capture_output=True, text=True)
    return found.stdout.strip()


@contextmanager
def cluster(folder: Path, nodes: int = 3) -> Iterator[str]:
    """An empty `itbench kube` for as long as the block runs; its kubeconfig."""
    command = [sys.executable, "-m", "itbench.cli.main", "kube", "--dir", str(folder), "--nodes", str(nodes)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line.startswith("ready"):
            raise SystemExit(f"itbench kube did not start: it said {line!r}; run {' '.join(command)}")
        yield str(folder / "kubeconfig")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(120)
        if process.stdout is not None:
            process.stdout.close()


def outcomes(report: Path) -> list[Outcome]:
    """The specs that ran, from a JUnit report of the suite."""
    found = []
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        hit = _TAGS.match(case.get("name", ""))
        if hit is None or case.get("status") == "skipped":
            continue
        trouble = next((case.find(tag) for tag in ("failure", "error") if case.find(tag) is not None), None)
        why = " ".join((trouble.get("message") or "").split())[:300] if trouble is not None else ""
        found.append(Outcome(hit[1], str(case.get("status")), round(float(case.get("time", 0)), 1), why))
    return found


def run(kubeconfig: str, focus: str, folder: Path, *, timeout: str = "4h", dry: bool = False) -> list[Outcome]:
    """One process of the suite over everything that the regular expression finds.

    Args:
        folder: where its report and its log go.
        timeout: of the whole run, as Go reads it; what is left then counts as not run.
        dry: only list.
    """
    report, log = folder / "junit.xml", folder / "e2e.log"
    more = [f"-ginkgo.focus={focus}", f"-ginkgo.timeout={timeout}", f"--ginkgo.junit-report={report}"]
    command = [program(), "--kubeconfig", kubeconfig, *_FLAGS, *more, *(["-ginkgo.dry-run"] if dry else [])]
    with log.open("w") as output:
        subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False, cwd=folder)
    if not report.exists():
        raise SystemExit(f"the suite left no report; its log is {log}")
    return outcomes(report)


def exactly(names: Sequence[str]) -> str:
    """A regular expression that finds these specs."""
    return "|".join(re.escape(name) for name in names)


def run_all(kubeconfig: str, names: Sequence[str], folder: Path, jobs: int, timeout: str) -> list[Outcome]:
    """Specs that may run beside others in `jobs` processes, then the serial ones in one."""
    free = [name for name in names if SERIAL not in name]
    parts = [part for part in (free[index::jobs] for index in range(jobs)) if part]
    found: list[Outcome] = []

    def one(numbered: tuple[int, Sequence[str]]) -> list[Outcome]:
        place = folder / f"part-{numbered[0]}"
        place.mkdir()
        return run(kubeconfig, exactly(numbered[1]), place, timeout=timeout)

    with ThreadPoolExecutor(max(1, len(parts))) as pool:
        for part in pool.map(one, enumerate(parts)):
            found += part
    serial = [name for name in names if SERIAL in name]
    return found + (one((len(parts), serial)) if serial else [])


def kept(path: Path) -> dict[str, Any]:
    """A YAML mapping, empty where there is no file."""
    return yaml.safe_load(path.read_text()) or {} if path.exists() else {}


def keep(found: Sequence[Outcome]) -> None:
    """Bring outcomes into the file of results."""
    rows = kept(RESULTS)
    for one in found:
        rows[one.name] = {"result": one.result, "seconds": one.seconds} | ({"why": one.why} if one.why else {})
    RESULTS.write_text(yaml.safe_dump(rows, sort_keys=True, width=130, allow_unicode=True))


def page() -> str:
    """The table as Markdown."""
    rows, reasons = kept(RESULTS), kept(REASONS)
    good = [name for name, row in rows.items() if row["result"] == "passed"]
    groups = sorted({name.split("]")[0] + "]" for name in rows})
    lines = [
        "# The official end-to-end suite",
        "",
        "Generated by `scripts/e2e.py`: the [Conformance] specs of Kubernetes 1.34 of six groups, run in real time against",
        f"`itbench kube --nodes 3`. {len(good)} of {len(rows)} pass ({100 * len(good) / max(1, len(rows)):.1f} %).",
        "A spec that is run again alone replaces its row. kubectl is of the suite's minor version: a newer one prints less.",
        "",
        "| group | specs | pass |",
        "|---|---:|---:|",
    ]
    for group in groups:
        mine = [name for name in rows if name.startswith(group)]
        lines.append(f"| {group} | {len(mine)} | {sum(name in good for name in mine)} |")
    lines += ["", "## What does not pass", "", "| spec | result | reason |", "|---|---|---|"]
    for name, row in rows.items():
        if name not in good:
            reason = reasons.get(name) or f"not looked into: {row.get('why', '')}"
            lines.append(f"| {name} | {row['result']} | {reason.replace('|', '/')} |")
    lines += ["", "## What passes", "", "| spec | seconds |", "|---|---:|"]
    lines += [f"| {name} | {rows[name]['seconds']:g} |" for name in good]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--focus", default="", help="regular expression that names must match besides")
    parser.add_argument("--names", type=Path, help="file with one name a line, instead of the six groups")
    parser.add_argument("--jobs", type=int, default=2, help="processes of the suite at a time")
    parser.add_argument("--timeout", default="4h", help="of each process; what is left then has not run")
    parser.add_argument("--kubeconfig", help="of a server that runs already")
    parser.add_argument("--table", action="store_true", help="only write the page")
    options = parser.parse_args(arguments)
    if not options.table:
        measure(options)
    PAGE.write_text(page())
    return 0


def measure(options: argparse.Namespace) -> None:
    """Run what was asked for and keep the results."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        with cluster(folder / "kube") as own:
            kubeconfig = options.kubeconfig or own
            if options.names:
                names = options.names.read_text().splitlines()
            else:
                (folder / "list").mkdir()
                names = [one.name for one in run(kubeconfig, FOCUS, folder / "list", dry=True)]
            wanted = [name for name in names if re.search(options.focus, name)]
            found = run_all(kubeconfig, wanted, folder, options.jobs, options.timeout)
    keep(found)
    sys.stdout.write(f"{sum(one.result == 'passed' for one in found)} of {len(found)} passed\n")


if __name__ == "__main__":
    raise SystemExit(main())
