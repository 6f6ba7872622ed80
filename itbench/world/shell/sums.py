"""Arithmetic of shells on 64-bit whole numbers, as in C: `+ - * / % == != < <= > >= && || !`, brackets, names of variables."""

import re
from collections.abc import Callable

_TOKEN = re.compile(r"\s*(?:(\d+)|([A-Za-z_]\w*)|\$(\w+)|(<=|>=|==|!=|&&|\|\||[-+*/%()<>!&|]))")
_LEVELS: tuple[tuple[str, ...], ...] = (
    ("||", "|"),
    ("&&", "&"),
    ("==", "!="),
    ("<", "<=", ">", ">="),
    ("+", "-"),
    ("*", "/", "%"),
)
"""Binary operators, weakest first."""


class BadSum(Exception):
    """The text is no arithmetic expression."""


def calculate(text: str, value_of: Callable[[str], str]) -> int:
    """The value of an expression.

    Args:
        text: the expression.
        value_of: the text of a variable; nothing counts as zero.

    Raises:
        BadSum: a syntax error, or a division by zero.
    """
    tokens: list[str] = []
    at = 0
    text = text.rstrip()
    while at < len(text):
        hit = _TOKEN.match(text, at)
        if hit is None:
            raise BadSum("arithmetic syntax error")
        number, name, dollar, operator = hit.groups()
        tokens.append(number or operator or str(_number(value_of(name or dollar))))
        at = hit.end()
    reader = _Reader(tokens)
    found = reader.level(0)
    if reader.tokens:
        raise BadSum("arithmetic syntax error")
    return (found + (1 << 63)) % (1 << 64) - (1 << 63)


def _number(text: str) -> int:
    try:
        return int(text or "0")
    except ValueError:
        return 0


class _Reader:
    """Descends through the levels; consumes its tokens."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens

    def level(self, index: int) -> int:
        if index == len(_LEVELS):
            return self.single()
        left = self.level(index + 1)
        while self.tokens and self.tokens[0] in _LEVELS[index]:
            operator = self.tokens.pop(0)
            left = _apply(operator, left, self.level(index + 1))
        return left

    def single(self) -> int:
        if not self.tokens:
            raise BadSum("arithmetic syntax error")
        token = self.tokens.pop(0)
        if token in ("-", "+", "!"):
            value = self.single()
            return -value if token == "-" else int(not value) if token == "!" else value
        if token == "(":
            value = self.level(0)
            if not self.tokens or self.tokens.pop(0) != ")":
                raise BadSum("arithmetic syntax error")
            return value
        try:
            return int(token)
        except ValueError:
            raise BadSum("arithmetic syntax error") from None


def _apply(operator: str, left: int, right: int) -> int:
    if operator in ("/", "%"):
        if right == 0:
            raise BadSum("divide by zero")
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if operator == "/" else left - quotient * right
    simple = {"+": left + right, "-": left - right, "*": left * right}
    if operator in simple:
        return simple[operator]
    logic = {
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
        "==": left == right,
        "!=": left != right,
        "&&": bool(left and right),
        "||": bool(left or right),
    }
    if operator in logic:
        return int(logic[operator])
    return (left if left and right else 0) if operator == "&" else (left or right)
