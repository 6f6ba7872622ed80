"""The string formats that a schema may ask for; called by `validation`. Formats that are not listed accept everything."""

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from datetime import datetime
from urllib.parse import urlsplit

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[Zz]|[+-]\d{2}:\d{2})")
_HOST = re.compile(
    r"(?=.{1,255}$)(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)*[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.?"
)
_MAIL = re.compile(r"[^@\s<>\"]+@[^@\s<>\"]+|\".*\"@[^@\s]+|[^<>@]*<[^@\s<>]+@[^@\s<>]+>")
_UUID = "[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?%s[0-9a-fA-F]{3}-?%s[0-9a-fA-F]{3}-?[0-9a-fA-F]{12}"
_MAC = re.compile(r"(?:[0-9a-fA-F]{2}[:-]){5,7}[0-9a-fA-F]{2}|(?:[0-9a-fA-F]{4}\.){2,3}[0-9a-fA-F]{4}")
_DURATION = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+|0")
_WORDS = re.compile(
    r"\s*\d+\s*(?:ns|nano|nanos|us|µs|micro|micros|ms|milli|millis|s|sec|secs|second|seconds|m|min|mins|minute|minutes|h|hr|hour|hours|d|day|days|w|wk|week|weeks)\s*"
)
_HEX = re.compile(r"#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})")
_RGB = re.compile(r"rgb\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)")
_CARD = re.compile(
    r"(?:4\d{12}(?:\d{3})?|5[1-5]\d{14}|6(?:011|5\d\d)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|(?:2131|1800|35\d{3})\d{11})"
)
_SSN = re.compile(r"\d{3}[- ]?\d{2}[- ]?\d{4}")
_ISBN10 = re.compile(r"(?:\d[ -]?){9}[\dX]")
_ISBN13 = re.compile(r"(?:\d[ -]?){12}\d")


def _full(pattern: "re.Pattern[str]") -> Callable[[str], bool]:
    return lambda text: pattern.fullmatch(text) is not None


def _parses(call: Callable[[str], object]) -> Callable[[str], bool]:
    def test(text: str) -> bool:
        try:
            call(text)
        except ValueError:
            return False
        return True

    return test


def _date(text: str) -> bool:
    return _DATE.fullmatch(text) is not None and _parses(datetime.fromisoformat)(text)


def _date_time(text: str) -> bool:
    if _TIME.fullmatch(text) is None:
        return False
    return _parses(datetime.fromisoformat)(text[:10] + "T" + text[11:19])


def _uri(text: str) -> bool:
    """An absolute path or a URI with a scheme."""
    if not text or re.search(r"[\s\x00-\x1f\x7f]|%(?![0-9a-fA-F]{2})", text):
        return False
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return text.startswith("/") or bool(parts.scheme)


def _byte(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except binascii.Error:
        return False
    return True


def _rgb(text: str) -> bool:
    match = _RGB.fullmatch(text)
    return match is not None and all(int(part) <= 255 for part in match.groups())


def _isbn(text: str, size: int) -> bool:
    pattern = _ISBN10 if size == 10 else _ISBN13
    if not pattern.fullmatch(text):
        return False
    digits = [10 if char == "X" else int(char) for char in text if char.isalnum()]
    if size == 10:
        return sum((10 - place) * digit for place, digit in enumerate(digits)) % 11 == 0
    return sum(digit * (1, 3)[place % 2] for place, digit in enumerate(digits)) % 10 == 0


_TESTS: dict[str, Callable[[str], bool]] = {
    "bsonobjectid": _full(re.compile("[0-9a-fA-F]{24}")),
    "uri": _uri,
    "email": _full(_MAIL),
    "hostname": _full(_HOST),
    "ipv4": _parses(ipaddress.IPv4Address),
    "ipv6": _parses(ipaddress.IPv6Address),
    "cidr": lambda text: "/" in text and _parses(lambda one: ipaddress.ip_network(one, strict=False))(text),
    "mac": _full(_MAC),
    "uuid": _full(re.compile(_UUID % ("[0-9a-fA-F]", "[0-9a-fA-F]"))),
    "uuid3": _full(re.compile(_UUID % ("3", "[0-9a-fA-F]"))),
    "uuid4": _full(re.compile(_UUID % ("4", "[89abAB]"))),
    "uuid5": _full(re.compile(_UUID % ("5", "[89abAB]"))),
    "isbn": lambda text: _isbn(text, 10) or _isbn(text, 13),
    "isbn10": lambda text: _isbn(text, 10),
    "isbn13": lambda text: _isbn(text, 13),
    "creditcard": lambda text: _full(_CARD)(re.sub("[^0-9]", "", text)),
    "ssn": _full(_SSN),
    "hexcolor": _full(_HEX),
    "rgbcolor": _rgb,
    "byte": _byte,
    "date": _date,
    "duration": lambda text: bool(_DURATION.fullmatch(text) or _WORDS.fullmatch(text)),
    "datetime": _date_time,
    "k8s-short-name": _full(re.compile("(?=.{1,63}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?")),
    "k8s-long-name": _full(re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")),
}


def matches(name: str, text: str) -> bool:
    """Whether a text has the format of that name (hyphens in names do not count, as in `date-time`)."""
    test = _TESTS.get(name) or _TESTS.get(name.replace("-", ""))
    return test is None or test(text)


_UNCHECKED = frozenset({"password", "int32", "int64", "float", "double"})
"""Formats that are known and accept everything (or are numbers')."""


def is_known(name: str) -> bool:
    """Whether the real server has heard of a format."""
    return name in _UNCHECKED or name in _TESTS or name.replace("-", "") in _TESTS
