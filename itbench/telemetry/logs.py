"""Logs as Loki shows them: the protocol that the world implements, LogQL selectors and filters, and counting over lines.

Lines are drawn only for the streams and the interval that somebody asks for.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np

from itbench.core.errors import UsageError
from itbench.telemetry.labels import NAME, Labels, Matcher, compile_regex
from itbench.telemetry.metrics import MetricStore
from itbench.telemetry.promql import QueryError, Result, Series, query_instant, query_range
from itbench.telemetry.promql.gotext import parse_duration_ns
from itbench.telemetry.promql.values import drop_name


class LogStream(Protocol):
    """The lines that one container (or unit) writes."""

    labels: Labels

    def lines(self, start: float, end: float) -> Iterator[tuple[float, str]]:
        """Lines with their world seconds in [start, end), oldest first; asking twice gives the same lines."""


class LogSource(Protocol):
    """Where log lines come from; the world implements it."""

    def streams(self, start: float, end: float) -> Sequence[LogStream]:
        """Streams that may have lines in [start, end), in a fixed order."""


@dataclass(frozen=True, slots=True)
class LineFilter:
    """One of `|=`, `!=`, `|~`, `!~` with its alternatives (`or`)."""

    op: str
    texts: tuple[str, ...]

    def accepts(self, line: str) -> bool:
        """Whether a line passes."""
        if "~" in self.op:
            found = any(compile_regex(text).search(line) for text in self.texts)
        else:
            found = any(text in line for text in self.texts)
        return found == (self.op[0] == "|")


@dataclass(frozen=True, slots=True)
class LogQuery:
    """A stream selector with line filters."""

    matchers: tuple[Matcher, ...]
    filters: tuple[LineFilter, ...] = ()

    def selects(self, labels: Labels) -> bool:
        """Whether a stream is selected."""
        known = dict(labels)
        return all(matcher.accepts(known.get(matcher.name, "")) for matcher in self.matchers)

    def accepts(self, line: str) -> bool:
        """Whether a line passes all filters."""
        return all(each.accepts(line) for each in self.filters)


_SPACE = re.compile(r"(?:\s|#[^\n]*)*")
_LABEL = re.compile(r"[A-Za-z_]\w*")
_MATCH = re.compile(r"=~|!~|!=|=")
_FILTER = re.compile(r"\|=|!=|\|~|!~")
_STRING = re.compile(r'"((?:\\.|[^"\\])*)"|`([^`]*)`')
_RANGE = re.compile(r"\[\s*([0-9a-z.]+)\s*\]")


class _Scanner:
    """Reads LogQL from left to right."""

    def __init__(self, text: str) -> None:
        self.text, self.place = text, 0

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The next token if it matches."""
        space = _SPACE.match(self.text, self.place)
        start = space.end() if space else self.place
        match = pattern.match(self.text, start)
        if match:
            self.place = match.end()
        return match

    def need(self, pattern: re.Pattern[str], expecting: str) -> re.Match[str]:
        """The next token, which must match."""
        match = self.take(pattern)
        if match is None:
            raise self.error(expecting)
        return match

    def error(self, expecting: str) -> QueryError:
        """What stands at the present place, and what should."""
        space = _SPACE.match(self.text, self.place)
        place = space.end() if space else self.place
        line = self.text.count("\n", 0, place) + 1
        column = place - self.text.rfind("\n", 0, place)
        seen = self.text[place : place + 10] or "$end"
        problem = f"parse error at line {line}, col {column}: syntax error: unexpected {seen}, expecting {expecting}"
        return QueryError(problem, "bad_data")

    def string(self) -> str:
        """A quoted or raw string."""
        match = self.need(_STRING, "STRING")
        if match[2] is not None:
            return match[2]
        plain = {"n": "\n", "t": "\t", "r": "\r"}
        return re.sub(r"\\(.)", lambda found: plain.get(found[1], found[1]), match[1], flags=re.DOTALL)

    def query(self) -> LogQuery:
        """A selector and the filters after it."""
        self.need(re.compile(r"\{"), "{")
        matchers: list[Matcher] = []
        while not self.take(re.compile(r"\}")):
            name = self.need(_LABEL, "IDENTIFIER or }")[0]
            op = self.need(_MATCH, "one of = != =~ !~")[0]
            try:
                matchers.append(Matcher(name, op, self.string()))
            except UsageError as error:
                raise QueryError(str(error), "bad_data") from error
            if not self.take(re.compile(",")) and self.text[self.place :].lstrip()[:1] != "}":
                raise self.error("} or ,")
        if all(matcher.accepts("") for matcher in matchers):
            problem = (
                "queries require at least one regexp or equality matcher that does not have an empty-compatible value."
            )
            hint = 'For instance, app=~".*" does not meet this requirement, but app=~".+" will'
            raise QueryError(f"parse error : {problem} {hint}", "bad_data")
        return LogQuery(tuple(matchers), tuple(self._filters()))

    def _filters(self) -> Iterator[LineFilter]:
        while found := self.take(_FILTER):
            texts = [self.string()]
            while self.take(re.compile(r"or\b")):
                texts.append(self.string())
            if "~" in found[0]:
                for text in texts:
                    try:
                        compile_regex(text)
                    except UsageError as error:
                        raise QueryError(str(error), "bad_data") from error
            yield LineFilter(found[0], tuple(texts))


