"""Reads OpenMetrics text with timestamps, line by line: recorded metrics become a `MetricStore`.

Used by `itbench telemetry` and by tests. Samples are what `promtool tsdb create-blocks-from openmetrics` takes: every line
has a timestamp in seconds, the file ends with `# EOF`; nothing in such a file says that a series has ended.
"""

import re
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import isnan
from typing import Any

import numpy as np

from itbench.core.clock import from_unix
from itbench.core.errors import UsageError
from itbench.telemetry.labels import NAME, Labels, freeze
from itbench.telemetry.metrics import NAN, Floats, MetricStore

KINDS = frozenset(
    ("counter", "gauge", "histogram", "gaugehistogram", "summary", "info", "stateset", "unknown", "untyped")
)
RETENTION_S = 1e10
"""Longer than any recording."""
MAX_GRIDS = 64
"""Times of so many blocks are tried for a series before it gets a block of its own."""

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_TEXT = r'"(?:[^"\\\n]|\\.)*"'
_HEAD = re.compile(rf"({_NAME})?(\{{.*\}})?")
_LABEL = re.compile(rf"\s*([a-zA-Z_][a-zA-Z0-9_]*|{_TEXT})\s*=\s*({_TEXT})\s*(,|$)")
_BARE = re.compile(rf"\s*({_TEXT})\s*(,|$)")
_SAMPLE = re.compile(rf"((?:{_NAME})?(?:\{{(?:[^\"}}]|{_TEXT})*\}})?) (\S+)(?: (\S+))?( # \{{.*)?")
_META = re.compile(rf"# (TYPE|HELP|UNIT) ({_NAME}|{_TEXT})(?: (.*))?")
_ESCAPE = re.compile(r"\\(.)")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|[+-]?inf(?:inity)?|nan", re.IGNORECASE | re.ASCII)


def _unescape(text: str) -> str:
    """The value of a quoted text."""
    inner = text[1:-1]
    return _ESCAPE.sub(lambda match: "\n" if match[1] == "n" else match[1], inner) if "\\" in inner else inner


@dataclass(slots=True)
class _Series:
    """Times in Unix milliseconds, ascending, and values."""

    labels: Labels
    t: "array[int]" = field(default_factory=lambda: array("q"))
    v: "array[float]" = field(default_factory=lambda: array("d"))


class Reader:
    """Takes in files; `store` makes what they hold queryable.

    Attributes:
        metadata: type, help and unit by metric family.
        samples: how many have been read.
    """

    def __init__(self) -> None:
        self.metadata: dict[str, dict[str, str]] = {}
        self.samples = 0
        self._series: dict[Labels, _Series] = {}

    def read(self, name: str, lines: Iterable[str]) -> None:
        """Take in one file.

        Args:
            name: shown in messages.
            lines: with or without line ends.

        Raises:
            UsageError: `name:line: what is wrong`.
        """
        heads: dict[str, _Series] = {}
        fresh: dict[Labels, _Series] = {}
        ended = False
        for number, raw in enumerate(lines, start=1):
            line = raw.rstrip("\r\n")
            try:
                if ended:
                    raise UsageError("text after # EOF", seen=line[:60])
                if line.startswith("#"):
                    ended = self._comment(line)
                elif line:
                    self._sample(line, heads, fresh)
            except UsageError as error:
                raise UsageError(f"{name}:{number}: {error}") from error
        if not ended:
            raise UsageError(f"{name}: the data does not end with # EOF", hint="is the file complete?")
        self._join(fresh)

    def _comment(self, line: str) -> bool:
        """Metadata; whether this is the end."""
        if line == "# EOF":
            return True
        match = _META.fullmatch(line)
        if match is None:
            raise UsageError("not a comment of OpenMetrics", seen=line[:60], expected="# TYPE, # HELP, # UNIT or # EOF")
        what, family, text = match[1], match[2], match[3] or ""
        family = _unescape(family) if family.startswith('"') else family
        if what == "TYPE" and text not in KINDS:
            raise UsageError(f"unknown type of {family}", seen=text, expected=", ".join(sorted(KINDS)))
        entry = self.metadata.setdefault(family, {"type": "unknown", "help": "", "unit": ""})
        entry[what.lower()] = _unescape(f'"{text}"') if what == "HELP" else text
        return False

    def _sample(self, line: str, heads: dict[str, _Series], fresh: dict[Labels, _Series]) -> None:
        parts = line.rsplit(" ", 2)
        series = heads.get(parts[0])
        if series is None or len(parts) < 3:
            match = _SAMPLE.fullmatch(line)
            if match is None:
                raise UsageError("not a sample", seen=line[:80], expected='name{label="value"} number seconds')
            if match[3] is None:
                raise UsageError("a sample without a timestamp", seen=line[:80], expected="seconds after the value")
            parts = [match[1], match[2], match[3]]
            series = heads.get(parts[0])
        if series is None:
            labels = parse_series(parts[0])
            series = heads[parts[0]] = fresh.setdefault(labels, _Series(labels))
        value, seconds = _number(parts[1], "value"), _number(parts[2], "timestamp")
        if not abs(seconds) < 1e12:
            raise UsageError("the timestamp is out of range", seen=parts[2], expected="Unix seconds")
        moment = round(seconds * 1000.0)
        if series.t and moment <= series.t[-1]:
            problem = (
                "two samples of a series at one time" if moment == series.t[-1] else "the series goes back in time"
            )
            raise UsageError(
                problem, seen=f"{parts[0][:60]} at {parts[2]}", expected=f"later than {series.t[-1] / 1000:g}"
            )
        series.t.append(moment)
        series.v.append(value)
        self.samples += 1

    def _join(self, fresh: Mapping[Labels, _Series]) -> None:
        """Add the series of a file to those of the files before; what comes later wins where times are equal."""
        for labels, series in fresh.items():
            known = self._series.get(labels)
            if known is None:
                self._series[labels] = series
                continue
            joined = dict(zip([*known.t, *series.t], [*known.v, *series.v], strict=True))
            known.t = array("q", sorted(joined))
            known.v = array("d", [joined[moment] for moment in known.t])

    def store(self) -> MetricStore:
        """The series in a store that forgets nothing."""
        blocks = [
            {"name": f"recorded/{number}", "labels": [dict(each) for each in labels], "ended": False, "t": t, "v": v}
            for number, (labels, t, v) in enumerate(_blocks(self._series.values()))
        ]
        return MetricStore.load({"retention_s": RETENTION_S, "metadata": self.metadata, "blocks": blocks})


