"""A number with its uncertainty. Every function of this package that estimates something returns one."""

from collections.abc import Callable
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value that cannot be had without the way it was come by.

    Args:
        value: in the unit of the data; None when it is undefined.
        low: lower end of the interval, raw (it may leave the range of the data); None when undefined or one-sided upward.
        high: upper end, likewise.
        level: confidence level of the interval, 0 to 1.
        df: degrees of freedom of a t interval; None for other methods.
        method: how the interval was made, in words.
        n_units: how many independent units it rests on (families, where scenarios are clustered).
        question: what the interval is about, such as `other scenarios like these`.
        undefined_reason: why there is no value or no interval; empty when there is one.
        se: standard error, where the method has one.
        notes: what a reader has to be told beside the number.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    df: float | None = None
    method: str = ""
    n_units: int = 0
    question: str = ""
    undefined_reason: str = ""
    se: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def defined(self) -> bool:
        """Whether there is a value with an interval."""
        return self.value is not None and not self.undefined_reason

    def clipped(self, least: float = 0.0, most: float = 1.0) -> "Estimate":
        """The same with the interval cut to a range, for display only."""

        def cut(end: float | None) -> float | None:
            return None if end is None else min(max(end, least), most)

        return replace(self, low=cut(self.low), high=cut(self.high))

    def noted(self, *notes: str) -> "Estimate":
        """The same with further notes."""
        return replace(self, notes=(*self.notes, *notes))

    def as_json(self) -> dict[str, object]:
        """Plain data for programs."""
        names = ("value", "low", "high", "level", "df", "method", "n_units", "question", "undefined_reason", "se")
        return {name: getattr(self, name) for name in names} | {"notes": list(self.notes)}


def undefined(reason: str, *, value: float | None = None, n_units: int = 0, question: str = "") -> Estimate:
    """An estimate without an interval, and why; the value is kept where there is one."""
    return Estimate(value, n_units=n_units, question=question, undefined_reason=reason)


def show(estimate: Estimate, form: Callable[[float], str] = "{:.3f}".format) -> str:
    """An estimate as one short text: `0.583 [0.155, 1.000]`, with `?` for what is undefined.

    Args:
        estimate: raw; clip it before where a range is wanted.
        form: how one number is written.
    """
    if estimate.value is None:
        return f"? ({estimate.undefined_reason})"
    if estimate.undefined_reason:
        return f"{form(estimate.value)} [no interval: {estimate.undefined_reason}]"
    ends = [form(end) if end is not None else "?" for end in (estimate.low, estimate.high)]
    return f"{form(estimate.value)} [{ends[0]}, {ends[1]}]"
