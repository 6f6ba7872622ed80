"""Kubernetes quantities (`100m`, `1Gi`, `2e3`): parsing, exact arithmetic, canonical form.

Called by validation, admission (LimitRange, ResourceQuota), tables, and whoever adds up requests.
"""

import re
from fractions import Fraction
from functools import lru_cache

QUANTITY_ERROR = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"

_FORM = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(n|u|m||k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?\d+)")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_BY_EXPONENT = {power: suffix for suffix, power in _DECIMAL.items()}


def is_quantity(text: str) -> bool:
    """Whether the text is a quantity."""
    return _FORM.fullmatch(text) is not None


@lru_cache(8192)
def parse_quantity(text: str) -> Fraction:
    """The exact value; raises ValueError with the real server's text."""
    match = _FORM.fullmatch(str(text))
    if match is None:
        raise ValueError(QUANTITY_ERROR)
    number, suffix = match.groups()
    value = Fraction(number)
    if suffix in _BINARY:
        return value * Fraction(1024 ** _BINARY[suffix])
    power = _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
    return value * (Fraction(10**power) if power >= 0 else Fraction(1, 10**-power))


def milli(text: str) -> int:
    """Thousandths, rounded up (CPU arithmetic)."""
    value = parse_quantity(text) * 1000
    return -(-value.numerator // value.denominator)


def units(text: str) -> int:
    """Whole units, rounded up (bytes)."""
    value = parse_quantity(text)
    return -(-value.numerator // value.denominator)


def _suffixes(value: Fraction, base: int, table: dict[int, str]) -> str | None:
    for power in sorted(table, reverse=True):
        scaled = value / base**power if power >= 0 else value * base**-power
        if scaled.denominator == 1:
            return f"{scaled.numerator}{table[power]}"
    return None


def format_quantity(value: Fraction, *, binary: bool = False) -> str:
    """The canonical text: the largest suffix that leaves a whole number."""
    if value == 0:
        return "0"
    if binary and value.denominator == 1 and abs(value) >= 1024:
        text = _suffixes(value, 1024, {power: suffix for suffix, power in _BINARY.items()} | {0: ""})
    else:
        text = _suffixes(value, 10, _BY_EXPONENT)
    if text is None:
        nano = value * 10**9
        return f"{-(-nano.numerator // nano.denominator)}n"
    return text


@lru_cache(8192)
def canonical(text: str) -> str:
    """What the real server prints for a quantity: `1000m` -> `1`, `1024Mi` -> `1Gi`, `0.5` -> `500m`."""
    binary = text.endswith("i")
    match = re.fullmatch(r"[+-]?\d+(.*)", text)
    if match and match.group(1)[:1] in ("e", "E") and len(match.group(1)) > 1:
        return text
    return format_quantity(parse_quantity(text), binary=binary)
