"""The common subset of Go templates in alert labels and annotations: values, pipelines, and the functions of Prometheus.

Control structures (`if`, `range`, `with`) and queries are refused with the error text that an annotation would show.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from math import isinf, isnan
from typing import Any

from itbench.telemetry.labels import compile_regex
from itbench.telemetry.promql.gotext import show_g
from itbench.telemetry.promql.relabel import expand as expand_groups
from itbench.telemetry.promql.values import format_plain

_ACTION = re.compile(r"\{\{(-\s)?\s*(.*?)\s*(\s-)?\}\}", re.DOTALL)
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|`[^`]*`|\||\(|\)|[^\s|()]+')
_BIG = ("", "k", "M", "G", "T", "P", "E", "Z", "Y")
_BINARY = ("", "ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi")
_SMALL = ("", "m", "u", "n", "p", "f", "a", "z", "y")


class TemplateError(ValueError):
    """What is wrong with a template."""


def _four(value: float) -> str:
    """`%.4g` of Go."""
    if isnan(value) or isinf(value):
        return format_plain(value)
    return f"{value:.4g}"


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


def humanize_percentage(value: float) -> str:
    """A share as a percentage."""
    return f"{_four(value * 100)}%"


def humanize_timestamp(value: float) -> str:
    """Unix seconds as a date."""
    if isnan(value) or isinf(value):
        return _four(value)
    moment = datetime.fromtimestamp(value, UTC)
    rest = f"{moment.microsecond // 1000:03d}".rstrip("0")
    return moment.strftime("%Y-%m-%d %H:%M:%S") + (f".{rest}" if rest else "") + " +0000 UTC"


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise TemplateError(f"can't convert {value!r} to float") from error


_VERB = re.compile(r"%[-+ #0]*\d*(?:\.\d+)?([a-zA-Z%])")


def _printf(template: str, *values: Any) -> str:
    queue = list(values)

    def one(found: re.Match[str]) -> str:
        verb = found[1]
        if verb == "%":
            return "%"
        if not queue:
            return f"%!{verb}(MISSING)"
        value, spec = queue.pop(0), found[0]
        if verb == "v":
            return _text(value)
        if verb == "q":
            return '"' + _text(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
        if verb == "s":
            return str(spec % _text(value))
        if verb in "feEgGF":
            return str(spec % _number(value))
        if verb == "d" and isinstance(value, int):
            return str(spec % value)
        return f"%!{verb}({type(value).__name__}={_text(value)})"

    return _VERB.sub(one, template)


def _replace_all(pattern: str, replacement: str, text: str) -> str:
    return compile_regex(pattern).sub(lambda match: expand_groups(replacement, match), text)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "humanize": lambda value: humanize(_number(value)),
    "humanize1024": lambda value: humanize1024(_number(value)),
    "humanizeDuration": lambda value: humanize_duration(_number(value)),
    "humanizePercentage": lambda value: humanize_percentage(_number(value)),
    "humanizeTimestamp": lambda value: humanize_timestamp(_number(value)),
    "match": lambda pattern, text: compile_regex(pattern).search(text) is not None,
    "print": lambda *values: "".join(map(_text, values)),
    "printf": _printf,
    "reReplaceAll": _replace_all,
    "stripDomain": lambda text: text.split(".", 1)[0],
    "stripPort": lambda text: text.rsplit(":", 1)[0],
    "title": lambda text: re.sub(r"\b[a-z]", lambda found: found[0].upper(), text),
    "toLower": str.lower,
    "toUpper": str.upper,
}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return show_g(value) if isinstance(value, float) else str(value)


class _Pipeline:
    """One `{{ ... }}`: tokens are read once from left to right."""

    def __init__(self, source: str, data: Mapping[str, Any]) -> None:
        self._tokens = _TOKEN.findall(source)
        self._data = data

    def value(self) -> Any:
        """The value of the pipeline."""
        result = self._command([])
        while self._tokens and self._tokens[0] == "|":
            self._tokens.pop(0)
            result = self._command([result])
        return result

    def _command(self, last: list[Any]) -> Any:
        if not self._tokens:
            raise TemplateError("missing value for command")
        name = self._tokens[0]
        if name in FUNCTIONS:
            self._tokens.pop(0)
            arguments: list[Any] = []
            while self._tokens and self._tokens[0] not in ("|", ")"):
                arguments.append(self._operand())
            try:
                return FUNCTIONS[name](*arguments, *last)
            except (TypeError, AttributeError) as error:
                raise TemplateError(f"error calling {name}: {error}") from error
        return self._operand()

    def _operand(self) -> Any:
        token = self._tokens.pop(0)
        if token == "(":
            value = self.value()
            if not self._tokens or self._tokens.pop(0) != ")":
                raise TemplateError("unclosed left paren")
            return value
        if token[0] == '"':
            return re.sub(r"\\(.)", lambda found: {"n": "\n", "t": "\t"}.get(found[1], found[1]), token[1:-1])
        if token[0] == "`":
            return token[1:-1]
        if re.fullmatch(r"-?\d+", token):
            return int(token)
        if re.fullmatch(r"-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", token):
            return float(token)
        return self._variable(token)

    def _variable(self, token: str) -> Any:
        head, _, rest = token.removeprefix(".").partition(".") if token[0] == "." else token.partition(".")
        if token[0] not in "$." or head not in self._data:
            raise TemplateError(
                f'function "{token}" not defined' if token[0] not in "$." else f"undefined variable {token!r}"
            )
        value = self._data[head]
        return value.get(rest, "") if rest and isinstance(value, Mapping) else value


def expand(template: str, labels: Mapping[str, str], value: float, external: Mapping[str, str] | None = None) -> str:
    """The text of a template.

    Args:
        template: Go template text.
        labels: of the sample that made the alert.
        value: of that sample.
        external: external labels of the server.

    Returns:
        The expanded text, or `<error expanding template: ...>` as Prometheus writes it.
    """
    if "{{" not in template:
        return template
    outside = dict(external or {})
    data = {"$labels": labels, "Labels": labels, "$value": value, "Value": value}
    data |= {"$externalLabels": outside, "ExternalLabels": outside}
    pieces: list[str] = []
    place = 0
    try:
        for action in _ACTION.finditer(template):
            before = template[place : action.start()]
            pieces.append(before.rstrip() if action[1] else before)
            if not action[2].startswith("/*"):
                pieces.append(_text(_Pipeline(action[2], data).value()))
            place = action.end()
            if action[3]:
                place += len(template[place:]) - len(template[place:].lstrip())
    except TemplateError as error:
        return f"<error expanding template: {error}>"
    return "".join(pieces) + template[place:]
