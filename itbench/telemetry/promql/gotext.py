"""Texts as Go prints them: quoted strings and characters, numbers, durations; used wherever an answer repeats what was asked."""

import re
from decimal import Decimal
from math import isinf, isnan

_ESCAPES = {7: "\\a", 8: "\\b", 12: "\\f", 10: "\\n", 13: "\\r", 9: "\\t", 11: "\\v", 92: "\\\\"}
_BACK = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\", "'": "'", '"': '"'}
_ESCAPED = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.))", re.DOTALL)
_UNITS_MS = (("y", 31_536_000_000), ("w", 604_800_000), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000))
_ORDER = ("y", "w", "d", "h", "m", "s", "ms")
_SIZES_MS = (*(size for _, size in _UNITS_MS), 1)
_PIECE = re.compile(r"(\d+)(\D+)", re.ASCII)
_PIECES = re.compile(r"(?:\d+\D+)+", re.ASCII)
MAX_NS = 2**63 - 1


def shown(text: str) -> str:
    """The text with U+FFFD for each byte that is no UTF-8."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


def is_utf8(text: str) -> bool:
    """Whether all of it came from UTF-8."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


def _shown(char: str, mark: str) -> str:
    code = ord(char)
    if char == mark:
        return "\\" + char
    if code in _ESCAPES:
        return _ESCAPES[code]
    if char == " " or char.isprintable():
        return char
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 128 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"


def quote(text: str) -> str:
    """`%q` of a string."""
    return '"' + "".join(_shown(char, '"') for char in text) + '"'


def label_name(label: str) -> str:
    """A label name, quoted where it is none of the old kind."""
    plain = label.isascii() and (label[:1].isalpha() or label[:1] == "_")
    return label if plain and label.replace("_", "a").isalnum() else quote(label)


def quote_rune(char: str) -> str:
    """`%q` of one character; an empty text is the end of the input, which Go shows as U+FFFD."""
    return "'" + _shown(char or "\ufffd", "'") + "'"


def name_rune(char: str) -> str:
    """`%#U` of one character."""
    code = ord(char) if char else 0xFFFD
    return f"U+{code:04X} '{char}'" if char and char.isprintable() else f"U+{code:04X}"


def unquote(text: str) -> str:
    """The value of a quoted string whose escapes are known to be good; bytes that are no UTF-8 become lone surrogates."""
    inner = text[1:-1]
    if text[0] == "`" or "\\" not in inner:
        return inner
    raw = bytearray()
    place = 0
    for match in _ESCAPED.finditer(inner):
        raw += inner[place : match.start()].encode()
        short, four, eight, octal, plain = match.groups()
        if short or octal:
            raw.append(int(short, 16) if short else int(octal, 8) & 255)
        else:
            raw += (_BACK[plain] if plain else chr(int(four or eight, 16))).encode()
        place = match.end()
    return (bytes(raw) + inner[place:].encode()).decode("utf-8", "surrogateescape")


def show_g(value: float) -> str:
    """`%g` and `%v`: shortest form, exponents below 1e-4 and from 1e6 on."""
    if isnan(value) or isinf(value):
        return "NaN" if isnan(value) else "+Inf" if value > 0 else "-Inf"
    if value == 0 or 1e-4 <= abs(value) < 1e6:
        return show_f(value)
    sign, digits, _ = Decimal(repr(float(value))).normalize().as_tuple()
    mantissa = str(digits[0]) + ("." + "".join(map(str, digits[1:])) if len(digits) > 1 else "")
    exponent = Decimal(repr(float(value))).adjusted()
    return f"{'-' if sign else ''}{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def show_f(value: float) -> str:
    """Shortest form without an exponent."""
    if isnan(value) or isinf(value):
        return "NaN" if isnan(value) else "+Inf" if value > 0 else "-Inf"
    return format(Decimal(repr(float(value))), "f").removesuffix(".0")


def parse_duration_ns(text: str) -> int:
    """Nanoseconds of a duration such as `1h30m`.

    Raises:
        ValueError: with the words of Prometheus.
    """
    if text == "0":
        return 0
    if not text:
        raise ValueError("empty duration string")
    wrong = ValueError(f"not a valid duration string: {quote(text)}")
    if _PIECES.fullmatch(text) is None:
        raise wrong
    total, last = 0, -1
    for count, unit in _PIECE.findall(text):
        if unit not in _ORDER:
            raise ValueError(f"unknown unit {quote(unit)} in duration {quote(text)}")
        if _ORDER.index(unit) <= last or int(count) >= 2**64:
            raise wrong
        last = _ORDER.index(unit)
        total += int(count) * _SIZES_MS[last] * 1_000_000
        if total > MAX_NS:
            raise ValueError("duration out of range")
    return total


def show_duration(ns: float) -> str:
    """A duration as Prometheus prints it: `1h30m`, years and weeks only where nothing remains."""
    ms = int(ns) // 1_000_000
    if ms == 0:
        return "0s"
    text = ""
    for unit, size in _UNITS_MS:
        if unit in "yw" and ms % size:
            continue
        count, ms = divmod(ms, size)
        text += f"{count}{unit}" if count else ""
    return text + (f"{ms}ms" if ms else "")