def _number(text: str, what: str) -> float:
    if _NUMBER.fullmatch(text) is None:
        raise UsageError(f"the {what} is not a number", seen=text[:40])
    return float(text)


def parse_series(text: str) -> Labels:
    """A series as exposition formats write it: `name{label="value"}`, or `{"name", label="value"}`.

    Raises:
        UsageError: what is wrong with it.
    """
    match = _HEAD.fullmatch(text)
    if match is None or not text:
        raise UsageError("not a series", seen=text[:80], expected='name{label="value"}')
    found: dict[str, str] = {NAME: match[1]} if match[1] else {}
    rest = (match[2] or "{}")[1:-1]
    while rest.strip():
        bare = _BARE.match(rest) if NAME not in found else None
        pair = _LABEL.match(rest)
        if bare is not None and pair is None:
            found[NAME], rest = _unescape(bare[1]), rest[bare.end() :]
            continue
        if pair is None:
            raise UsageError("labels are not well formed", seen=rest[:60], expected='label="value", ...')
        name = _unescape(pair[1]) if pair[1].startswith('"') else pair[1]
        if name in found:
            raise UsageError("a label stands twice", seen=name)
        found[name], rest = _unescape(pair[2]), rest[pair.end() :]
    if not found.get(NAME):
        raise UsageError("a series without a name", seen=text[:80])
    return freeze(found)


def _blocks(series: Iterable[_Series]) -> list[tuple[list[Labels], Floats, Floats]]:
    """Series that share their times, or nearly so, side by side: labels, world seconds (n,), values (n, series)."""
    groups: dict[bytes, list[_Series]] = {}
    for each in series:
        groups.setdefault(each.t.tobytes(), []).append(each)
    grids: list[tuple[Any, list[_Series]]] = []
    for raw, members in sorted(groups.items(), key=lambda pair: -len(pair[0])):
        times = np.frombuffer(raw, dtype=np.int64)
        for grid, inside in grids[:MAX_GRIDS]:
            if 2 * len(times) >= len(grid) and np.isin(times, grid, assume_unique=True).all():
                inside.extend(members)
                break
        else:
            grids.append((times, list(members)))
    return [_columns(grid, members) for grid, members in grids]


def _columns(grid: Any, members: list[_Series]) -> tuple[list[Labels], Floats, Floats]:
    values = np.full((len(grid), len(members)), np.nan)
    for column, each in enumerate(members):
        given = np.array([NAN if isnan(value) else value for value in each.v])
        values[np.searchsorted(grid, np.array(each.t)), column] = given
    seconds = np.array([from_unix(moment / 1000.0) for moment in grid.tolist()])
    return [each.labels for each in members], seconds, values
