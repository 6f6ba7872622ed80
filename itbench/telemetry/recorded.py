"""Recorded telemetry: files become a store and a log source, and a clock that stands at their end; for `itbench telemetry`."""

import gzip
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any

import orjson
import yaml

from itbench.core.clock import from_unix, unix
from itbench.core.errors import UsageError
from itbench.telemetry.door import parse_time
from itbench.telemetry.labels import Labels, freeze
from itbench.telemetry.metrics import MetricStore
from itbench.telemetry.openmetrics import Reader
from itbench.telemetry.rule_files import Group, parse_groups
from itbench.telemetry.rules import RuleEngine

LOGS = (".jsonl", ".ndjson")
"""Ends of names of files with log lines; all others hold metrics."""


@dataclass(frozen=True)
class RecordedClock:
    """The clock of a recording: it stands at the end, unless `wall` makes it run.

    Attributes:
        end: world seconds where the recording ends.
        wall: Unix seconds now; then the recording is moved in time so that it ended when the clock was made.
    """

    end: float
    wall: Callable[[], float] | None = None
    _begun: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_begun", unix(self.end) if self.wall is None else round(self.wall()))

    def enter(self, *, outside: bool, free: bool) -> None:
        """Nothing moves."""

    def now(self) -> float:
        """World seconds."""
        return self.end if self.wall is None else self.from_wire(self.wall())

    def to_wire(self, world: float) -> float:
        """World seconds -> Unix seconds that a client sees."""
        return world - self.end + self._begun

    def from_wire(self, wire: float) -> float:
        """The inverse."""
        return wire - self._begun + self.end


@dataclass
class RecordedStream:
    """The lines of one label set, oldest first."""

    labels: Labels
    entries: list[tuple[float, str]] = field(default_factory=list)

    def lines(self, start: float, end: float) -> Iterator[tuple[float, str]]:
        """Lines in [start, end) world seconds."""
        return (entry for entry in self.entries if start <= entry[0] < end)


class RecordedLogs:
    """Log lines from JSON: `{"timestamp": ..., "labels": {...}, "line": "..."}` on each line of a file."""

    def __init__(self) -> None:
        self.count = 0
        self._streams: dict[Labels, RecordedStream] = {}

    def read(self, name: str, lines: Sequence[str] | IO[str]) -> None:
        """Take in one file.

        Raises:
            UsageError: `name:line: what is wrong`.
        """
        for number, raw in enumerate(lines, start=1):
            if raw.strip():
                try:
                    self._take(raw)
                except UsageError as error:
                    raise UsageError(f"{name}:{number}: {error}") from error
        for stream in self._streams.values():
            stream.entries.sort(key=lambda entry: entry[0])

    def _take(self, raw: str) -> None:
        try:
            entry = orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            raise UsageError(f"not JSON: {error}") from error
        labels = entry.get("labels") if isinstance(entry, dict) else None
        if not isinstance(labels, dict) or not isinstance(entry.get("line"), str):
            raise UsageError("not a log line", seen=raw[:60].strip(), expected='{"timestamp", "labels", "line"}')
        key = freeze({str(name): str(value) for name, value in labels.items()})
        moment = from_unix(_seconds(entry.get("timestamp")))
        self._streams.setdefault(key, RecordedStream(key)).entries.append((moment, entry["line"]))
        self.count += 1

    @property
    def newest(self) -> float:
        """World second of the last line, -inf when there is none."""
        return max((each.entries[-1][0] for each in self._streams.values()), default=float("-inf"))

    def streams(self, start: float, end: float) -> list[RecordedStream]:
        """Streams with lines in [start, end), by labels."""
        found = [each for each in self._streams.values() if any(each.lines(start, end))]
        return sorted(found, key=lambda each: each.labels)


def _seconds(value: Any) -> float:
    """Unix seconds of a timestamp: seconds, nanoseconds, or RFC 3339."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value / 1e9 if abs(value) > 1e14 else float(value)
    text = str(value)
    if text.lstrip("-").isdecimal():
        return _seconds(int(text))
    found = parse_time(text) if isinstance(value, str) else None
    if found is None:
        raise UsageError("the timestamp is no time", seen=value, expected="Unix seconds, nanoseconds, or RFC 3339")
    return found


@dataclass
class Recording:
    """What the files hold."""

    metrics: MetricStore
    samples: int
    logs: RecordedLogs

    @property
    def end(self) -> float:
        """World second of the newest sample or line; 0 for nothing at all."""
        newest = max(self.metrics.newest, self.logs.newest)
        return newest if newest > float("-inf") else 0.0


def _opened(path: Path) -> IO[str]:
    try:
        if path.suffix == ".gz":
            return TextIOWrapper(gzip.open(path), encoding="utf-8")
        return path.open(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error


def read_files(paths: Sequence[Path]) -> Recording:
    """Read recorded telemetry; names that end in .gz are unpacked.

    Args:
        paths: OpenMetrics text, or JSON lines of logs (`.jsonl`, `.ndjson`).

    Raises:
        UsageError: a file cannot be read; with the number of the line where one is at fault.
    """
    reader, logs = Reader(), RecordedLogs()
    for path in paths:
        kind = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
        with _opened(path) as lines:
            try:
                (logs if kind in LOGS else reader).read(str(path), lines)
            except UnicodeDecodeError as error:
                raise UsageError(f"{path}: not UTF-8 text", seen=error.object[error.start : error.start + 8]) from error
            except OSError as error:
                raise UsageError(f"cannot read {path}: {error}") from error
    return Recording(reader.store(), reader.samples, logs)


def read_rules(paths: Sequence[Path]) -> list[Group]:
    """The groups of rule files; raises UsageError for what is wrong with them."""
    groups: list[Group] = []
    for path in paths:
        with _opened(path) as text:
            try:
                document = yaml.safe_load(text)
            except yaml.YAMLError as error:
                raise UsageError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
        if not isinstance(document, dict):
            raise UsageError(f"{path}: not a rule file", expected="groups: [...]")
        groups += parse_groups(document, str(path))
    return groups


def evaluate_rules(groups: Sequence[Group], store: MetricStore) -> RuleEngine:
    """Rules as if they had been evaluated while the recording was made; what they give is added to the store."""
    engine = RuleEngine(groups)
    begin, end = min((block.times[0] for block in store.blocks()), default=0.0), store.newest
    interval = min((group.interval_s for group in groups), default=0.0)
    if interval > 0:
        count = int((end - begin) // interval) + 1
        for number in range(count):
            engine.evaluate(float(begin + number * interval), store)
        engine.flush()
    return engine
