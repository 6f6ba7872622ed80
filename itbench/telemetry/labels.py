"""Label sets, matchers, and the inverted index that finds series by them; used by the metric store, PromQL and LogQL."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol, Self, TypeVar

import re2

from itbench.core.errors import UsageError

T = TypeVar("T")

Labels = tuple[tuple[str, str], ...]
"""A label set: (name, value) pairs sorted by name, without empty values."""

NAME = "__name__"
RESERVED = frozenset((NAME, "__type__", "__unit__"))
"""Labels that describe the metric; a series that is no longer that metric loses them."""


class LabelList(tuple[Labels, ...]):
    """The label sets of a vector's series. Remembers what has been worked out about them.

    The store gives equal selections the same list, so rules that are evaluated again and again match, group and rename
    their series once.
    """

    memo: dict[Hashable, Any]

    def __new__(cls, sets: Iterable[Labels] = ()) -> Self:
        """A list with an empty memory."""
        made = super().__new__(cls, sets)
        made.memo = {}
        return made

    def remember(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` gave the first time for this key."""
        if key not in self.memo:
            self.memo[key] = make()
        found: T = self.memo[key]
        return found


def freeze(labels: Mapping[str, str] | Iterable[tuple[str, str]]) -> Labels:
    """Any mapping of labels -> a hashable label set; an empty value is the same as no label."""
    return _frozen(tuple(labels.items() if isinstance(labels, Mapping) else labels))


@lru_cache(maxsize=1 << 16)
def _frozen(pairs: Labels) -> Labels:
    """Remembered, because exporters name the same series at every scrape."""
    return tuple(sorted((name, value) for name, value in pairs if value != ""))


class Match(Protocol):
    """A match of a regular expression: groups by number or name, None where a group took no part."""

    def __getitem__(self, group: int | str) -> str | None:
        """The text of a group; raises IndexError where there is none."""


class Regex(Protocol):
    """A compiled regular expression."""

    def fullmatch(self, text: str) -> Match | None:
        """A match of the whole text."""

    def search(self, text: str) -> Match | None:
        """The first match anywhere."""

    def sub(self, replacement: Callable[[Match], str], text: str) -> str:
        """The text with all matches replaced."""


_REASONS = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "bad named capture group": "invalid named capture",
}
"""What RE2 says -> what its Go form, and so Prometheus, says."""


@lru_cache(maxsize=1024)
def compile_regex(pattern: str) -> Regex:
    """An RE2 pattern; `.` matches line ends too, as in Prometheus 3.

    RE2 takes linear time: patterns come from agents, and none may hold up the world.

    Raises:
        UsageError: it is not a regular expression; the text is that of Prometheus.
    """
    options = re2.Options()
    options.dot_nl, options.log_errors, options.max_mem = True, False, 8 << 20
    try:
        compiled: Regex = re2.compile(pattern, options=options)
    except re2.error as error:
        raw = error.args[0] if error.args else ""
        reason, _, what = (raw.decode(errors="replace") if isinstance(raw, bytes) else str(raw)).partition(": ")
        if what.startswith("(?<"):
            reason, what = "bad named capture group", pattern[max(0, pattern.find(what)) :]
        raise UsageError(f"error parsing regexp: {_REASONS.get(reason, reason)}: `{what or pattern}`") from error
    return compiled


@dataclass(frozen=True, slots=True)
class Matcher:
    """`name op value`, op one of `=`, `!=`, `=~`, `!~`; regular expressions are anchored at both ends."""

    name: str
    op: str
    value: str
    _regex: Regex | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_regex", compile_regex(self.value) if "~" in self.op else None)

    def accepts(self, value: str) -> bool:
        """Whether a label with this value (empty: without the label) matches."""
        if self._regex is None:
            return (value == self.value) == (self.op == "=")
        return (self._regex.fullmatch(value) is not None) == (self.op == "=~")


class Index:
    """Series numbers by label name and value. Numbers count up from 0 in the order of `add`."""

    def __init__(self) -> None:
        self._count = 0
        self._postings: dict[str, dict[str, set[int]]] = {}

    def add(self, labels: Labels) -> int:
        """Take in one series; returns its number."""
        number = self._count
        self._count += 1
        postings = self._postings
        for name, value in labels:
            values = postings.get(name)
            if values is None:
                values = postings[name] = {}
            numbers = values.get(value)
            if numbers is None:
                numbers = values[value] = set()
            numbers.add(number)
        return number

    def match(self, matchers: Iterable[Matcher]) -> list[int]:
        """Numbers of the series that all matchers accept, ascending."""
        found: set[int] | None = None
        for matcher in sorted(matchers, key=lambda each: each.op != "="):
            matched = self._one(matcher, found)
            found = matched if found is None else found & matched
            if not found:
                return []
        return sorted(range(self._count) if found is None else found)

    def _one(self, matcher: Matcher, among: set[int] | None) -> set[int]:
        """Series that one matcher accepts (at least those of `among`)."""
        values = self._postings.get(matcher.name, {})
        if matcher.op == "=" and matcher.value:
            return values.get(matcher.value, set())
        if not matcher.accepts(""):
            accepted = [numbers for value, numbers in values.items() if matcher.accepts(value)]
            return set().union(*accepted)
        refused = [numbers for value, numbers in values.items() if not matcher.accepts(value)]
        return (set(range(self._count)) if among is None else among).difference(*refused)
