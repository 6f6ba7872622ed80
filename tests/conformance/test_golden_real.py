"""The recorded answers are still those of the real control plane (needs ITBENCH_REAL, the folder of `cluster.py`)."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import corpus, execute, golden, servers

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.skipif(
        "ITBENCH_REAL" not in os.environ, reason="ITBENCH_REAL is not set: no real control plane to record from"
    ),
]


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of a real control plane."""
    with servers.real(tmp_path_factory.mktemp("real")) as kubeconfig:
        yield kubeconfig


@pytest.mark.parametrize("topic", corpus.topics())
def test_golden_is_what_the_real_control_plane_says(topic: str, real: Path, tmp_path: Path) -> None:
    """Recording again gives the same answers."""
    steps = corpus.load(topic)
    fresh = execute.answers(steps, real, tmp_path)
    recorded = golden.read(topic)
    drifted = [text for step in steps if (text := golden.difference(step, recorded, fresh))]
    assert not drifted, "\n".join(drifted)
