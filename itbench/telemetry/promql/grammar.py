"""The parser of PromQL: recursive descent, with the precedences and the error texts of Prometheus 3.

The work that is not about expressions is in `selectors` and `lengths`; types are checked afterwards, in `checks`.
"""

from dataclasses import dataclass

from itbench.telemetry.promql import lengths, selectors
from itbench.telemetry.promql.cursor import Cursor
from itbench.telemetry.promql.functions import FUNCTIONS
from itbench.telemetry.promql.gotext import quote, unquote
from itbench.telemetry.promql.lexer import AGGREGATORS, PREPROCESSORS, Token
from itbench.telemetry.promql.tree import Aggregate, Binary, Call, Node, Number, Paren, Selector, Text, Unary

_PRECEDENCE = {
    "or": 1, "and": 2, "unless": 2, "==": 3, "!=": 3, "<=": 3, "<": 3, ">=": 3, ">": 3, "</": 3, ">/": 3,
    "+": 4, "-": 4, "*": 5, "/": 5, "%": 5, "atan2": 5, "^": 6,
}  # fmt: skip
_NAMES = AGGREGATORS | PREPROCESSORS | {
    "identifier", "metric identifier", "by", "without", "offset", "fill", "fill_left", "fill_right", "and", "or", "unless",
    "anchored", "smoothed",
}  # fmt: skip
"""What may be the name of a metric."""
_STARTS = _NAMES | {"{", "(", "+", "-", "number", "duration", "string"}
_AFTER_GROUP = _STARTS - {"("}
"""What may follow `group_left` without labels."""
_WITH_PARAMETER = frozenset(("topk", "bottomk", "count_values", "quantile", "limitk", "limit_ratio"))
_FLAG = "--enable-feature=promql-experimental-functions"


def parse_expression(text: str) -> Node:
    """The syntax tree of a query, its types not yet checked.

    Raises:
        QueryError: of kind `bad_data`.
    """
    cursor = Cursor(text)
    if cursor.peek().kind == "eof":
        raise cursor.fail(0, "no expression found in input")
    found = _expression(cursor)
    cursor.expect("eof")
    return found


def parse_selector(text: str) -> Selector:
    """A series selector, as in `match[]`: without ranges, offsets or anything around it."""
    cursor = Cursor(text)
    token = cursor.peek()
    if token.kind not in _NAMES and token.kind != "{":
        raise cursor.unexpected()
    found = selectors.selector(cursor, None if token.kind == "{" else cursor.take())
    cursor.expect("eof")
    return found


def _expression(cursor: Cursor, least: int = 0) -> Node:
    left = _operand(cursor)
    while (strength := _PRECEDENCE.get(cursor.peek().kind, -1)) >= least:
        op = cursor.take()
        modifiers = _modifiers(cursor)
        right = _expression(cursor, strength + (op.kind != "^"))
        if modifiers.fill:
            raise cursor.fail(left.start, "binop fill modifiers are experimental and not enabled")
        left = Binary(
            op.kind, left, right, modifiers.return_bool, modifiers.on, modifiers.labels, modifiers.group,
            modifiers.include, start=left.start, end=right.end,
        )  # fmt: skip
    return left


@dataclass(slots=True)
class _Modifiers:
    """What may stand after a binary operator."""

    return_bool: bool = False
    on: bool = False
    labels: tuple[str, ...] = ()
    group: str = ""
    include: tuple[str, ...] = ()
    fill: bool = False


def _modifiers(cursor: Cursor) -> _Modifiers:
    found = _Modifiers(return_bool=cursor.accept("bool") is not None)
    matching = cursor.accept("on", "ignoring")
    if matching is not None:
        found.on, found.labels = matching.kind == "on", selectors.grouping(cursor)
        group = cursor.accept("group_left", "group_right")
        if group is not None:
            found.group = group.kind.removeprefix("group_")
            follow = cursor.peek().kind
            found.include = () if follow in _AFTER_GROUP else selectors.grouping(cursor)
    while cursor.accept("fill", "fill_left", "fill_right"):
        found.fill = True
        cursor.expect("(")
        cursor.accept("+", "-")
        lengths.literal(cursor)
        cursor.expect(")")
    return found


