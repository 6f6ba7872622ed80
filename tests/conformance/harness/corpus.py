"""The corpus as data: one YAML file per topic under `corpus/`, a list of steps that run one after the other in a namespace.

A step has a `name` and either `run` (a kubectl command line, with `in` as standard input), `http` ("METHOD /path", with `body`
and `type`) or `client` (a function of `clients.py`). `NS` stands for the namespace of the topic, `$BARE` for a kubeconfig without
credentials. `until` repeats the step
until its output matches, for what controllers do in their own time; `sort` sorts the lines of the output; `files` are written
before; `save` keeps values of a JSON answer for later steps; `managed` shows managed fields; `quiet` records the exit code only.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

HOME = Path(__file__).resolve().parents[1]
_KEYS = {"name", "run", "in", "http", "body", "type", "client", "until", "sort", "files", "save", "managed", "quiet"}


@dataclass(frozen=True)
class Step:
    """One request of a topic; fields as the module says."""

    name: str
    topic: str
    raw: dict[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """`topic: name`, which is unique in the corpus."""
        return f"{self.topic}: {self.name}"

    @property
    def says(self) -> str:
        """What a report shows of the step."""
        if "run" in self.raw:
            return f"kubectl {self.raw['run']}"
        return str(self.raw.get("http") or f"client {self.raw['client']}")


def topics() -> list[str]:
    """Names of the topics, sorted."""
    return sorted(path.stem for path in (HOME / "corpus").glob("*.yaml"))


def load(topic: str) -> list[Step]:
    """The steps of a topic.

    Raises:
        ValueError: a key is unknown or a name is used twice.
    """
    steps = [
        Step(raw["name"], topic, raw)
        for raw in yaml.load((HOME / "corpus" / f"{topic}.yaml").read_text(), yaml.CSafeLoader)
    ]
    for step in steps:
        if set(step.raw) - _KEYS:
            raise ValueError(f"{step.title}: unknown keys {sorted(set(step.raw) - _KEYS)}; known: {sorted(_KEYS)}")
    if len({step.name for step in steps}) != len(steps):
        names = [step.name for step in steps]
        raise ValueError(f"{topic}: names used twice: {sorted({name for name in names if names.count(name) > 1})}")
    return steps
