"""Bundles: a run as one file that others can check. `pack` makes one, `opened` unpacks it, `problems` says what is wrong with it.

A bundle is a zip with the run's documents, the evidence, trajectory and result of every trial, and `bundle.json`, which lists all
files with their digests. A digest shows what was changed after packing; everything else is shown by grading the evidence again,
and by what the parts of a trial say of each other. Called by `itbench bundle` and `itbench verify`.
"""

import contextlib
import hashlib
import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from pydantic import Field

from itbench import __version__
from itbench.core.documents.base import Document, load
from itbench.core.documents.result import Evidence, Lock, Result, RunDocument
from itbench.core.errors import ItbenchError, UsageError
from itbench.evaluate.grade import grade
from itbench.library.store import Library
from itbench.run.checkpoints import inputs_digest
from itbench.run.files import RunFolder, TrialFolder, canonical, write_atomic

INDEX = "bundle.json"
DOCUMENTS = ("run.yaml", "lock.json")
MAX_FILES, MAX_BYTES = 200_000, 8 << 30
STAMP = (1980, 1, 1, 0, 0, 0)
"""The time of every file in a bundle, so that equal runs give equal bundles."""
ROUNDED_S = 1e-6
"""World seconds by which a moment of a trial may be rounded."""
MOMENTS = ("staged", "fault", "hand_over", "submit", "settled", "challenged")
"""Moments of a trial in the order in which they come."""


class Entry(Document):
    """One file of a bundle."""

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    size: int = Field(ge=0)


class Bundle(Document):
    """`bundle.json`: what a bundle holds."""

    schema_: Literal["itbench/bundle/v1"] = Field("itbench/bundle/v1", alias="schema")
    version: str
    files: dict[str, Entry]


def pack(run: Path, target: Path) -> int:
    """Write a finished run as one file.

    Args:
        run: its folder.
        target: the file to write; one that is there is replaced.

    Returns:
        How many trials it holds.

    Raises:
        UsageError: the run has trials without a result.
    """
    document = load(RunDocument, run / "run.yaml")
    folder = RunFolder(run)
    expected = _expected(document, folder)
    missing = [each for each in expected if not each.finished]
    if missing:
        raise UsageError(
            "the run is not finished",
            seen=f"{len(missing)} of {len(expected)} trials without a result, such as {missing[0].path}",
            hint=f"go on with: itbench run --resume {run}",
        )
    files = [run / name for name in DOCUMENTS]
    for trial in expected:
        files += [trial.result_file, trial.path / "trajectory.json", *sorted((trial.path / "evidence").glob("*.json"))]
    contents = {str(file.relative_to(run)): file.read_bytes() for file in files if file.is_file()}
    entries = {name: Entry(sha256=hashlib.sha256(data).hexdigest(), size=len(data)) for name, data in contents.items()}
    index = Bundle(version=__version__, files=entries).model_dump(mode="json", by_alias=True)
    write_atomic(target, _zipped({INDEX: canonical(index)} | contents))
    return len(expected)


def _expected(document: RunDocument, folder: RunFolder) -> list[TrialFolder]:
    return [
        folder.trial(scenario, agent, number)
        for scenario in document.scenarios
        for agent in document.agents
        for number in range(1, document.trials + 1)
    ]


def _zipped(contents: dict[str, bytes]) -> bytes:
    with tempfile.TemporaryFile() as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in sorted(contents):
                archive.writestr(zipfile.ZipInfo(name, STAMP), contents[name], zipfile.ZIP_DEFLATED)
        file.seek(0)
        return file.read()


@dataclass(frozen=True)
class Opened:
    """An unpacked bundle: its folder, and what is wrong with the file itself."""

    run: Path
    problems: tuple[str, ...]


@contextlib.contextmanager
def opened(file: Path) -> Iterator[Opened]:
    """Unpack a bundle into a folder of its own, which goes afterwards.

    Raises:
        UsageError: the file is no bundle at all.
    """
    home = Path(tempfile.mkdtemp(prefix="itbench-bundle-"))
    try:
        with zipfile.ZipFile(file) as archive:
            yield Opened(home, tuple(_unpack(archive, home)))
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise UsageError(
            "no bundle", seen=str(file), expected="a file that `itbench bundle` wrote", hint=str(error)
        ) from error
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _unpack(archive: zipfile.ZipFile, home: Path) -> Iterator[str]:
    """Unpack what is listed and sound; says what is not."""
    infos = archive.infolist()
    if len(infos) > MAX_FILES or sum(info.file_size for info in infos) > MAX_BYTES:
        raise UsageError(
            "the bundle is too large",
            seen=f"{len(infos)} files",
            expected=f"at most {MAX_FILES} files, {MAX_BYTES} bytes",
        )
    names = [info.filename for info in infos]
    if len(set(names)) != len(names):
        yield "a file is there twice"
    try:
        index = Bundle.model_validate_json(archive.read(INDEX))
    except (KeyError, ValueError) as error:
        yield f"{INDEX} is missing or damaged: {' '.join(str(error).split())[:160]}"
        return
    for name in sorted(set(names) - index.files.keys() - {INDEX}):
        yield f"{name}: not in {INDEX}"
    for name, entry in index.files.items():
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            yield f"{name}: leaves the bundle"
        elif name not in names:
            yield f"{name}: missing"
        else:
            data = archive.read(name)
            if hashlib.sha256(data).hexdigest() != entry.sha256:
                yield f"{name}: changed after packing"
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_bytes(data)


