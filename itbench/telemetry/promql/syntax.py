"""Parsing of PromQL: syntax and types, with the error texts of Prometheus; what has been parsed is remembered."""

from functools import lru_cache

from itbench.telemetry.promql.checks import Checker
from itbench.telemetry.promql.cursor import fault
from itbench.telemetry.promql.grammar import parse_expression, parse_selector
from itbench.telemetry.promql.tree import Node, Selector


@lru_cache(maxsize=512)
def parse(query: str) -> Node:
    """The syntax tree of a query. It is shared: nobody may change it.

    Raises:
        QueryError: of kind `bad_data`; the text is what Prometheus puts after `invalid parameter "query": `.
    """
    try:
        tree = parse_expression(query)
        Checker(query).check(tree)
    except RecursionError as error:
        raise fault(query, 0, "the expression is nested too deeply") from error
    return tree


@lru_cache(maxsize=512)
def parse_matcher(selector: str) -> Selector:
    """A series selector, as in `match[]`.

    Raises:
        QueryError: of kind `bad_data`.
    """
    return parse_selector(selector)
