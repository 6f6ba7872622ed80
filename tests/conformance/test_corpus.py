"""Every step of the corpus is answered as the real control plane answered it, but for the listed differences."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import corpus, execute, golden, servers


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of one embedded cluster for all topics of this worker."""
    with servers.embedded(tmp_path_factory.mktemp("embedded")) as kubeconfig:
        yield kubeconfig


@pytest.mark.parametrize("topic", corpus.topics())
def test_a_topic_is_answered_as_by_the_real_control_plane(topic: str, cluster: Path, tmp_path: Path) -> None:
    """Steps agree with what was recorded; those listed as different still differ, or the list is too long."""
    steps, real, known = corpus.load(topic), golden.read(topic), golden.known()
    ours = execute.answers(steps, cluster, tmp_path)
    differing = {step.title: text for step in steps if (text := golden.difference(step, real, ours))}
    new = {title: text for title, text in differing.items() if title not in known}
    assert not new, "\n".join(f"{title}\n{text}" for title, text in new.items())
    healed = {step.title for step in steps} & set(known) - set(differing)
    assert not healed, f"agree now, so take them out of differences.yaml: {sorted(healed)}"


def test_golden_and_list_name_only_steps_of_the_corpus() -> None:
    """No recorded answer and no reason is left over from a step that is gone."""
    titles = {step.title for topic in corpus.topics() for step in corpus.load(topic)}
    recorded = {f"{topic}: {name}" for topic in corpus.topics() for name in golden.read(topic)}
    assert recorded == titles
    assert set(golden.known()) <= titles
