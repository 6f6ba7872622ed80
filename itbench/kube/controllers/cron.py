"""Cron schedules: five fields, names, steps, ranges, `@hourly` and the like. Pure; called by the CronJob controller."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from itbench.core.clock import EPOCH

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
SHORTHANDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
HORIZON_DAYS = 366 * 5


class Schedule:
    """One schedule.

    Args:
        text: `*/5 * * * *`, `@hourly`, ...
        zone: IANA time zone; UTC by default.

    Raises:
        ValueError: the text is no schedule, or the zone is unknown.
    """

    def __init__(self, text: str, zone: str = "") -> None:
        fields = SHORTHANDS.get(text.strip(), text).split()
        if len(fields) != 5:
            raise ValueError(f"expected exactly 5 fields, found {len(fields)}: [{text}]")
        self._minutes = _parse(fields[0], 0, 59)
        self._hours = _parse(fields[1], 0, 23)
        self._days = _parse(fields[2], 1, 31)
        self._months = _parse(fields[3], 1, 12, MONTHS)
        self._weekdays = {day % 7 for day in _parse(fields[4], 0, 7, DAYS)}
        self._any_day, self._any_weekday = fields[2][0] in "*?", fields[4][0] in "*?"
        self._zone = _zone(zone)

    def _matches_day(self, moment: datetime) -> bool:
        if moment.month not in self._months:
            return False
        day = moment.day in self._days
        weekday = moment.isoweekday() % 7 in self._weekdays
        # Two restricted day fields mean either; one unrestricted leaves the other alone.
        return (day and weekday) if self._any_day or self._any_weekday else (day or weekday)

    def after(self, seconds: float) -> Iterator[float]:
        """All times after a world second, in world seconds."""
        moment = (EPOCH + timedelta(seconds=int(seconds // 60) * 60 + 60)).astimezone(self._zone)
        day = moment.date()
        for _ in range(HORIZON_DAYS):
            at = datetime(day.year, day.month, day.day, tzinfo=self._zone)
            if self._matches_day(at):
                for hour in sorted(self._hours):
                    for minute in sorted(self._minutes):
                        found = at.replace(hour=hour, minute=minute).astimezone(UTC)
                        if (found - EPOCH).total_seconds() > seconds:
                            yield (found - EPOCH).total_seconds()
            day += timedelta(days=1)


def _zone(name: str) -> tzinfo:
    if not name:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise ValueError(f"unknown time zone {name}") from error


def _parse(text: str, low: int, high: int, names: tuple[str, ...] = ()) -> set[int]:
    found: set[int] = set()
    for part in text.lower().split(","):
        span, _, step = part.partition("/")
        if span in ("*", "?"):
            first, last = low, high
        else:
            start, dash, end = span.partition("-")
            first = _value(start, names, low)
            last = _value(end, names, low) if dash else (high if step else first)
        if step and (not step.isdigit() or int(step) == 0):
            raise ValueError(f"step of range should be a positive number: {part}")
        if first < low or last > high or first > last:
            raise ValueError(f"beginning or end of range out of bounds [{low}, {high}]: {part}")
        found.update(range(first, last + 1, int(step or 1)))
    return found


def _value(text: str, names: tuple[str, ...], low: int) -> int:
    if text in names:
        return names.index(text) + (low if len(names) == 12 else 0)
    if not text.isdigit():
        raise ValueError(f"failed to parse int from {text}")
    return int(text)