def problems(run: Path, library: Library) -> Iterator[str]:
    """What is wrong with an unpacked run, a line each; nothing when its results are what its evidence says.

    Args:
        run: its folder.
        library: the scenarios by which it is graded again.
    """
    try:
        document, lock = load(RunDocument, run / "run.yaml"), load(Lock, run / "lock.json")
    except (ItbenchError, OSError) as error:
        yield f"the documents of the run: {error}"
        return
    yield from _inputs(document, lock, library)
    folder = RunFolder(run)
    expected = {trial.path: trial for trial in _expected(document, folder)}
    for file in sorted(run.glob("trials/*/*/*/result.json")):
        if file.parent not in expected:
            yield f"{file.parent.relative_to(run)}: a trial that the run did not ask for"
    for path, trial in expected.items():
        for text in _trial(trial, document, library):
            yield f"{path.relative_to(run)}: {text}"


def _inputs(document: RunDocument, lock: Lock, library: Library) -> Iterator[str]:
    if lock.seed != document.seed:
        yield f"lock.json speaks of seed {lock.seed}, run.yaml of {document.seed}"
    for name in document.scenarios:
        try:
            found = library.scenario(name)
        except ItbenchError as error:
            yield str(error)
            continue
        if lock.scenarios.get(name) != inputs_digest(found, library):
            yield f"{name}: the run was made with another version of the scenario or of the playbooks"


def _trial(folder: TrialFolder, document: RunDocument, library: Library) -> Iterator[str]:
    """What is wrong with one trial."""
    try:
        result, evidence = folder.read_result(), folder.read_evidence()
        steps = json.loads((folder.path / "trajectory.json").read_bytes())["steps"]
    except (ItbenchError, OSError, ValueError, KeyError) as error:
        yield f"cannot be read: {' '.join(str(error).split())[:200]}"
        return
    who = (evidence.scenario, evidence.seed, evidence.trial)
    if who != (result.scenario, result.seed, result.trial) or _place(result, folder) != folder.path:
        yield f"the evidence is that of another trial: {who[0]}, seed {who[1]}, trial {who[2]}"
        return
    if result.isolation == "none":
        yield "the agent was not isolated (--isolation none)"
    yield from _order(evidence)
    yield from _told_twice(evidence, steps)
    yield from _regraded(result, evidence, document, library)


def _place(result: Result, folder: TrialFolder) -> Path:
    return RunFolder(folder.path.parents[3]).trial(result.scenario, result.agent, result.trial).path


def _order(evidence: Evidence) -> Iterator[str]:
    """Moments come one after the other, and what the agent did lies within its time."""
    moments = [evidence.times[name] for name in MOMENTS if name in evidence.times]
    if moments != sorted(moments):
        yield "the moments of the trial are not in order"
    start, end = evidence.times.get("hand_over"), evidence.times.get("submit")
    if start is None or end is None:
        return
    start, end = start - ROUNDED_S, end + ROUNDED_S
    if any(not start <= action.t <= action.end <= end for action in evidence.actions):
        yield "a call lies outside of the agent's time"
    if any(write.t < start for write in evidence.writes):
        yield "a write of the agent comes before hand-over"
    if evidence.submission is None and any(action.tool == "submit" and action.ok for action in evidence.actions):
        yield "an answer was handed in and is not there"


def _told_twice(evidence: Evidence, steps: list[dict[str, Any]]) -> Iterator[str]:
    """The trajectory and the evidence tell of the same calls."""
    told = [(call["function_name"], call["arguments"]) for step in steps for call in step.get("tool_calls") or ()]
    if told != [(action.tool, action.arguments) for action in evidence.actions]:
        yield "trajectory and evidence tell of different calls"
    answers = [action.arguments for action in evidence.actions if action.tool == "submit" and action.ok]
    given = evidence.submission
    if (
        answers
        and given is not None
        and any(given.get(key) != value for key, value in answers[0].items() if key in given)
    ):
        yield "the answer is not the one that was handed in"


def _regraded(result: Result, evidence: Evidence, document: RunDocument, library: Library) -> Iterator[str]:
    """The evidence, graded again, gives the result."""
    try:
        scenario = library.scenario(result.scenario).scenario
        graded = grade(scenario, evidence, document.task)
        known = {"cause": evidence.cause, "family": scenario.family, "domain": scenario.domain, "title": scenario.title}
        again = Result.model_validate(result.model_dump(by_alias=True) | graded | known)
    except Exception as error:
        yield f"the evidence cannot be graded: {type(error).__name__}: {error}"
        return
    old, new = (each.model_dump(mode="json", by_alias=True) for each in (result, again))
    other = sorted(key for key in new if old.get(key) != new[key])
    if other:
        yield f"the evidence does not give this result: {', '.join(other)} differ"


def same_evidence(one: TrialFolder, other: TrialFolder) -> list[str]:
    """The parts of the evidence of two trials that differ in any byte."""
    names = sorted({file.name for trial in (one, other) for file in (trial.path / "evidence").glob("*.json")})
    return [name for name in names if _bytes(one, name) != _bytes(other, name)]


def _bytes(trial: TrialFolder, name: str) -> bytes:
    file = trial.path / "evidence" / name
    return file.read_bytes() if file.is_file() else b""
