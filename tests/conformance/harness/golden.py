"""Recorded answers of the real control plane, one file per topic under `golden/`, and the hand-kept list of known differences."""

import difflib
from typing import Any

import yaml

from harness.corpus import HOME, Step
from harness.execute import Answer


class _Dumper(yaml.SafeDumper):
    """Texts of several lines stay readable; no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)


def write(topic: str, answers: dict[str, Answer]) -> None:
    """Record the answers of a topic."""
    (HOME / "golden" / f"{topic}.yaml").write_text(show(answers))


def read(topic: str) -> dict[str, Answer]:
    """The recorded answers of a topic, by step; nothing where none was recorded."""
    path = HOME / "golden" / f"{topic}.yaml"
    return yaml.load(path.read_text(), yaml.CSafeLoader) if path.exists() else {}


def show(value: Any) -> str:
    """An answer as text, as golden files hold it."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=True, width=10**6, allow_unicode=True)


def known() -> dict[str, str]:
    """Reasons of the steps that are known to differ, by title."""
    path = HOME / "differences.yaml"
    return (yaml.safe_load(path.read_text()) or {}) if path.exists() else {}


def difference(step: Step, real: dict[str, Answer], ours: dict[str, Answer]) -> str:
    """Lines in which the two answers of a step differ, nothing where they agree."""
    before, after = show(real.get(step.name, "not recorded")), show(ours[step.name])
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "real", "itbench", n=1, lineterm="")
    return "\n".join(lines)
