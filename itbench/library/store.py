"""The library: scenarios, faults, noise, apps and cards by id, loaded when asked for. Used by run, stage, evaluate, cli."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from itbench.core.documents.base import DocumentError, load, nearest, parse, read_yaml
from itbench.core.documents.fault import Fault
from itbench.core.documents.metric import MetricCard
from itbench.core.documents.reading import read_text
from itbench.core.documents.scenario import Scenario
from itbench.core.errors import UsageError
from itbench.library.find import roots
from itbench.library.lint import Lint
from itbench.library.vocabulary import Vocabulary

_ID_LINE = re.compile(r"^id:\s*['\"]?([A-Za-z0-9@-]+)", re.MULTILINE)


@dataclass(frozen=True)
class Found:
    """A scenario and where it lies."""

    scenario: Scenario
    folder: Path
    file: Path


def sort_key(identifier: str) -> tuple[Any, ...]:
    """Ids in the order people expect: sre-2 before sre-12, a row before its twin."""
    return tuple(int(part) if part.isdigit() else part for part in re.split(r"(\d+)", identifier))


class Library:
    """All library folders as one; the user's own folders win over the built-in one.

    Args:
        extra: folders of `--library`.
        vocabulary: the domains' typed checks and steps; without it entries are not validated.
    """

    def __init__(self, extra: tuple[str, ...] = (), vocabulary: Vocabulary | None = None) -> None:
        self.roots = roots(extra)
        self.vocabulary = vocabulary

    @cached_property
    def scenario_files(self) -> dict[str, Path]:
        """Scenario id -> file; the file itself is not yet validated."""
        found: dict[str, Path] = {}
        for root in reversed(self.roots):
            for file in sorted(root.glob("scenarios/*/*/*.yaml")):
                if file.name not in ("scenario.yaml", "twin.yaml"):
                    continue
                match = _ID_LINE.search(read_text(file))
                if match is None:
                    raise DocumentError(f"{file}:1: id: required field is missing")
                found[match[1]] = file
        return dict(sorted(found.items(), key=lambda item: sort_key(item[0])))

    def scenario(self, identifier: str) -> Found:
        """Load one scenario by id, or from the path of a scenario file.

        Raises:
            UsageError: no such id. DocumentError: the document is wrong.
        """
        file = self.scenario_files.get(identifier)
        if file is None and identifier.endswith((".yaml", ".yml")) and Path(identifier).is_file():
            file = Path(identifier).resolve()
        if file is None:
            known = list(self.scenario_files)
            raise UsageError(
                "no such scenario",
                seen=identifier,
                expected="an id of `itbench list`, or the path of a scenario file",
                hint=nearest(identifier, known),
            )
        data, lines = read_yaml(file)
        scenario = parse(Scenario, data, file=file, lines=lines)
        if self.vocabulary is not None:
            self.vocabulary.validate(scenario, file, lines)
        Lint(scenario, file, lines, self.fault, self.app_folder).run()
        return Found(scenario, file.parent, file)

    def scenarios(self) -> Iterator[Found]:
        """Every scenario, in order of ids."""
        for identifier in self.scenario_files:
            yield self.scenario(identifier)

    def folder(self, part: str, identifier: str, what: str) -> Path:
        """The folder `playbooks/<part>/<identifier>`; raises UsageError with the nearest id."""
        known: list[str] = []
        for root in self.roots:
            base = root / "playbooks" / part
            if re.fullmatch(r"[a-z0-9-]+", identifier) and (base / identifier).is_dir():
                return base / identifier
            known += [entry.name for entry in base.glob("*") if entry.is_dir()]
        raise UsageError(
            f"no such {what}",
            seen=identifier,
            expected="one of " + ", ".join(sorted(known)),
            hint=nearest(identifier, known),
        )

    def fault(self, identifier: str, part: str = "faults") -> Fault:
        """A fault (`part="faults"`) or a piece of noise (`part="noise"`)."""
        what = "fault" if part == "faults" else "noise"
        return load(Fault, self.folder(part, identifier, what) / "fault.yaml")

    def app_folder(self, identifier: str) -> Path:
        """The folder of an app, with `app.yaml` and `manifests/`."""
        return self.folder("apps", identifier, "app")

    def cards(self) -> dict[str, MetricCard]:
        """Metric cards by `<domain>/<name>`."""
        found: dict[str, MetricCard] = {}
        for root in reversed(self.roots):
            for file in sorted(root.glob("metrics/*/*.yaml")):
                found[f"{file.parent.name}/{file.stem}"] = load(MetricCard, file)
        return found
