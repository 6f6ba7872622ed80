"""What templates can call: the functions of Go's templates and those that Prometheus adds. Called by `templates` alone."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_address
from math import isinf, isnan
from typing import Any
from urllib.parse import quote_plus

from itbench.telemetry.labels import compile_regex
from itbench.telemetry.promql.gotext import parse_duration_ns, show_g
from itbench.telemetry.promql.gotext import quote as go_quote
from itbench.telemetry.promql.relabel import expand as expand_groups
from itbench.telemetry.promql.values import format_plain

_BIG = ("", "k", "M", "G", "T", "P", "E", "Z", "Y")
_BINARY = ("", "ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi")
_SMALL = ("", "m", "u", "n", "p", "f", "a", "z", "y")


class TemplateError(ValueError):
    """What is wrong with a template.

    Attributes:
        at: the character that it is about; None where that is not known yet.
        context: the part of the template, as messages show it.
    """

    def __init__(self, text: str, at: int | None = None, context: str = "") -> None:
        self.at, self.context = at, context
        super().__init__(text)


@dataclass(frozen=True, slots=True)
class Sample:
    """One element of what a query in a template gives."""

    labels: Mapping[str, str]
    value: float


def kind_of(value: Any) -> str:
    """The name of a value's type in Go."""
    kinds = {bool: "bool", int: "int", float: "float64", str: "string", list: "template.queryResult"}
    if isinstance(value, Sample):
        return "*template.sample"
    return kinds.get(type(value), "map[string]string" if isinstance(value, Mapping) else "interface {}")


def text_of(value: Any) -> str:
    """`%v` of a value."""
    if value is None:
        return "<no value>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return show_g(value)
    if isinstance(value, Mapping):
        return "map[" + " ".join(f"{key}:{text_of(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, Sample):
        return f"&{{{text_of(value.labels)} {text_of(value.value)}}}"
    if isinstance(value, list):
        return "[" + " ".join(map(text_of, value)) + "]"
    return str(value)


def is_true(value: Any) -> bool:
    """What `if` takes as true: anything but zero and empty."""
    return isinstance(value, Sample) or bool(value)


def number_of(value: Any) -> float:
    """A number, also from text."""
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError as error:
            raise TemplateError(f"strconv.ParseFloat: parsing {go_quote(value)}: invalid syntax") from error
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TemplateError(f"can't convert {kind_of(value)} to float")
    return float(value)


def _four(value: float) -> str:
    """`%.4g` of Go."""
    return format_plain(value) if isnan(value) or isinf(value) else f"{value:.4g}"


def _scaled(value: float, base: float, prefixes: Sequence[str]) -> tuple[float, str]:
    for prefix in prefixes[:-1]:
        if abs(value) < base:
            return value, prefix
        value /= base
    return value, prefixes[-1]


def _enlarged(value: float) -> tuple[float, str]:
    for prefix in _SMALL[:-1]:
        if abs(value) >= 1:
            return value, prefix
        value *= 1000
    return value, _SMALL[-1]


def humanize(value: float) -> str:
    """With a metric prefix."""
    if value == 0 or isnan(value) or isinf(value):
        return _four(value)
    number, prefix = _scaled(value, 1000.0, _BIG) if abs(value) >= 1 else _enlarged(value)
    return _four(number) + prefix


def humanize1024(value: float) -> str:
    """With a binary prefix."""
    if abs(value) <= 1 or isnan(value) or isinf(value):
        return _four(value)
    number, prefix = _scaled(value, 1024.0, _BINARY)
    return _four(number) + prefix


def humanize_duration(value: float) -> str:
    """Seconds as days, hours, minutes and seconds."""
    if isnan(value) or isinf(value):
        return _four(value)
    if value == 0:
        return "0s"
    if abs(value) < 1:
        number, prefix = _enlarged(value)
        return f"{_four(number)}{prefix}s"
    sign, whole = ("-" if value < 0 else ""), int(abs(value))
    days, hours, minutes, seconds = whole // 86400, whole // 3600 % 24, whole // 60 % 60, whole % 60
    if days:
        return f"{sign}{days}d {hours}h {minutes}m {seconds}s"
    if hours:
        return f"{sign}{hours}h {minutes}m {seconds}s"
    if minutes:
        return f"{sign}{minutes}m {seconds}s"
    return f"{sign}{_four(abs(value))}s"


def humanize_timestamp(value: float) -> str:
    """Unix seconds as a date."""
    if isnan(value) or isinf(value):
        return _four(value)
    moment = datetime.fromtimestamp(value, UTC)
    rest = f"{moment.microsecond // 1000:03d}".rstrip("0")
    return moment.strftime("%Y-%m-%d %H:%M:%S") + (f".{rest}" if rest else "") + " +0000 UTC"


_VERB = re.compile(r"%[-+ #0]*\d*(?:\.\d+)?([a-zA-Z%])")


def printf(template: str, *values: Any) -> str:
    """Go's Sprintf, for texts, numbers and what `%v` can show."""
    queue = list(values)

    def one(found: re.Match[str]) -> str:
        verb, spec = found[1], found[0]
        if verb == "%":
            return "%"
        if not queue:
            return f"%!{verb}(MISSING)"
        value = queue.pop(0)
        whole = isinstance(value, int) and not isinstance(value, bool)
        if value is None or (verb == "t" and isinstance(value, bool)):
            return "<nil>" if value is None and verb == "v" else f"%!{verb}(<nil>)" if value is None else text_of(value)
        if verb in "vs" and (verb == "v" or isinstance(value, str)):
            return (
                str(spec[:-1] + "s") % text_of(value) if isinstance(value, str) or "." not in spec else text_of(value)
            )
        if verb == "q" and isinstance(value, str):
            return go_quote(value)
        if (verb in "feEgGF" and isinstance(value, float)) or (verb in "dxXo" and whole):
            return show_g(value) if spec == "%g" else str(spec % value)
        return f"%!{verb}({kind_of(value)}={text_of(value)})"

    shown = _VERB.sub(one, template)
    return shown + (f"%!(EXTRA {', '.join(f'{kind_of(each)}={text_of(each)}' for each in queue)})" if queue else "")


def _print(*values: Any) -> str:
    shown = ""
    for place, value in enumerate(values):
        if place and not isinstance(value, str) and not isinstance(values[place - 1], str):
            shown += " "
        shown += text_of(value)
    return shown


def _host_port(text: str) -> tuple[str, str] | None:
    match = re.fullmatch(r"(?:\[([^\[\]]*)\]|([^:\[\]]*)):([^:]*)", text)
    return None if match is None else (match[1] if match[1] is not None else match[2], match[3])


def strip_port(text: str) -> str:
    """The host of `host:port`; anything else as it is."""
    found = _host_port(text)
    return text if found is None else found[0]


def strip_domain(text: str) -> str:
    """The first part of a host name, with the port where there is one; addresses stay."""
    found = _host_port(text)
    host, port = found or (text, "")
    try:
        ip_address(host)
    except ValueError:
        host = host.split(".")[0]
        return f"{host}:{port}" if port else host
    return text


def _replace_all(pattern: str, replacement: str, text: str) -> str:
    return compile_regex(pattern).sub(lambda match: expand_groups(replacement, match), text)


def _first(vector: list[Sample]) -> Sample:
    if not vector:
        raise TemplateError("first() called on vector with no elements")
    return vector[0]


def _length(value: Any) -> int:
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, list | Mapping):
        return len(value)
    raise TemplateError(f"len of type {kind_of(value)}")


