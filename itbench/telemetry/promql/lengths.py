"""Parsing of numbers and durations: literals, and the arithmetic that may stand in brackets and after `offset`."""

import re

from itbench.telemetry.promql.cursor import Cursor
from itbench.telemetry.promql.gotext import parse_duration_ns, quote
from itbench.telemetry.promql.lexer import Token
from itbench.telemetry.promql.tree import Length, Number, Span
from itbench.telemetry.promql.values import QueryError

_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2, "^": 3}
_WHOLE = re.compile(r"0[xX]_?[0-9a-fA-F]+(?:_[0-9a-fA-F]+)*|0(?:_?[0-7])+|0|[1-9](?:_?[0-9])*", re.ASCII)
LIMIT_S = 2.0**63 / 1e9


def number_of(cursor: Cursor, token: Token) -> float:
    """The value of a number: hexadecimal, octal, decimal, `Inf` or `NaN`."""
    text = token.text
    if _WHOLE.fullmatch(text):
        digits = text.replace("_", "")
        octal = len(digits) > 1 and digits[0] == "0" and digits[1] not in "xX"
        whole = int(digits, 8 if octal else 0)
        if whole < 2**63:
            return float(whole)
    try:
        value = float("" if text[:2].lower() == "0x" else text)
    except ValueError as error:
        raise _unparsed(cursor, token, "invalid syntax") from error
    if value in (float("inf"), float("-inf")) and not text.lower().startswith("inf"):
        raise _unparsed(cursor, token, "value out of range")
    return value


def _unparsed(cursor: Cursor, token: Token, why: str) -> QueryError:
    problem = f"error parsing number: strconv.ParseFloat: parsing {quote(token.text)}: {why}"
    return cursor.fail(token.start, problem)


def literal(cursor: Cursor) -> Number:
    """A number or a duration."""
    token = cursor.expect("number", "duration")
    if token.kind == "number":
        return Number(number_of(cursor, token), start=token.start, end=token.end)
    try:
        ns = parse_duration_ns(token.text)
    except ValueError as error:
        raise cursor.fail(token.start, str(error)) from error
    return Number(ns / 1e9, duration=True, start=token.start, end=token.end)


def _bounded(cursor: Cursor, number: Number, place: int) -> Number:
    if abs(number.value) > LIMIT_S:
        raise cursor.fail(place, "duration out of range")
    return number


def _signed(cursor: Cursor, sign: Token, length: Length) -> Length:
    """A duration with a sign before it."""
    if isinstance(length, Span):
        if sign.kind == "+":
            return length
        return Span("-", None, length, start=sign.start, end=length.end)
    if sign.kind == "-":
        length.value = -length.value
    length.start = sign.start
    return _bounded(cursor, length, sign.start)


def _wrapped(length: Length) -> Span:
    if isinstance(length, Number):
        return Span("+", None, length, wrapped=True, start=length.start, end=length.end)
    length.wrapped = True
    return length


def _paren(cursor: Cursor) -> Span:
    cursor.expect("(")
    inside = arithmetic(cursor)
    cursor.expect(")")
    return _wrapped(inside)


def _keyword(cursor: Cursor) -> Span:
    """`step()`, `range()`, `min_of(a, b)`, `max_of(a, b)`."""
    word = cursor.expect("step", "range", "min_of", "max_of")
    cursor.expect("(")
    left = right = None
    if word.kind.endswith("_of"):
        left = arithmetic(cursor)
        cursor.expect(",")
        right = arithmetic(cursor)
    closing = cursor.expect(")")
    return Span(word.kind, left, right, start=word.start, end=closing.end)


def _term(cursor: Cursor) -> Length:
    token = cursor.peek()
    if token.kind in ("+", "-"):
        cursor.take()
        return _signed(cursor, token, arithmetic(cursor, _PRECEDENCE["*"] + 1))
    if token.kind == "(":
        return _paren(cursor)
    if token.kind in ("step", "range", "min_of", "max_of"):
        return _keyword(cursor)
    number = literal(cursor)
    return _bounded(cursor, number, number.start)


def arithmetic(cursor: Cursor, least: int = 0) -> Length:
    """An expression of durations; operators bind as in PromQL."""
    left = _term(cursor)
    while (strength := _PRECEDENCE.get(cursor.peek().kind, -1)) >= least:
        op = cursor.take()
        right = arithmetic(cursor, strength + (op.kind != "^"))
        if op.kind in "/%" and isinstance(right, Number) and right.value == 0:
            raise cursor.fail(op.start, "division by zero" if op.kind == "/" else "modulo by zero")
        left = Span(op.kind, left, right, start=left.start, end=right.end)
    return left


def positive(cursor: Cursor) -> Length:
    """A duration greater than 0, as far as that is known without the query's step and range."""
    found = arithmetic(cursor)
    if isinstance(found, Number) and found.value <= 0:
        raise cursor.fail(found.start, "duration must be greater than 0")
    return found


def offset(cursor: Cursor) -> Length:
    """What stands after `offset`: an expression needs parentheses, so that `foo offset 5m + 3` adds 3 to `foo`."""
    with cursor.within("offset", "number, duration, step(), or range()"):
        token = cursor.peek()
        if token.kind in ("number", "duration"):
            number = literal(cursor)
            return _bounded(cursor, number, number.start)
        if token.kind in ("+", "-"):
            cursor.take()
            follow = cursor.peek().kind
            if follow == "(":
                return _signed(cursor, token, _paren(cursor))
            if follow in _WORDS:
                word = _keyword(cursor)
                return Span(token.kind, None, word, start=token.start, end=word.end)
            return _signed(cursor, token, literal(cursor))
        return _keyword(cursor) if token.kind in _WORDS else arithmetic(cursor)


_WORDS = ("step", "range", "min_of", "max_of")
