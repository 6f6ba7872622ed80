"""What invalid trials could do to the result: four numbers, always printed together. Called by summaries and reports."""

from dataclasses import dataclass

MOST_INVALID = 0.05
"""Above this share a run is flagged as not comparable."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Pass rates over trials under every reading of the invalid ones.

    Args:
        valid_only: passes / valid; None without valid trials.
        as_failed: passes / all; None without trials. Also the lower bound.
        high: (passes + invalid) / all, the upper bound.
        invalid_share: invalid / all.
    """

    valid_only: float | None
    as_failed: float | None
    high: float | None
    invalid_share: float

    @property
    def low(self) -> float | None:
        """Every invalid trial a fail."""
        return self.as_failed

    @property
    def comparable(self) -> bool:
        """Whether few enough trials are invalid for a comparison."""
        return self.invalid_share <= MOST_INVALID


def bounds(passes: int, fails: int, invalid: int) -> Bounds:
    """The four numbers for a run.

    Args:
        passes: trials that passed.
        fails: valid trials that did not.
        invalid: trials without an outcome.

    Source: Manski 1990 (worst-case bounds); `docs/statistics.md`.
    """
    if min(passes, fails, invalid) < 0:
        raise ValueError(f"counts cannot be negative, got {passes}, {fails}, {invalid}")
    valid, total = passes + fails, passes + fails + invalid
    if not total:
        return Bounds(None, None, None, 0.0)
    only = passes / valid if valid else None
    return Bounds(only, passes / total, (passes + invalid) / total, invalid / total)
