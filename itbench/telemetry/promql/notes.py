"""What an evaluation has to say about itself: warnings and infos, each with the place in the query that it is about."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from itbench.telemetry.promql.cursor import line_column
from itbench.telemetry.promql.gotext import quote, show_g
from itbench.telemetry.promql.tree import Node, Subquery

Level = Literal["warning", "info"]
LIMIT = 10
"""Notes of each level that an answer carries."""

_BUCKETS = 'bucket label "le" is missing or has a malformed value'
_COUNTER = "metric might not be a counter, name does not end in _total/_sum/_count/_bucket:"
_MONOTONIC = (
    "input to histogram_quantile needed to be fixed for monotonicity "
    "(see https://prometheus.io/docs/prometheus/latest/querying/functions/#histogram_quantile)"
)
_SORT = "sort is ineffective for range queries since results are always ordered by labels"
COUNTER_ENDINGS = ("_total", "_sum", "_count", "_bucket")


@dataclass(frozen=True, slots=True)
class Forced:
    """Buckets that had to be made monotonic.

    Attributes:
        low_s, high_s: Unix seconds of the first and last evaluation.
        low, high: the least and the greatest bound concerned.
        most: the greatest fall.
        count: how often.
    """

    low_s: float
    high_s: float
    low: float
    high: float
    most: float
    count: int = 1

    def join(self, other: "Forced") -> "Forced":
        """Both together."""
        return Forced(
            min(self.low_s, other.low_s), max(self.high_s, other.high_s), min(self.low, other.low),
            max(self.high, other.high), max(self.most, other.most), self.count + other.count,
        )  # fmt: skip

    def show(self) -> str:
        """As the end of the message."""
        begin, end = (
            datetime.fromtimestamp(int(each), UTC).strftime("%Y-%m-%dT%H:%M:%SZ") for each in (self.low_s, self.high_s)
        )
        bounds = f"from buckets {show_g(self.low)} to {show_g(self.high)}"
        return f", {bounds}, with a max diff of {self.most:.2g}, over {self.count} samples from {begin} to {end}"


def tally(per_step: Iterable[int]) -> int:
    """How many samples Prometheus says were put right, from how many were at each step.

    It joins the note of all steps so far with itself at every further step, so the number doubles each time (in 64 bits).
    """
    total = 0
    for count in per_step:
        total = 2 * (total + count) if total else count
    return (total + 2**63) % 2**64 - 2**63


def _place(node: Node) -> int:
    """Where Prometheus sees a node: it has forgotten that of a subquery when it evaluates what stands around it."""
    return 0 if isinstance(node, Subquery) else node.start


class Notes:
    """Collects notes; the same one at another place replaces the one before, as in Prometheus."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[Level, int, Forced | None]] = {}

    def add(self, level: Level, text: str, node: Node) -> None:
        """A note about a node."""
        self._found[text] = level, _place(node), None

    def quantile(self, values: Iterable[float], node: Node) -> None:
        """A warning for each value that is no quantile."""
        for value in values:
            if not 0 <= value <= 1:
                text = f"quantile value should be between 0 and 1, got {show_g(value)}"
                self.add("warning", text, node)

    def no_counter(self, metric: str, node: Node) -> None:
        """A rate of a metric that is not named like a counter."""
        if metric and not metric.endswith(COUNTER_ENDINGS):
            self.add("info", f"{_COUNTER} {quote(metric)}", node)

    def bad_bucket(self, bound: str, node: Node) -> None:
        """A series without a bound where a histogram is expected."""
        self.add("warning", f"{_BUCKETS} of {quote(bound)}", node)

    def trimmed(self, op: str, node: Node) -> None:
        """An operator of native histograms between numbers."""
        text = f'incompatible sample types encountered for binary operator "{op}": float {op} float'
        self.add("info", text, node)

    def sort_in_range(self, node: Node) -> None:
        """A range query whose result is not in the order asked for."""
        self.add("warning", _SORT, node)

    def forced(self, what: Forced, node: Node) -> None:
        """Buckets that had to be made monotonic."""
        known = self._found.get(_MONOTONIC)
        before = known[2] if known is not None else None
        self._found[_MONOTONIC] = "info", _place(node), what if before is None else before.join(what)

    def show(self, level: Level, query: str) -> tuple[str, ...]:
        """The texts of one level in alphabetical order, at most ten, and how many more there are."""
        texts = sorted(
            f"PromQL {each}: {text}{forced.show() if forced is not None else ''} ({line_column(query, place)})"
            for text, (each, place, forced) in self._found.items()
            if each == level
        )
        more = len(texts) - LIMIT
        return (*texts[:LIMIT], f"{more} more {level} annotations omitted") if more > 0 else tuple(texts)
