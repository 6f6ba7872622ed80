"""Parsing of PromQL by `promql-parser`, with the errors that Prometheus gives."""

import re
from functools import lru_cache
from typing import Any

import promql_parser as ast

from itbench.telemetry.promql.values import QueryError

EXPERIMENTAL = frozenset((
    "double_exponential_smoothing", "first_over_time", "histogram_quantiles", "info", "mad_over_time", "max_of",
    "min_of", "range", "step", "sort_by_label", "sort_by_label_desc", "start", "end", "ts_of_first_over_time",
    "ts_of_last_over_time", "ts_of_max_over_time", "ts_of_min_over_time",
))  # fmt: skip
"""Functions that Prometheus knows but refuses unless a feature flag is set."""
EXPERIMENTAL_AGGREGATIONS = frozenset(("limitk", "limit_ratio"))

_TYPES = {"matrix": "range vector", "vector": "instant vector"}
_REWRITES: tuple[tuple[str, str], ...] = (
    (r"^expected type (\w+) in (.*), got (\w+)$", r"expected type {1} in \2, got {3}"),
    (r"^unknown function with name '(.*)'$", r'unknown function with name "\1"'),
    (r"call to function '(.*?)'", r'call to function "\1"'),
    (r"in call to '(.*?)'", r'in call to "\1"'),
    (r"^set operator '(.*)' not allowed", r'set operator "\1" not allowed'),
    (r"^illegal regex for (.*)$", r"error parsing regexp: invalid pattern: `\1`"),
    (r"^bad number or duration syntax: (.*)$", r'bad number or duration syntax: "\1"'),
)


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
    name = re.match(r"unknown function with name '(.*)'$", raw)
    quoted = re.search(r"call to (?:function )?'(.*?)'", raw)
    place = len(query)
    found = name or quoted
    if found:
        place = max(0, query.find(found[1]))
    elif raw.startswith(
        ("vector selector must", "no expression", "binary expression", "set operator", "bool modifier")
    ):
        place = 0
    before = query[:place]
    return f"{before.count(chr(10)) + 1}:{place - before.rfind(chr(10))}"


def _refuse(query: str, name: str, what: str) -> None:
    place = query.find(name) + 1
    raise QueryError(f'1:{place}: parse error: {what} "{name}" is not enabled', "bad_data")


def _check(query: str, node: Any) -> bool:
    if isinstance(node, ast.Call) and node.func.name in EXPERIMENTAL:
        _refuse(query, node.func.name, "function")
    if isinstance(node, ast.AggregateExpr) and str(node.op) in EXPERIMENTAL_AGGREGATIONS:
        raise QueryError(
            f"1:1: parse error: {node.op}() is experimental and must be enabled with a feature flag", "bad_data"
        )
    if isinstance(node, ast.BinaryExpr) and node.modifier is not None:
        fill = node.modifier.fill_values
        if fill is not None and (fill.lhs is not None or fill.rhs is not None):
            raise QueryError("1:1: parse error: binop fill modifiers are experimental and not enabled", "bad_data")
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
        raise QueryError(f"{_position(query, raw)}: parse error: {_message(raw)}", "bad_data") from error
    ast.walk(tree, lambda node: _check(query, node))
    return tree
