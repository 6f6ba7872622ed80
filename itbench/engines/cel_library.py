"""The functions that Kubernetes adds to CEL: quantities, addresses, URLs, patterns, lists, sets and the authorizer.

Used in the child process only (`cel_kubernetes`). The Python binding has no opaque values, so quantities, addresses and the like
are maps with a `$` key that names their type; equality of such maps is equality of what they stand for.
"""

import ipaddress
import re as patterns
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

import re2
from cel_expr_python import cel

T = cel.Type
_MAP = T.Map(T.STRING, T.DYN)
_LIST = T.List(T.DYN)
_NUMBER = patterns.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))(?:([eE][+-]?\d+)|([numkKMGTPE]i?|))")
_POWERS = {"n": -3, "u": -2, "m": -1, "": 0, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
Ask = Callable[[dict[str, Any]], dict[str, Any]]
"""What the authorizer is asked -> `{allowed, reason, error}`."""


def parse_amount(text: str) -> Fraction:
    """A resource quantity as a number; raises ValueError."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        raise ValueError("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
    number, exponent, unit = found.groups()
    value = Fraction(number)
    if exponent:
        return value * Fraction(10) ** int(exponent[1:])
    if unit and unit.endswith("i"):
        return value * Fraction(1024) ** _POWERS[unit[0].replace("K", "k")]
    return value * Fraction(1000) ** _POWERS[unit or ""]


def _quantity(value: Fraction) -> dict[str, Any]:
    return {"$": "quantity", "value": str(value)}


def _amount(value: Any) -> Fraction:
    if isinstance(value, dict):
        return Fraction(value["value"])
    return Fraction(value)


def _tries(parse: Callable[[str], Any]) -> Callable[[str], bool]:
    """Whether a text can be parsed."""

    def test(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return test


def _compare(left: Any, right: Any) -> int:
    a, b = _amount(left), _amount(right)
    return (a > b) - (a < b)


def _whole(value: Any) -> int:
    amount = _amount(value)
    if amount.denominator != 1 or abs(amount) >= 2**63:
        raise ValueError("cannot convert value to integer")
    return int(amount)


def _address(text: str) -> dict[str, Any]:
    if "%" in text:
        raise ValueError(f'IP Address "{text}" parse error during conversion from string: IP address with zone value')
    try:
        return {"$": "ip", "value": str(ipaddress.ip_address(text))}
    except ValueError:
        why = f'ParseAddr("{text}"): unable to parse IP'
        raise ValueError(f'IP Address "{text}" parse error during conversion from string: {why}') from None


def _of_address(name: str) -> Callable[[Any], bool]:
    return lambda value: bool(getattr(ipaddress.ip_address(value["value"]), name))


def _network(text: str) -> dict[str, Any]:
    ipaddress.ip_network(text, strict=False)
    if "/" not in text:
        raise ValueError(f'network address parse error during conversion from string: "{text}" has no prefix')
    return {"$": "cidr", "value": text}


def _inside(net: Any, what: Any) -> bool:
    text = what["value"] if isinstance(what, dict) else what
    outer = ipaddress.ip_network(net["value"], strict=False)
    inner = ipaddress.ip_network(text, strict=False)
    return outer.version == inner.version and inner.subnet_of(outer)  # type: ignore[arg-type]


def _url(text: str) -> dict[str, Any]:
    parts = urlsplit(text)
    if not parts.scheme and not text.startswith("/"):
        raise ValueError(f'URL parse error during conversion from string: parse "{text}": invalid URI for request')
    return {"$": "url", "value": text}


def _url_part(name: str) -> Callable[[Any], str]:
    def part(value: Any) -> str:
        parts = urlsplit(value["value"])
        if name == "host":
            return str(parts.netloc.rpartition("@")[2])
        return str(getattr(parts, name) or "")

    return part


def _query(value: Any) -> dict[str, list[str]]:
    from urllib.parse import parse_qs

    return parse_qs(urlsplit(value["value"]).query, keep_blank_values=True)


def _find(text: str, pattern: str) -> str:
    found = re2.search(pattern, text)
    return str(found.group(0)) if found else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    rows = [found.group(0) for found in re2.finditer(pattern, text)]
    return rows if limit < 0 else rows[:limit]


def _index(rows: list[Any], wanted: Any) -> int:
    return rows.index(wanted) if wanted in rows else -1


def _last(rows: list[Any], wanted: Any) -> int:
    return len(rows) - 1 - rows[::-1].index(wanted) if wanted in rows else -1


def _edge(pick: Callable[[list[Any]], Any], name: str) -> Callable[[list[Any]], Any]:
    def edge(rows: list[Any]) -> Any:
        if not rows:
            raise ValueError(f"{name} called on empty list")
        return pick(rows)

    return edge


def _set(value: Any, **fields: Any) -> dict[str, Any]:
    return {**value, **fields}


Row = tuple[str, Any, list[Any], bool, Callable[..., Any]]
"""Name, type of the result, types of the arguments, whether it is a method, implementation."""


def _quantities() -> list[Row]:
    compare = [
        ("isLessThan", T.BOOL, [_MAP, _MAP], True, lambda a, b: _compare(a, b) < 0),
        ("isGreaterThan", T.BOOL, [_MAP, _MAP], True, lambda a, b: _compare(a, b) > 0),
        ("compareTo", T.INT, [_MAP, _MAP], True, _compare),
    ]
    sums = [
        row
        for other in (_MAP, T.INT)
        for row in (
            ("add", _MAP, [_MAP, other], True, lambda a, b: _quantity(_amount(a) + _amount(b))),
            ("sub", _MAP, [_MAP, other], True, lambda a, b: _quantity(_amount(a) - _amount(b))),
        )
    ]
    return [
        ("quantity", _MAP, [T.STRING], False, lambda text: _quantity(parse_amount(text))),
        ("isQuantity", T.BOOL, [T.STRING], False, _tries(parse_amount)),
        ("isInteger", T.BOOL, [_MAP], True, lambda a: _amount(a).denominator == 1 and abs(_amount(a)) < 2**63),
        ("asInteger", T.INT, [_MAP], True, _whole),
        ("asApproximateFloat", T.DOUBLE, [_MAP], True, lambda a: float(_amount(a))),
        ("sign", T.INT, [_MAP], True, lambda a: _compare(a, 0)),
        *compare,
        *sums,
    ]


def _addresses() -> list[Row]:
    flags = {
        "isUnspecified": "is_unspecified",
        "isLoopback": "is_loopback",
        "isLinkLocalUnicast": "is_link_local",
        "isGlobalUnicast": "is_global",
    }
    return [
        ("ip", _MAP, [T.STRING], False, _address),
        ("isIP", T.BOOL, [T.STRING], False, _tries(_address)),
        ("ip.isCanonical", T.BOOL, [T.STRING], False, lambda text: str(ipaddress.ip_address(text)) == text),
        ("family", T.INT, [_MAP], True, lambda value: ipaddress.ip_address(value["value"]).version),
        *((name, T.BOOL, [_MAP], True, _of_address(flag)) for name, flag in flags.items()),
        ("cidr", _MAP, [T.STRING], False, _network),
        ("isCIDR", T.BOOL, [T.STRING], False, _tries(_network)),
        ("containsIP", T.BOOL, [_MAP, _MAP], True, _inside),
        ("containsIP", T.BOOL, [_MAP, T.STRING], True, _inside),
        ("containsCIDR", T.BOOL, [_MAP, _MAP], True, _inside),
        ("containsCIDR", T.BOOL, [_MAP, T.STRING], True, _inside),
        ("prefixLength", T.INT, [_MAP], True, lambda net: ipaddress.ip_network(net["value"], strict=False).prefixlen),
        ("masked", _MAP, [_MAP], True, lambda net: _network(str(ipaddress.ip_network(net["value"], strict=False)))),
        ("ip", _MAP, [_MAP], True, lambda net: _address(net["value"].split("/")[0])),
    ]


def _urls() -> list[Row]:
    parts = {
        "getScheme": "scheme",
        "getHost": "host",
        "getHostname": "hostname",
        "getPort": "port",
        "getEscapedPath": "path",
    }
    return [
        ("url", _MAP, [T.STRING], False, _url),
        ("isURL", T.BOOL, [T.STRING], False, _tries(_url)),
        *((name, T.STRING, [_MAP], True, _url_part(part)) for name, part in parts.items()),
        ("getQuery", _MAP, [_MAP], True, _query),
    ]


def _lists() -> list[Row]:
    return [
        ("find", T.STRING, [T.STRING, T.STRING], True, _find),
        ("findAll", T.List(T.STRING), [T.STRING, T.STRING], True, _find_all),
        ("findAll", T.List(T.STRING), [T.STRING, T.STRING, T.INT], True, _find_all),
        ("sum", T.DYN, [_LIST], True, sum),
        ("min", T.DYN, [_LIST], True, _edge(min, "min")),
        ("max", T.DYN, [_LIST], True, _edge(max, "max")),
        ("isSorted", T.BOOL, [_LIST], True, lambda rows: all(a <= b for a, b in pairwise(rows))),
        ("indexOf", T.INT, [_LIST, T.DYN], True, _index),
        ("lastIndexOf", T.INT, [_LIST, T.DYN], True, _last),
        ("sets.contains", T.BOOL, [_LIST, _LIST], False, lambda a, b: all(row in a for row in b)),
        ("sets.intersects", T.BOOL, [_LIST, _LIST], False, lambda a, b: any(row in a for row in b)),
        (
            "sets.equivalent",
            T.BOOL,
            [_LIST, _LIST],
            False,
            lambda a, b: all(row in a for row in b) and all(row in b for row in a),
        ),
    ]


def _authorizer(ask: Ask) -> list[Row]:
    fields = ("subresource", "namespace", "name", "fieldSelector", "labelSelector")
    return [
        ("path", _MAP, [_MAP, T.STRING], True, lambda a, text: _set(a, path=text)),
        ("serviceAccount", _MAP, [_MAP, T.STRING, T.STRING], True, lambda a, ns, name: _set(a, account=[ns, name])),
        ("group", _MAP, [_MAP, T.STRING], True, lambda a, text: _set(a, group=text)),
        ("resource", _MAP, [_MAP, T.STRING], True, lambda a, text: _set(a, resource=text)),
        *((name, _MAP, [_MAP, T.STRING], True, lambda a, text, name=name: _set(a, **{name: text})) for name in fields),
        ("check", _MAP, [_MAP, T.STRING], True, lambda a, verb: ask(_set(a, verb=verb))),
        ("allowed", T.BOOL, [_MAP], True, lambda a: a["allowed"]),
        ("reason", T.STRING, [_MAP], True, lambda a: a.get("reason", "")),
        ("errored", T.BOOL, [_MAP], True, lambda a: bool(a.get("error"))),
        ("error", T.STRING, [_MAP], True, lambda a: a.get("error", "")),
    ]


def extension(ask: Ask) -> Any:
    """The functions as an extension of one environment."""
    named: dict[str, list[Any]] = {}
    for name, result, arguments, member, run in (
        *_quantities(),
        *_addresses(),
        *_urls(),
        *_lists(),
        *_authorizer(ask),
    ):
        rows = named.setdefault(name, [])
        overload = f"k8s_{name.replace('.', '_')}_{len(rows)}"
        rows.append(cel.Overload(overload, result, arguments, member, run))
    return cel.CelExtension("kubernetes", [cel.FunctionDecl(name, rows) for name, rows in named.items()])