def parse_logs(text: str) -> LogQuery:
    """A log query: selector and line filters.

    Raises:
        QueryError: with the place and what was expected.
    """
    scanner = _Scanner(text)
    query = scanner.query()
    if scanner.text[scanner.place :].strip():
        raise scanner.error("a line filter (|= != |~ !~) or the end; parsers and label filters are not served")
    return query


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a stream; `t` in world seconds."""

    t: float
    labels: Labels
    text: str


FIRST_PIECE_S = 60.0
"""How far the search for the newest lines looks back at first; each further piece is twice as long."""


def find_lines(
    source: LogSource, query: LogQuery, start: float, end: float, limit: int, direction: Literal["forward", "backward"]
) -> list[Line]:
    """The first (`forward`) or last (`backward`) lines in [start, end) that match, in that order."""
    found: list[Line] = []
    backward = direction == "backward"
    low, high, width = start, end, FIRST_PIECE_S
    while low < high and len(found) < limit:
        piece = (max(low, high - width), high) if backward else (low, min(high, low + width))
        lines = [line for stream in _selected(source, query, *piece) for line in _lines(stream, query, *piece)]
        lines.sort(key=lambda line: -line.t if backward else line.t)
        found.extend(lines)
        low, high = (low, piece[0]) if backward else (piece[1], high)
        width *= 2
    return found[:limit]


def _selected(source: LogSource, query: LogQuery, start: float, end: float) -> list[LogStream]:
    return [stream for stream in source.streams(start, end) if query.selects(stream.labels)]


def _lines(stream: LogStream, query: LogQuery, start: float, end: float) -> Iterator[Line]:
    return (Line(t, stream.labels, text) for t, text in stream.lines(start, end) if query.accepts(text))


_COUNTED = re.compile(r"\b(count_over_time|rate|bytes_over_time|bytes_rate)\s*\(")


@dataclass(frozen=True, slots=True)
class _Counted:
    """One range aggregation over log lines inside of a metric query."""

    query: LogQuery
    range_s: float
    of_bytes: bool


def _seconds(text: str) -> float:
    try:
        return parse_duration_ns(text) / 1e9
    except ValueError:
        return 0.0


def is_metric_query(text: str) -> bool:
    """Whether a query counts lines instead of showing them; what begins with a selector shows them, whatever its filters say."""
    return not text.lstrip().startswith("{") and _COUNTED.search(text) is not None


def _rewrite(text: str) -> tuple[str, list[_Counted]]:
    """Replace each range aggregation by PromQL over a series of counts, `log_0`, `log_1`, ..."""
    counted: list[_Counted] = []
    pieces: list[str] = []
    place = 0
    while match := _COUNTED.search(text, place):
        scanner = _Scanner(text)
        scanner.place = match.end()
        query = scanner.query()
        width = scanner.need(_RANGE, "[ with a duration")[1]
        later = list(scanner._filters())
        scanner.need(re.compile(r"\)"), ")")
        range_s = _seconds(width)
        if not range_s:
            raise QueryError(f"not a valid duration string: {width!r}", "bad_data")
        sums = f"sum_over_time(log_{len(counted)}[{round(range_s * 1000)}ms])"
        pieces += [text[place : match.start()], f"({sums} / {range_s!r})" if "rate" in match[1] else sums]
        counted.append(_Counted(replace(query, filters=query.filters + tuple(later)), range_s, "bytes" in match[1]))
        place = scanner.place
    return "".join(pieces) + text[place:], counted


def _counts(source: LogSource, counted: Sequence[_Counted], start: float, end: float) -> MetricStore:
    """Series of line counts (or bytes) per millisecond, one per stream."""
    store = MetricStore(retention_s=float("inf"))
    for number, each in enumerate(counted):
        low = start - each.range_s
        for stream in _selected(source, each.query, low, end + 0.001):
            sums: dict[int, float] = {}
            for line in _lines(stream, each.query, low, end + 0.001):
                stamp = round(line.t * 1000)
                sums[stamp] = sums.get(stamp, 0.0) + (len(line.text.encode()) if each.of_bytes else 1.0)
            if sums:
                name = f"log_{number}"
                block = store.block(f"{name}/{stream.labels}", [{**dict(stream.labels), NAME: name}])
                for stamp, value in sorted(sums.items()):
                    block.append(stamp / 1000.0, np.array([value]))
    return store


def count_lines(source: LogSource, text: str, start: float, end: float, step: float | None) -> Result:
    """A metric query: `count_over_time`, `rate`, `bytes_over_time`, `bytes_rate`, and any PromQL around them.

    Args:
        source: of the lines.
        text: LogQL.
        start, end: world seconds; an instant query has the same twice.
        step: seconds; None for an instant query.

    Raises:
        QueryError: it cannot be parsed or evaluated.
    """
    promql, counted = _rewrite(text)
    store = _counts(source, counted, start, end)
    result = query_instant(store, promql, end) if step is None else query_range(store, promql, start, end, step)
    series = tuple(Series(drop_name(each.labels), each.t, each.v) for each in result.series)
    return Result(result.kind, series, result.at, result.text)
