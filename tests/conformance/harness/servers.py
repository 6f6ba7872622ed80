"""Starts the two control planes: the embedded one for every test, the real one where ITBENCH_REAL names its folder."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def embedded(folder: Path) -> Iterator[Path]:
    """The kubeconfig of an empty `itbench kube` without nodes, for as long as the block lasts."""
    with subprocess.Popen(
        [sys.executable, "-m", "itbench.cli.main", "kube", "--dir", str(folder), "--nodes", "0"],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line.startswith("ready"):
                raise RuntimeError(f"itbench kube did not start: {line!r}")
            yield folder / "kubeconfig"
        finally:
            process.terminate()
            process.wait(timeout=60)


@contextmanager
def real(folder: Path) -> Iterator[Path]:
    """The kubeconfig of a real control plane without nodes, for as long as the block lasts."""
    program = str(Path(os.environ["ITBENCH_REAL"]) / "cluster.py")
    subprocess.run([sys.executable, program, "up", str(folder)], check=True, capture_output=True, timeout=180)
    try:
        yield folder / "kubeconfig"
    finally:
        subprocess.run([sys.executable, program, "down", str(folder)], check=True, capture_output=True, timeout=120)
