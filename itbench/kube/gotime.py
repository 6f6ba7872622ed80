"""What a real server says of a text that should be a time: Go's parser for RFC 3339, its order of checks and its words.

Called by the decoder for every time in a body.
"""

import re
from calendar import monthrange
from functools import lru_cache

_SECONDS = "2006-01-02T15:04:05Z07:00"
_MICRO = "2006-01-02T15:04:05.000000Z07:00"
_FRACTION = re.compile(r"[.,]\d+")
_SIX = re.compile(r"\.\d{6}(?!\d)")
_ZONE = re.compile(r"Z|([+-])(\d\d):(\d\d)")
_PARTS: tuple[tuple[str, int, str, int, int], ...] = (
    ("2006", 4, "", 0, 9999),
    ("-", 0, "", 0, 0),
    ("01", 2, "month", 1, 12),
    ("-", 0, "", 0, 0),
    ("02", 2, "", 0, 99),
    ("T", 0, "", 0, 0),
    ("15", 2, "hour", 0, 23),
    (":", 0, "", 0, 0),
    ("04", 2, "minute", 0, 59),
    (":", 0, "", 0, 0),
    ("05", 2, "second", 0, 59),
)
"""Layout element, digits (0: the text itself), what is out of range, lowest, highest."""


class _Fault(Exception):
    """The rest of a time, and the element of the layout that it does not fit; or a complaint about the whole."""


@lru_cache(4096)
def fault(text: str, *, micro: bool) -> str:
    """Why a text is no time, in Go's words; empty when it is one.

    Args:
        micro: whether it is a MicroTime, which has exactly six decimals.
    """
    layout = _MICRO if micro else _SECONDS
    try:
        rest, day_fault = _date_and_clock(text)
        rest = _decimals(rest, micro)
        rest = _zone(rest)
        if rest:
            raise _Fault(f'extra text: "{rest}"')
        if day_fault:
            raise _Fault("day out of range")
    except _Fault as error:
        if len(error.args) == 1:
            return f'parsing time "{text}": {error.args[0]}'
        rest, element = error.args
        return f'parsing time "{text}" as "{layout}": cannot parse "{rest}" as "{element}"'
    return ""


def _date_and_clock(text: str) -> tuple[str, bool]:
    """What follows the seconds, and whether the month has no such day."""
    rest, numbers = text, []
    for element, digits, name, lowest, highest in _PARTS:
        if not digits:
            if not rest.startswith(element):
                raise _Fault(rest, element)
            rest = rest[1:]
            continue
        head = rest[:digits]
        if len(head) < digits or not (head.isascii() and head.isdigit()):
            raise _Fault(rest, element)
        numbers.append(int(head))
        if not lowest <= numbers[-1] <= highest:
            raise _Fault(f"{name} out of range")
        rest = rest[digits:]
    year, month, day = numbers[:3]
    return rest, not 1 <= day <= monthrange(max(year, 1), month)[1]


def _decimals(rest: str, micro: bool) -> str:
    if micro:
        match = _SIX.match(rest)
        if match is None:
            raise _Fault(rest, ".000000")
        return rest[match.end() :]
    match = _FRACTION.match(rest)
    return rest[match.end() :] if match else rest


def _zone(rest: str) -> str:
    match = _ZONE.match(rest)
    if match is None:
        raise _Fault(rest, "Z07:00")
    if match[1] and int(match[2]) > 24:
        raise _Fault("time zone offset hour out of range")
    if match[1] and int(match[3]) >= 60:
        raise _Fault("time zone offset minute out of range")
    return rest[match.end() :]