def _index(value: Any, *keys: Any) -> Any:
    for key in keys:
        if isinstance(value, Mapping):
            value = value.get(key, "")
        elif isinstance(value, list | str) and isinstance(key, int):
            if not 0 <= key < len(value):
                raise TemplateError(f"error indexing: index out of range: {key}")
            value = ord(value[key]) if isinstance(value, str) else value[key]
        else:
            raise TemplateError(f"can't index item of type {kind_of(value)}")
    return value


def _comparable(left: Any, right: Any) -> None:
    kinds = {kind_of(left), kind_of(right)}
    if len(kinds) > 1:
        raise TemplateError(f"incompatible types for comparison: {kind_of(left)} and {kind_of(right)}")
    if not kinds <= {"bool", "int", "float64", "string"}:
        raise TemplateError("invalid type for comparison")


def _equal(left: Any, *others: Any) -> bool:
    if not others:
        raise TemplateError("missing argument for comparison")
    for other in others:
        _comparable(left, other)
    return any(left == other for other in others)


def _less(left: Any, right: Any) -> bool:
    _comparable(left, right)
    return bool(left < right)


def _duration_s(text: str) -> float:
    try:
        return -parse_duration_ns(text[1:]) / 1e9 if text[:1] == "-" else parse_duration_ns(text) / 1e9
    except ValueError as error:
        raise TemplateError(str(error)) from error


def _graph_link(expr: str, tab: int) -> str:
    return f"/graph?g0.expr={quote_plus(expr)}&g0.tab={tab}"


def _sort_by_label(label: str, vector: list[Sample]) -> list[Sample]:
    return sorted(vector, key=lambda each: each.labels.get(label, ""))


def _title(text: str) -> str:
    return re.sub(r"(?<![\w'])[a-z]", lambda found: found[0].upper(), text)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "args": lambda *values: {f"arg{place}": value for place, value in enumerate(values)},
    "eq": _equal,
    "first": _first,
    "ge": lambda left, right: not _less(left, right),
    "graphLink": lambda expr: _graph_link(expr, 0),
    "gt": lambda left, right: not _less(left, right) and left != right,
    "html": lambda *values: _print(*values).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"),
    "humanize": lambda value: humanize(number_of(value)),
    "humanize1024": lambda value: humanize1024(number_of(value)),
    "humanizeDuration": lambda value: humanize_duration(number_of(value)),
    "humanizePercentage": lambda value: f"{_four(number_of(value) * 100)}%",
    "humanizeTimestamp": lambda value: humanize_timestamp(number_of(value)),
    "index": _index,
    "label": lambda name, sample: sample.labels.get(name, ""),
    "le": lambda left, right: _less(left, right) or left == right,
    "len": _length,
    "lt": _less,
    "match": lambda pattern, text: compile_regex(pattern).search(text) is not None,
    "ne": lambda left, right: not _equal(left, right),
    "not": lambda value: not is_true(value),
    "parseDuration": _duration_s,
    "pathPrefix": lambda: "",
    "print": _print,
    "printf": printf,
    "println": lambda *values: " ".join(map(text_of, values)) + "\n",
    "reReplaceAll": _replace_all,
    "safeHtml": lambda text: text,
    "slice": lambda text, *ends: text[slice(*ends)] if ends else text,
    "sortByLabel": _sort_by_label,
    "stripDomain": strip_domain,
    "stripPort": strip_port,
    "strvalue": lambda sample: sample.labels.get("__value__", ""),
    "tableLink": lambda expr: _graph_link(expr, 1),
    "title": _title,
    "toLower": str.lower,
    "toUpper": str.upper,
    "urlQueryEscape": quote_plus,
    "urlquery": lambda *values: quote_plus(_print(*values)),
    "value": lambda sample: sample.value,
}
