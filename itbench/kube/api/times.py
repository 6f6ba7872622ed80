"""Time at the API door: world times in served bytes become wire times, times in bodies become world times.

Clients compute ages from their own clock, so on the wire world now is wall now. All shifts are whole seconds. A time that
comes back as it was once served for an object is unchanged: the shifts used are kept and compared with the object's own times.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from math import floor
from typing import Any

from itbench.core.clock import EPOCH, rfc3339, unix
from itbench.kube.door import Pacer

_STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?"
_SERVED = re.compile(rb'"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)((?:\.\d{1,9})?Z)"')
_SENT = re.compile(rf"{_STAMP}(?:Z|[+-]\d\d:\d\d)")


class DoorClock:
    """Translates times for one server."""

    def __init__(self, pacer: Pacer) -> None:
        self._pacer = pacer
        self._shifts: set[int] = set()
        self._last: tuple[int, dict[bytes, bytes]] = (0, {})

    def shift(self) -> int:
        """Wire minus world time now, in whole seconds."""
        now = self._pacer.now()
        return floor(self._pacer.to_wire(now) - unix(now) + 0.5)

    def serve(self) -> int:
        """The same, for bytes that are served now: the shift is one whose times may come back."""
        shift = self.shift()
        self._shifts.add(shift)
        return shift

    def wire_now(self, ahead_s: float = 0.0) -> str:
        """Wire time now (and some seconds) as RFC 3339: for answers whose times are not translated."""
        moment = datetime.fromtimestamp(int(self._pacer.to_wire(self._pacer.now()) + ahead_s), UTC)
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")

    def served(self, body: bytes) -> bytes:
        """JSON bytes as the client shall see them."""
        shift = self.serve()
        if shift == 0:
            return body
        if self._last[0] != shift or len(self._last[1]) > 8192:
            self._last = (shift, {})
        known = self._last[1]
        delta = timedelta(seconds=shift)

        def moved(match: re.Match[bytes]) -> bytes:
            stamp = match[1]
            new = known.get(stamp)
            if new is None:
                new = known[stamp] = _move(stamp, delta)
            return b'"' + new + match[2] + b'"'

        return _SERVED.sub(moved, body)

    def received(self, value: Any, stored: Any = None) -> Any:
        """A decoded body with all times in world time.

        Args:
            value: JSON value; the strings that are RFC 3339 times are replaced.
            stored: the object as it is stored, whose times come back unchanged.
        """
        if self._shifts <= {0} and self.shift() == 0:
            return value
        own = list(dict.fromkeys(_stamps(stored)))
        return self._walk(value, stored, own)

    def _walk(self, value: Any, stored: Any, own: list[str]) -> Any:
        """`stored` is what the object has at the same place, `own` all its times."""
        if isinstance(value, dict):
            known = stored if isinstance(stored, dict) else {}
            return {key: self._walk(item, known.get(key), own) for key, item in value.items()}
        if isinstance(value, list):
            rows = stored if isinstance(stored, list) else []
            return [self._walk(item, rows[i] if i < len(rows) else None, own) for i, item in enumerate(value)]
        if isinstance(value, str) and 20 <= len(value) <= 40 and _SENT.fullmatch(value):
            here = [stored] if isinstance(stored, str) and _SENT.fullmatch(stored) else []
            try:
                return self._back(value, here, own)
            except (ValueError, OverflowError):
                return value  # looks like a time but is none: whoever decodes it says so
        return value

    def _back(self, text: str, here: list[str], own: list[str]) -> str:
        """What stands at this place comes back as it is; then a client's "now" is now; then other times of the object count.

        In this order, because so many shifts have been served in stepped mode that a client's "now" (`restartedAt`) is
        bound to look like some old time of the object under some shift.
        """
        moment = parse_wire(text)
        world = self._pacer.from_wire(moment.timestamp())
        known = here if world == self._pacer.now() else [*here, *own]
        for stamp in known:
            if (moment - parse_wire(stamp)).total_seconds() in self._shifts:
                return stamp
        return rfc3339(world, micro="." in text)

    def world(self, text: str) -> float:
        """An RFC 3339 query parameter such as `sinceTime` -> world seconds; raises ValueError."""
        return self._pacer.from_wire(parse_wire(text).timestamp())


def parse_wire(text: str) -> datetime:
    """RFC 3339 -> moment; raises ValueError on anything else."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"time without zone: {text!r}")
    return moment


def _move(stamp: bytes, delta: timedelta) -> bytes:
    try:
        moment = datetime.fromisoformat(stamp.decode()).replace(tzinfo=UTC) + delta
    except (ValueError, OverflowError):
        return stamp
    return moment.strftime("%Y-%m-%dT%H:%M:%S").encode()


def _stamps(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _stamps(item)
    elif isinstance(value, list):
        for item in value:
            yield from _stamps(item)
    elif isinstance(value, str) and 20 <= len(value) <= 40 and _SENT.fullmatch(value):
        yield value


def stamp(pacer: Pacer, world: float) -> str:
    """A world second as a client should see it, with nanoseconds as kubelets prefix log lines."""
    moment = EPOCH + timedelta(seconds=world) + timedelta(seconds=floor(pacer.to_wire(world) - unix(world) + 0.5))
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f") + "000Z"