def _operand(cursor: Cursor) -> Node:
    """An expression without binary operators, its sign and its modifiers included."""
    sign = cursor.accept("+", "-")
    if sign is None:
        return _modified(cursor, _primary(cursor))
    inner = _expression(cursor, _PRECEDENCE["*"] + 1)
    if isinstance(inner, Number):
        inner.value = -inner.value if sign.kind == "-" else inner.value
        inner.start = sign.start
        return inner
    return Unary(sign.kind, inner, start=sign.start, end=inner.end)


def _modified(cursor: Cursor, node: Node) -> Node:
    """The node with the ranges, `offset`, `@`, `anchored` and `smoothed` that follow."""
    while (token := cursor.accept("[", "offset", "@", "anchored", "smoothed")) is not None:
        if token.kind == "[":
            node = selectors.in_brackets(cursor, node, token)
        elif token.kind == "offset":
            node = selectors.with_offset(cursor, node)
        elif token.kind == "@":
            node = selectors.with_at(cursor, node)
        else:
            node = selectors.with_extension(cursor, node, token.kind)
    return node


def _primary(cursor: Cursor) -> Node:
    token = cursor.peek()
    if token.kind in ("number", "duration"):
        return lengths.literal(cursor)
    if token.kind == "{":
        return selectors.selector(cursor, None)
    if token.kind not in _STARTS:
        raise cursor.unexpected()
    cursor.take()
    if token.kind == "string":
        return Text(unquote(token.text), start=token.start, end=token.end)
    if token.kind == "(":
        inner = _expression(cursor)
        closing = cursor.expect(")")
        return Paren(inner, start=token.start, end=closing.end)
    follow = cursor.peek().kind
    if token.kind in AGGREGATORS and follow in ("(", "by", "without"):
        return _aggregate(cursor, token)
    if follow == "(" and (token.kind == "identifier" or token.kind in PREPROCESSORS):
        return _call(cursor, token)
    return selectors.selector(cursor, token)


def _arguments(cursor: Cursor) -> list[Node]:
    cursor.expect("(")
    if cursor.accept(")"):
        return []
    found = [_expression(cursor)]
    while cursor.peek().kind == ",":
        comma = cursor.take()
        if cursor.peek().kind not in _STARTS:
            raise cursor.fail(comma.start, "trailing commas not allowed in function call args")
        found.append(_expression(cursor))
    cursor.expect(")")
    return found


def _call(cursor: Cursor, name: Token) -> Call:
    args = _arguments(cursor)
    function = FUNCTIONS.get(name.text)
    if function is None:
        raise cursor.fail(name.start, f"unknown function with name {quote(name.text)}")
    if function.experimental:
        raise cursor.fail(name.start, f"function {quote(name.text)} is not enabled")
    return Call(name.text, args, start=name.start, end=cursor.end)


def _aggregate(cursor: Cursor, op: Token) -> Aggregate:
    with cursor.within("aggregation"):
        clause = cursor.accept("by", "without")
        labels = selectors.grouping(cursor) if clause is not None else ()
        args = _arguments(cursor)
        end = cursor.end
        if clause is None:
            clause = cursor.accept("by", "without")
            labels = selectors.grouping(cursor) if clause is not None else ()
            end = cursor.end
    if not args:
        raise cursor.fail(op.start, "no arguments for aggregate expression provided")
    if op.kind in ("limitk", "limit_ratio"):
        raise cursor.fail(op.start, f"{op.kind}() is experimental and must be enabled with {_FLAG}")
    wanted = 2 if op.kind in _WITH_PARAMETER else 1
    if len(args) != wanted:
        problem = f"wrong number of arguments for aggregate expression provided, expected {wanted}, got {len(args)}"
        raise cursor.fail(op.start, problem)
    without = clause is not None and clause.kind == "without"
    return Aggregate(op.kind, args[-1], args[0] if wanted == 2 else None, labels, without, start=op.start, end=end)
