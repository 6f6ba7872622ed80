"""Lets the tests of the control plane import their fake kubelet, and gives those that ask a real API server one."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="module")
def bare_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a real bare API server, with its kubeconfig; up for one module, which finds it fresh."""
    programs = os.environ.get("ITBENCH_REAL")
    if not programs:
        pytest.skip("ITBENCH_REAL does not name the folder with the real programs")
    folder = tmp_path_factory.mktemp("real") / "plane"
    script = [sys.executable, f"{programs}/cluster.py"]
    subprocess.run([*script, "up", str(folder), "--bare"], check=True, capture_output=True)
    try:
        yield folder
    finally:
        subprocess.run([*script, "down", str(folder)], check=True, capture_output=True)
