"""The files of a run and its trials: written atomically, canonical where equal trials must give equal bytes."""

import contextlib
import fcntl
import json
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from itbench.core.documents.result import Evidence, Result
from itbench.core.errors import UsageError

_PARTS = ("times", "snapshots", "journeys", "actions", "writes", "submission", "cause", "facts")


def canonical(value: Any, *, compact: bool = False) -> bytes:
    """JSON with sorted keys, so that equal data is equal bytes; NaN and infinity are refused.

    Args:
        value: what to write.
        compact: on one line, ten times as fast: for what people do not read.
    """
    indent = None if compact else 1
    return json.dumps(value, sort_keys=True, indent=indent, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def write_atomic(path: Path, data: bytes) -> None:
    """Write a whole file or nothing: beside it first, then moved into place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(data)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


@contextlib.contextmanager
def locked(folder: Path, patience_s: float = 0.0) -> Iterator[None]:
    """Work on a folder that nobody else works on; the lock ends with the process, however it ends.

    Args:
        folder: exists.
        patience_s: wall seconds to wait for another process to end.

    Raises:
        UsageError: another process works on it.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        end = time.monotonic() + patience_s
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() >= end:
                    raise UsageError(
                        "another process works on this folder", seen=str(folder), hint="wait for it, or end it"
                    ) from error
                time.sleep(0.1)
        yield
    finally:
        os.close(descriptor)


def slug(text: str) -> str:
    """A text as one safe path component."""
    return re.sub(r"[^A-Za-z0-9@.]+", "-", text).strip("-.")[:60] or "agent"


@dataclass(frozen=True)
class TrialFolder:
    """Where one trial leaves its files."""

    path: Path

    @property
    def result_file(self) -> Path:
        """`result.json`; its presence means the trial is complete."""
        return self.path / "result.json"

    def write_evidence(self, evidence: Evidence) -> None:
        """One canonical file per part under `evidence/`."""
        data = evidence.model_dump(mode="json", by_alias=True)
        for part in _PARTS:
            write_atomic(self.path / "evidence" / f"{part}.json", canonical(data[part], compact=True))
        head = {key: data[key] for key in data if key not in _PARTS}
        write_atomic(self.path / "evidence" / "evidence.json", canonical(head))

    def read_evidence(self, *, snapshots: bool = True) -> Evidence:
        """The inverse of `write_evidence`, or all but the snapshots, which are most of it.

        Raises:
            UsageError: parts are missing or damaged.
        """
        folder = self.path / "evidence"
        try:
            data = json.loads((folder / "evidence.json").read_bytes())
            data |= {
                part: json.loads((folder / f"{part}.json").read_bytes())
                for part in _PARTS
                if snapshots or part != "snapshots"
            }
            return Evidence.model_validate(data)
        except (OSError, ValueError) as error:
            raise UsageError(
                "no complete evidence",
                seen=str(folder),
                expected="the evidence of a finished trial",
                hint=_brief(error),
            ) from error

    def write_result(self, result: Result) -> None:
        """`result.json`, last of all files."""
        write_atomic(self.result_file, canonical(result.model_dump(mode="json", by_alias=True)))

    @property
    def finished(self) -> bool:
        """Whether there is a result that can be read."""
        try:
            self.read_result()
        except UsageError:
            return False
        return True

    def read_result(self) -> Result:
        """The result of a finished trial; raises UsageError when there is none."""
        try:
            return Result.model_validate_json(self.result_file.read_bytes())
        except (OSError, ValueError) as error:
            raise UsageError(
                "no result", seen=str(self.result_file), expected="a finished trial", hint=_brief(error)
            ) from error


def _brief(error: Exception) -> str:
    """An error as one line; those of documents have many."""
    return " ".join(str(error).split())[:200]


@dataclass(frozen=True)
class RunFolder:
    """Where a run leaves its files."""

    path: Path

    def trial(self, scenario: str, agent: str, trial: int) -> TrialFolder:
        """The folder of one trial."""
        return TrialFolder(self.path / "trials" / slug(scenario) / slug(agent) / str(trial))

    def trials(self) -> Iterator[TrialFolder]:
        """Every trial folder that has a result, in order."""
        for file in sorted(self.path.glob("trials/*/*/*/result.json")):
            yield TrialFolder(file.parent)
