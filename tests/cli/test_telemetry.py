"""`itbench telemetry` serves files until it is told to stop, says where in one line, and names what is wrong with a file."""

import json
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from itbench.cli.main import main

T0 = 1_600_000_000
PROGRAM = "import sys; from itbench.cli.main import main; sys.exit(main())"


def _metrics(folder: Path) -> Path:
    path = folder / "m.om"
    path.write_text("".join(f"up {row % 2} {T0 + 15 * row}\n" for row in range(9)) + "# EOF\n")
    return path


def test_files_are_served_until_sigterm(tmp_path: Path) -> None:
    logs = tmp_path / "l.jsonl"
    logs.write_text(f'{{"timestamp": {T0}, "labels": {{"app": "x"}}, "line": "hello"}}\n')
    argv = [sys.executable, "-c", PROGRAM, "telemetry", str(_metrics(tmp_path)), str(logs)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            match = re.fullmatch(r"ready: PROMETHEUS_URL=(\S+) LOKI_URL=(\S+)\n", process.stdout.readline())
            assert match is not None
            with urllib.request.urlopen(f"{match[1]}/api/v1/query?query=sum_over_time(up[1h])") as answer:
                value = json.loads(answer.read())["data"]["result"][0]["value"]
            with urllib.request.urlopen(f"{match[2]}/loki/api/v1/labels") as answer:
                labels = json.loads(answer.read())["data"]
            assert (value, labels) == ([T0 + 120, "4"], ["app"])
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0
            assert process.stdout.read() == ""
        finally:
            process.kill()


def test_a_wrong_file_is_one_line_and_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wrong.om"
    path.write_text("up 1 5\nup one 6\n# EOF\n")
    assert main(["telemetry", str(path)]) == 2
    assert capsys.readouterr().err == f"itbench telemetry: {path}:2: the value is not a number: 'one'\n"


def test_a_port_that_is_none_is_refused(tmp_path: Path) -> None:
    assert main(["telemetry", str(_metrics(tmp_path)), "--port", "70000"]) == 2
