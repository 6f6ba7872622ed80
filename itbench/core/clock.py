"""World time: seconds since a fixed epoch, and its RFC 3339 form.

Every layer keeps time as a float of seconds since `EPOCH` ("world seconds"); nothing below the doors reads the wall clock.
"""

import re
from datetime import UTC, datetime, timedelta

EPOCH = datetime(2026, 1, 12, 8, 0, 0, tzinfo=UTC)
"""World second 0. Staging starts here, so equal seeds give equal timestamps."""


def rfc3339(seconds: float, *, micro: bool = False) -> str:
    """World seconds -> `2026-01-12T08:00:00Z` (with six decimals when `micro`, as Leases and Events want)."""
    moment = EPOCH + timedelta(seconds=seconds)
    if micro:
        return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_rfc3339(text: str) -> float:
    """RFC 3339 text -> world seconds; raises ValueError on anything else."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"time without zone: {text!r}")
    return (moment - EPOCH).total_seconds()


def unix(seconds: float) -> float:
    """World seconds -> Unix seconds on the world's own calendar."""
    return EPOCH.timestamp() + seconds


def from_unix(seconds: float) -> float:
    """Unix seconds on the world's own calendar -> world seconds."""
    return seconds - EPOCH.timestamp()


HORIZON_S = 400 * 86400.0
"""Times this far after `EPOCH` are the world's own; a text may contain others (expiry dates, birthdays), which stay."""
_STAMP = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d|(?<![\w.])1\d{9}(?:\d{3}|\d{6}|\d{9})?(?![\w])")


def shift_text(text: str, ahead_s: int) -> str:
    """A log line with the world's times in it on a calendar that is ahead.

    Args:
        text: a line; times are ISO 8601 to the second, or Unix times in s, ms, us or ns.
        ahead_s: whole seconds, so that fractions stay as they are.

    Returns:
        The line; nothing that is not one of the world's times changes.
    """

    def moved(match: re.Match[str]) -> str:
        stamp = match[0]
        if stamp.isdigit():
            factor = 10 ** (len(stamp) - 10)
            known = 0.0 <= from_unix(int(stamp) / factor) <= HORIZON_S
            return str(int(stamp) + ahead_s * factor) if known else stamp
        try:
            moment = datetime.fromisoformat(stamp).replace(tzinfo=UTC)
        except ValueError:
            return stamp
        if not 0.0 <= (moment - EPOCH).total_seconds() <= HORIZON_S:
            return stamp
        return (moment + timedelta(seconds=ahead_s)).strftime(f"%Y-%m-%d{stamp[10]}%H:%M:%S")

    return _STAMP.sub(moved, text) if ahead_s else text
