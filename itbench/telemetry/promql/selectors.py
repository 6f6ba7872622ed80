"""Parsing of label matchers in braces, of grouping labels, and of what may follow a selector: ranges, `offset`, `@`."""

from itbench.core.errors import UsageError
from itbench.telemetry.labels import NAME, Matcher
from itbench.telemetry.promql import lengths
from itbench.telemetry.promql.cursor import Cursor
from itbench.telemetry.promql.gotext import is_utf8, quote, unquote
from itbench.telemetry.promql.lexer import AGGREGATORS, KEYWORDS, PREPROCESSORS, WORD_OPERATORS, Token
from itbench.telemetry.promql.tree import Length, Node, Number, Range, Selector, Subquery, Timed

_GROUPING = AGGREGATORS | KEYWORDS - {"without"} | PREPROCESSORS | WORD_OPERATORS | {"identifier", "metric identifier"}
_OPERATORS = ("=", "!=", "=~", "!~")


def _matcher(cursor: Cursor) -> Matcher:
    with cursor.within("label matching", 'identifier or "}"'):
        name = cursor.expect("identifier", "string")
    text = unquote(name.text) if name.kind == "string" else name.text
    if name.kind == "string" and cursor.peek().kind not in _OPERATORS:
        return Matcher(NAME, "=", text)
    with cursor.within("label matching", "label matching operator"):
        op = cursor.expect(*_OPERATORS)
    with cursor.within("label matching", "string"):
        value = cursor.expect("string")
    try:
        return Matcher(text, op.kind, unquote(value.text))
    except UsageError as error:
        raise cursor.fail(name.start, str(error)) from error


def matchers(cursor: Cursor) -> list[Matcher]:
    """What stands in braces; the opening one comes next."""
    cursor.expect("{")
    if cursor.accept("}"):
        return []
    found = [_matcher(cursor)]
    with cursor.within("label matching", '"," or "}"'):
        while not cursor.accept("}"):
            cursor.expect(",")
            if cursor.accept("}"):
                break
            found.append(_matcher(cursor))
    return found


def selector(cursor: Cursor, name: Token | None) -> Selector:
    """A selector whose name, if it has one, has just been taken."""
    start = cursor.peek().start if name is None else name.start
    found = matchers(cursor) if name is None or cursor.peek().kind == "{" else []
    if name is None:
        return Selector("", found, start=start, end=cursor.end)
    return Selector(name.text, [*found, Matcher(NAME, "=", name.text)], start=start, end=cursor.end)


def _grouping_label(cursor: Cursor) -> str:
    with cursor.within("grouping opts", "label"):
        token = cursor.expect("string", *_GROUPING)
    text = unquote(token.text) if token.kind == "string" else token.text
    if not text or not is_utf8(text):
        raise cursor.fail(token.start, f"invalid label name for grouping: {quote(text)}")
    return text


def grouping(cursor: Cursor) -> tuple[str, ...]:
    """Labels in parentheses."""
    with cursor.within("grouping opts", '"("'):
        cursor.expect("(")
    if cursor.accept(")"):
        return ()
    found = [_grouping_label(cursor)]
    with cursor.within("grouping opts", '"," or ")"'):
        while not cursor.accept(")"):
            cursor.expect(",")
            if cursor.accept(")"):
                break
            found.append(_grouping_label(cursor))
    return tuple(found)


def _timed(cursor: Cursor, node: Node, modifier: str) -> Timed:
    """The part of the node that keeps `offset` and `@`."""
    target = node.selector if isinstance(node, Range) else node
    if not isinstance(target, Timed):
        raise cursor.fail(
            node.start,
            f"{modifier} modifier must be preceded by an instant vector selector or range vector selector or a subquery",
        )
    return target


def with_offset(cursor: Cursor, node: Node) -> Node:
    """The node after `offset`, which has just been taken."""
    found = lengths.offset(cursor)
    target = _timed(cursor, node, "offset")
    if target.offset is not None:
        raise cursor.fail(node.start, "offset may not be set multiple times")
    if not (isinstance(found, Number) and found.value == 0):
        target.offset = found
    node.end = cursor.end
    return node


def with_at(cursor: Cursor, node: Node) -> Node:
    """The node after `@`, which has just been taken."""
    with cursor.within("@", "timestamp"):
        word = cursor.accept("start", "end")
        if word is not None:
            cursor.expect("(")
            cursor.expect(")")
            seconds = 0.0
        else:
            sign = cursor.accept("+", "-")
            seconds = lengths.literal(cursor).value * (-1 if sign is not None and sign.kind == "-" else 1)
    if not -(2.0**63) < seconds < 2.0**63:
        shown = "NaN" if seconds != seconds else "+Inf" if seconds == float("inf") else f"{seconds:f}"
        shown = "-Inf" if seconds == -float("inf") else shown
        raise cursor.fail(node.start, f"timestamp out of bounds for @ modifier: {shown}")
    target = _timed(cursor, node, "@")
    if target.at_ms is not None or target.anchor:
        raise cursor.fail(node.start, "@ <timestamp> may not be set multiple times")
    target.anchor = word.kind if word is not None else ""
    target.at_ms = None if word is not None else _milliseconds(seconds)
    node.end = cursor.end
    return node


def _milliseconds(seconds: float) -> int:
    """Whole milliseconds, halves away from zero."""
    scaled = abs(seconds) * 1000.0
    whole = int(scaled)
    whole += scaled - whole >= 0.5
    return whole if seconds >= 0 else -whole


def with_extension(cursor: Cursor, node: Node, word: str) -> Node:
    """The node after `anchored` or `smoothed`, which has just been taken."""
    target = node.selector if isinstance(node, Range) else node
    if isinstance(target, Subquery):
        raise cursor.fail(node.start, f"{word} modifier is not supported for subqueries")
    if not isinstance(target, Selector):
        raise cursor.fail(node.start, f"{word} modifier not implemented")
    if target.extended not in ("", word):
        raise cursor.fail(node.start, "anchored and smoothed modifiers cannot be used together")
    target.extended = word
    return node


def in_brackets(cursor: Cursor, node: Node, opening: Token) -> Node:
    """The range or subquery of a node; the opening bracket has just been taken."""
    with cursor.within("subquery or range selector", "number, duration, step(), or range()"):
        length = lengths.positive(cursor)
    with cursor.within("subquery or range", '":" or "]"'):
        mark = cursor.expect(":", "]")
    if mark.kind == "]":
        return _range(cursor, node, length, opening)
    with cursor.within("subquery selector", 'number, duration, step(), range(), or "]"'):
        step = None if cursor.peek().kind == "]" else lengths.positive(cursor)
    with cursor.within("subquery selector", '"]"'):
        cursor.expect("]")
    return Subquery(node, length, step, start=node.start, end=cursor.end)


def _range(cursor: Cursor, node: Node, length: Length, opening: Token) -> Range:
    problem = ""
    if not isinstance(node, Selector):
        problem = "ranges only allowed for vector selectors"
    elif node.offset is not None:
        problem = "no offset modifiers allowed before range"
    elif node.at_ms is not None or node.anchor:
        problem = "no @ modifiers allowed before range"
    if problem or not isinstance(node, Selector):
        raise cursor.fail(opening.start, problem)
    return Range(node, length, start=node.start, end=cursor.end)
