"""What a scenario says against what the library holds: faults and their arguments, targets, the app, the truth.

Called by the store for every scenario that it loads; each error names the file, the line and the field.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from itbench.core.documents.base import DocumentError, Path_, line_of, nearest
from itbench.core.documents.fault import Fault
from itbench.core.documents.reading import read_data, read_text
from itbench.core.documents.scenario import Scenario, Use
from itbench.core.errors import UsageError
from itbench.library import page

PLACES = ("faults", "noise")


def manifest_targets(app: Path) -> list[str]:
    """Objects of an app and of the platform below it as `kind/namespace/name`, sorted; read by lines, as manifests are long."""
    found = set()
    platform = app.parents[1] / "roles" / "platform" / "files"
    for file in (*(app / "manifests").glob("*.yaml"), *platform.glob("*.yaml")):
        for text in read_text(file).split("\n---"):
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


def journeys(app: Path) -> tuple[str, ...]:
    """Journeys of an app document that make traffic of their own; read once per process and state of the file."""
    return _journeys(app, app.stat().st_mtime_ns) if app.is_file() else ()


@lru_cache(maxsize=64)
def _journeys(app: Path, changed_ns: int) -> tuple[str, ...]:
    data = read_data(app)
    found = data.get("journeys") if isinstance(data, dict) else None
    rows = found.items() if isinstance(found, dict) else ()
    return tuple(str(name) for name, row in rows if isinstance(row, dict) and "follows" not in row)


@dataclass(frozen=True)
class Lint:
    """The checks of one scenario.

    Args:
        scenario: the document.
        file: where it was read.
        lines: line of each field.
        fault: (id, "faults" or "noise") -> its document; raises UsageError.
        app_folder: app id -> its folder; raises UsageError.
    """

    scenario: Scenario
    file: Path
    lines: Mapping[Path_, int]
    fault: Callable[[str, str], Fault]
    app_folder: Callable[[str], Path]

    def run(self) -> None:
        """Raise DocumentError for the first thing that is wrong."""
        for path, use in self._uses():
            self._arguments(path, use, self._known(path, use))
        self._targets()
        self._journeys()
        self._page()
        truth = self.scenario.truth
        if "diagnosis" in self.scenario.task.answers and truth.verdict == "incident" and not truth.root_causes:
            expected = "at least one, as the task asks for a diagnosis of an incident"
            raise self._error(("truth", "root_causes"), "no root cause", expected=expected)

    def _uses(self) -> Iterator[tuple[Path_, Use]]:
        for place in PLACES:
            for index, use in enumerate(getattr(self.scenario, place)):
                yield (place, index), use

    def _error(
        self, path: Path_, text: str, *, seen: object = None, expected: str = "", hint: str = ""
    ) -> DocumentError:
        where = f"{self.file}:{line_of(path, self.lines)}: {'.'.join(map(str, path))}"
        return DocumentError(f"{where}: {text}", seen=seen, expected=expected, hint=hint)

    def _known(self, path: Path_, use: Use) -> Fault:
        try:
            return self.fault(use.id, str(path[0]))
        except UsageError as error:
            raise self._error((*path, "id"), str(error)) from error

    def _arguments(self, path: Path_, use: Use, document: Fault) -> None:
        for name in use.args:
            if name not in document.args:
                raise self._error(
                    (*path, "args", name),
                    f"{use.id} has no such argument",
                    seen=name,
                    expected="one of " + ", ".join(sorted(document.args)),
                    hint=nearest(name, list(document.args)),
                )
        missing = [name for name, argument in document.args.items() if argument.required and name not in use.args]
        if missing:
            raise self._error(
                (*path, "args"), f"{use.id} lacks an argument", seen=sorted(use.args), expected=", ".join(missing)
            )

    def _app(self) -> Path | None:
        app = self.scenario.environment.app
        if app is None:
            return None
        try:
            return self.app_folder(app.id)
        except UsageError as error:
            raise self._error(("environment", "app", "id"), str(error)) from error

    def _journeys(self) -> None:
        """Load is of journeys that the app has, and that make traffic of their own."""
        asked = self.scenario.environment.load.journeys
        folder = self._app()
        path = ("environment", "load", "journeys")
        if asked and folder is None:
            raise self._error(path, "load without an app", seen=next(iter(asked)), expected="environment.app")
        known = list(journeys(folder / "app.yaml")) if asked and folder is not None else []
        for name in asked:
            if name not in known:
                raise self._error(
                    (*path, name),
                    "the app has no such journey",
                    seen=name,
                    expected="one of " + ", ".join(known),
                    hint=nearest(name, known),
                )

    def _page(self) -> None:
        name = page.unknown(self.scenario)
        if name is not None:
            known = page.known(self.scenario)
            raise self._error(
                ("page",),
                "page uses an unknown value",
                seen=name,
                expected="one of " + ", ".join(known),
                hint=nearest(name, known),
            )

    def _targets(self) -> None:
        """Targets are objects of the app's manifests, of a kind that the fault can act on."""
        folder = self._app()
        if folder is None:
            return
        known = manifest_targets(folder)
        for path, use in self._uses():
            fault = self._known(path, use)
            if fault.targets and "{" not in use.target:
                self._target((*path, "target"), use, fault, known)

    def _target(self, path: Path_, use: Use, fault: Fault, known: list[str]) -> None:
        kind, kinds = use.target.partition("/")[0], fault.targets
        same = [name for name in known if name.startswith(f"{kind}/")]
        if kind not in kinds:
            raise self._error(
                path,
                f"{use.id} cannot act on its target",
                seen=use.target,
                expected=" or ".join(f"{kind}/NAMESPACE/NAME" for kind in kinds),
                hint=nearest(use.target, known),
            )
        if fault.makes and use.target in same:
            raise self._error(
                path, f"{use.id} makes its target", seen=use.target, expected="an object that the app does not have"
            )
        if same and use.target not in same and not fault.makes:
            raise self._error(
                path,
                "the app has no such object",
                seen=use.target,
                expected="an object of the app's manifests or of the platform",
                hint=nearest(use.target, same),
            )
