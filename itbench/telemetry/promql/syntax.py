"""Parsing of PromQL by `promql-parser`, with the errors that Prometheus gives."""

import re
from functools import lru_cache
from typing import Any

import promql_parser as ast

from itbench.core.errors import UsageError
from itbench.telemetry.labels import compile_regex
from itbench.telemetry.promql.values import QueryError

EXPERIMENTAL = frozenset((
    "double_exponential_smoothing", "first_over_time", "histogram_quantiles", "info", "mad_over_time", "max_of",
    "min_of", "range", "step", "sort_by_label", "sort_by_label_desc", "start", "end", "ts_of_first_over_time",
    "ts_of_last_over_time", "ts_of_max_over_time", "ts_of_min_over_time",
))  # fmt: skip
"""Functions that Prometheus knows but refuses unless a feature flag is set."""
EXPERIMENTAL_AGGREGATIONS = frozenset(("limitk", "limit_ratio"))

FLAG = "--enable-feature=promql-experimental-functions"

ILLEGAL = "illegal regex for "

_TYPES = {"matrix": "range vector", "vector": "instant vector"}
_REWRITES: tuple[tuple[str, str], ...] = (
    (r"^expected type (\w+) in (.*), got (\w+)$", r"expected type {1} in \2, got {3}"),
    (r"^unknown function with name '(.*)'$", r'unknown function with name "\1"'),
    (r"call to function '(.*?)'", r'call to function "\1"'),
    (r"in call to '(.*?)'", r'in call to "\1"'),
    (r"^set operator '(.*)' not allowed", r'set operator "\1" not allowed'),
    (r"^illegal regex for (.*)$", r"error parsing regexp: invalid pattern: `\1`"),
    (r"^subquery is only allowed on vector, got (\w+)", r"subquery is only allowed on instant vector, got {1}"),
    (r"^unexpected end of input inside brackets$", r"unclosed left bracket"),
    (r"^bad number or duration syntax: (.*)$", r'bad number or duration syntax: "\1"'),
)


_TOKEN = re.compile(r"[A-Za-z_:][\w:]*|[\d.]+\w*|\"[^\"]*\"|'[^']*'|[^\s]")
_AT_START = (
    "vector selector must", "no expression", "binary expression", "set operator", "bool modifier", "wrong number of arguments",
)  # fmt: skip


def _message(raw: str) -> str:
    text = raw.split("\n", 1)[0]
    for pattern, replacement in _REWRITES:
        match = re.search(pattern, text)
        if match:
            template = replacement.replace("{1}", _TYPES.get(match[1], match[1]) if match.groups() else "")
            if match.re.groups >= 3:
                template = template.replace("{3}", _TYPES.get(match[3], match[3]))
            text = text[: match.start()] + match.expand(template) + text[match.end() :]
    return text


def _position(query: str, raw: str) -> str:
    """`line:column` of the fault where it can be told, else of the end of the query."""
    named = re.search(r"(?:function with name|call to) '(.*)'", raw)
    typed = re.search(r"call to function '(.*?)'", raw)
    place = len(query)
    if named:
        place = max(0, query.find(named[1]))
    elif typed:
        place = query.find("(", max(0, query.find(typed[1]))) + 1
    elif "aggregation expression" in raw:
        place = query.find("(") + 1
    elif raw.startswith(_AT_START):
        place = 0
    return _line_column(query, place)


def _line_column(query: str, place: int) -> str:
    before = query[:place]
    return f"{before.count(chr(10)) + 1}:{place - before.rfind(chr(10))}"


def _unexpected(query: str) -> str:
    """What stands after the longest beginning that is a query: the parser says no more than `invalid`."""
    for token in reversed(list(_TOKEN.finditer(query))):
        try:
            ast.parse(query[: token.start()])
        except ValueError:
            continue
        what = "identifier " if token[0][0].isalpha() else "number " if token[0][0].isdigit() else ""
        shown = f'"{token[0]}"' if what else f'<op:"{token[0]}">'
        return f"{_line_column(query, token.start())}: parse error: unexpected {what}{shown}"
    return f"{_line_column(query, len(query))}: parse error: unexpected end of input"


def _refuse(query: str, name: str, what: str) -> None:
    place = query.find(name) + 1
    raise QueryError(f'1:{place}: parse error: {what} "{name}" is not enabled', "bad_data")


def _check_regex(query: str, pattern: str) -> None:
    try:
        compile_regex(pattern)
    except UsageError as error:
        first = re.search(r"\w+\s*[=!]~", query)
        raise QueryError(
            f"{_line_column(query, first.start() if first else 0)}: parse error: {error}", "bad_data"
        ) from error


def _check(query: str, node: Any) -> bool:
    if isinstance(node, ast.Call) and node.func.name in EXPERIMENTAL:
        _refuse(query, node.func.name, "function")
    if isinstance(node, ast.AggregateExpr) and str(node.op) in EXPERIMENTAL_AGGREGATIONS:
        raise QueryError(f"1:1: parse error: {node.op}() is experimental and must be enabled with {FLAG}", "bad_data")
    if isinstance(node, ast.BinaryExpr) and node.modifier is not None:
        fill = node.modifier.fill_values
        if fill is not None and (fill.lhs is not None or fill.rhs is not None):
            raise QueryError("1:1: parse error: binop fill modifiers are experimental and not enabled", "bad_data")
    if isinstance(node, ast.VectorSelector):
        for matcher in node.matchers.matchers:
            if str(matcher.op).endswith("Re"):
                _check_regex(query, matcher.value)
    if isinstance(node, ast.VectorSelector) and node.matchers.or_matchers:
        place = query.find(" or ") + 2
        raise QueryError(f'1:{place}: parse error: unexpected identifier "or" in label matching', "bad_data")
    return True


@lru_cache(maxsize=512)
def parse(query: str) -> Any:
    """The syntax tree of a query.

    Raises:
        QueryError: of kind `bad_data`; the text is what Prometheus puts after `invalid parameter "query": `.
    """
    try:
        tree = ast.parse(query)
    except ValueError as error:
        raw = str(error)
        if raw.startswith(ILLEGAL):
            _check_regex(query, raw.removeprefix(ILLEGAL))
        if raw.startswith("invalid promql query"):
            raise QueryError(_unexpected(query), "bad_data") from error
        raise QueryError(f"{_position(query, raw)}: parse error: {_message(raw)}", "bad_data") from error
    ast.walk(tree, lambda node: _check(query, node))
    return tree
