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
from itbench.core.documents.scenario import Scenario
from itbench.core.errors import UsageError
from itbench.library.find import roots
from itbench.library.vocabulary import Vocabulary

_ID_LINE = re.compile(r"^id:\s*['\"]?([A-Za-z0-9@-]+)", re.MULTILINE)


def manifest_targets(app: Path) -> list[str]:
    """Objects of an app's manifests as `kind/namespace/name`, sorted; read line by line, as manifests are long."""
    found = set()
    for file in sorted((app / "manifests").glob("*.yaml")):
        for text in file.read_text(encoding="utf-8").split("\n---"):
            kind, name, namespace = (
                re.search(pattern, text, re.MULTILINE)
                for pattern in (
                    r"^kind: *(\w+)",
                    r"^(?:  name:|metadata: *\{.*?\bname:) *([\w.-]+)",
                    r"^(?:  namespace:|metadata: *\{.*?\bnamespace:) *([\w.-]+)",
                )
            )
            if kind and name:
                found.add("/".join([kind[1].lower(), *([namespace[1]] if namespace else []), name[1]]))
    return sorted(found)


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
                match = _ID_LINE.search(file.read_text(encoding="utf-8"))
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
        self._lint(scenario, file)
        return Found(scenario, file.parent, file)

    def scenarios(self) -> Iterator[Found]:
        """Every scenario, in order of ids."""
        for identifier in self.scenario_files:
            yield self.scenario(identifier)

    def _lint(self, scenario: Scenario, file: Path) -> None:
        for use, place in ((item, kind) for kind in ("faults", "noise") for item in getattr(scenario, kind)):
            self._lint_use(use.id, place, use.args, file)
        app = scenario.environment.app
        if app is not None:
            self._lint_targets(scenario, file, self._app_folder_of(app.id, file))
        truth = scenario.truth
        if "diagnosis" in scenario.task.answers and truth.verdict == "incident" and not truth.root_causes:
            raise DocumentError(
                f"{file}:1: truth: no root cause",
                expected="at least one, as the task asks for a diagnosis of an incident",
            )

    def _app_folder_of(self, identifier: str, file: Path) -> Path:
        try:
            return self.app_folder(identifier)
        except UsageError as error:
            raise DocumentError(f"{file}:1: environment.app: {error}") from error

    def _lint_targets(self, scenario: Scenario, file: Path, app: Path) -> None:
        """Targets are objects of the app's manifests, of a kind that the fault can act on."""
        known = manifest_targets(app)
        for place in ("faults", "noise"):
            for use in getattr(scenario, place):
                kinds = self.fault(use.id, place).targets
                if not kinds or "{" in use.target:
                    continue
                kind = use.target.partition("/")[0]
                if kind not in kinds:
                    raise DocumentError(
                        f"{file}:1: {place}: {use.id} cannot act on its target",
                        seen=use.target,
                        expected=" or ".join(f"{kind}/NAMESPACE/NAME" for kind in kinds),
                        hint=nearest(use.target, known),
                    )
                if use.target not in known and any(name.startswith(f"{kind}/") for name in known):
                    raise DocumentError(
                        f"{file}:1: {place}: {use.id}: {app.name} has no such target",
                        seen=use.target,
                        expected="an object of the app's manifests",
                        hint=nearest(use.target, [name for name in known if name.startswith(f"{kind}/")]),
                    )

    def _lint_use(self, identifier: str, place: str, args: dict[str, Any], file: Path) -> None:
        try:
            document = self.fault(identifier, place)
        except UsageError as error:
            raise DocumentError(f"{file}:1: {place}: {error}") from error
        for name in args:
            if name not in document.args:
                raise DocumentError(
                    f"{file}:1: {place}: {identifier} has no argument",
                    seen=name,
                    expected="one of " + ", ".join(sorted(document.args)),
                    hint=nearest(name, list(document.args)),
                )
        missing = [name for name, argument in document.args.items() if argument.required and name not in args]
        if missing:
            raise DocumentError(
                f"{file}:1: {place}: {identifier} lacks the argument", seen=missing[0], expected="a value for it"
            )

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
