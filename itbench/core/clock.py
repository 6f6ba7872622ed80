"""World time: seconds since a fixed epoch, and its RFC 3339 form.

Every layer keeps time as a float of seconds since `EPOCH` ("world seconds"); nothing below the doors reads the wall clock.
"""

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
