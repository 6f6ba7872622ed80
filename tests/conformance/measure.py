"""Records golden output from a real control plane, and reports how the embedded one agrees with it.

python tests/conformance/measure.py record [TOPIC ...] [--kubeconfig F]    # needs ITBENCH_REAL or a running one
python tests/conformance/measure.py report [--kubeconfig F]                # writes docs/conformance.md
python tests/conformance/measure.py show TOPIC ... [--kubeconfig F]        # differences of topics, as text
"""

import argparse
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from harness import corpus, execute, golden, report, servers

ALONE = ("nodes", "crds", "policies", "webhooks")
"""Topics whose objects are seen by all others: they run before, and leave nothing."""


def run(
    topics: dict[str, list[corpus.Step]], kubeconfig: Path, scratch: Path, parallel: int, *, recording: bool
) -> dict[str, dict[str, execute.Answer]]:
    """Answers of all topics, side by side."""

    def one(topic: str) -> dict[str, execute.Answer]:
        folder = scratch / topic
        folder.mkdir()
        answers = execute.answers(topics[topic], kubeconfig, folder)
        late = [name for name, answer in answers.items() if "until" in answer]
        print(f"{topic}: {len(answers)} answers", *(f"\n  never came true: {name}" for name in late), flush=True)
        if recording:
            golden.write(topic, answers)
        return answers

    first = {topic: one(topic) for topic in topics if topic in ALONE}
    with ThreadPoolExecutor(parallel) as pool:
        rest = [topic for topic in topics if topic not in ALONE]
        return first | dict(zip(rest, pool.map(one, rest)))


def main() -> int:
    """Do what the command line says. Returns 1 where a difference is not explained."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("record", "report", "show"))
    parser.add_argument("topics", nargs="*")
    parser.add_argument("--kubeconfig", type=Path)
    parser.add_argument("--parallel", type=int, default=4)
    given = parser.parse_args()
    topics = {name: corpus.load(name) for name in given.topics or corpus.topics()}
    with tempfile.TemporaryDirectory(prefix="conformance-") as name:
        scratch = Path(name)
        start = servers.real if given.verb == "record" else servers.embedded
        with nullcontext(given.kubeconfig) if given.kubeconfig else start(scratch / "server") as kubeconfig:
            answers = run(topics, kubeconfig, scratch, given.parallel, recording=given.verb == "record")
    if given.verb == "record":
        return 0
    if given.verb == "report":
        differing = report.write(topics, answers)
        print(f"{len(differing)} of {sum(map(len, topics.values()))} steps differ")
        return int(bool(set(differing) - set(golden.known())))
    for topic, steps in topics.items():
        real = golden.read(topic)
        found = [(step, golden.difference(step, real, answers[topic])) for step in steps]
        for step, text in found:
            if text:
                print(f"=== {step.title}: {step.says}\n{text}")
        print(f"{topic}: {sum(not text for _, text in found)} of {len(steps)} agree")
    return 0


if __name__ == "__main__":
    sys.exit(main())
