"""Splits a query into tokens, one at a time, with the errors that Prometheus gives for characters it cannot read."""

from collections.abc import Callable
from dataclasses import dataclass

from itbench.telemetry.promql.gotext import name_rune, quote, quote_rune

AGGREGATORS = frozenset((
    "avg", "bottomk", "count", "count_values", "group", "max", "min", "quantile", "stddev", "stdvar", "sum", "topk",
    "limitk", "limit_ratio",
))  # fmt: skip
KEYWORDS = frozenset((
    "bool", "by", "group_left", "group_right", "fill", "fill_left", "fill_right", "ignoring", "offset", "smoothed",
    "anchored", "on", "without",
))  # fmt: skip
WORD_OPERATORS = frozenset(("and", "or", "unless", "atan2"))
PREPROCESSORS = frozenset(("start", "end", "step", "range", "max_of", "min_of"))
SYMBOL_OPERATORS = frozenset(
    ("+", "-", "*", "/", "%", "^", "==", "!=", "<=", "<", ">=", ">", "</", ">/", "=~", "!~", "@")
)
WORDS = AGGREGATORS | KEYWORDS | WORD_OPERATORS | PREPROCESSORS
_IN_BRACKETS = frozenset(("step", "range", "max_of", "min_of"))
_SPACES = " \t\n\r"
_DIGITS = "0123456789"
_SIMPLE = {"*": "*", "/": "/", "%": "%", "+": "+", "-": "-", "^": "^", ",": ",", "@": "@"}


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the query.

    Attributes:
        kind: the text of a symbol or keyword, or `identifier`, `metric identifier`, `number`, `duration`, `string`, `eof`.
        start: its first character.
        text: as it stands in the query.
    """

    kind: str
    start: int
    text: str

    @property
    def end(self) -> int:
        """The character after it."""
        return self.start + len(self.text)

    def describe(self) -> str:
        """As messages name it."""
        if self.kind == "eof":
            return "end of input"
        if self.kind in ("identifier", "metric identifier"):
            return f"{self.kind} {quote(self.text)}"
        if self.kind in KEYWORDS:
            return f"<{self.text}>"
        if self.kind in SYMBOL_OPERATORS or self.kind in WORD_OPERATORS:
            return f"<op:{self.text}>"
        if self.kind in AGGREGATORS:
            return f"<aggr:{self.text}>"
        shown = quote(self.text[:10]) + "..." if len(self.text.encode()) > 10 else quote(self.text)
        return f"{self.kind} {shown}" if self.kind in ("string", "number", "duration") else shown


class Unreadable(Exception):
    """A character that no token begins with or goes on with, and where."""

    def __init__(self, place: int, text: str) -> None:
        self.place = place
        super().__init__(text)


def is_alpha(char: str) -> bool:
    """A letter of a name (the end of the input is none)."""
    return char == "_" or ("a" <= char <= "z") or ("A" <= char <= "Z")


def is_digit(char: str) -> bool:
    """An ASCII digit."""
    return "0" <= char <= "9"


def _is_word(char: str) -> bool:
    return is_alpha(char) or is_digit(char)


class Lexer:
    """The tokens of one query; `next` gives one after the other and then `eof` for ever.

    Attributes:
        text: the query.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._pos = self._start = 0
        self._depth = 0
        self._bracket = self._colon = self._duration = False
        self._state: Callable[[], Token | None] = self._statement

    def next(self) -> Token:
        """The next token.

        Raises:
            Unreadable: there is none.
        """
        while True:
            token = self._state()
            if token is not None:
                return token

    def _peek(self) -> str:
        return self.text[self._pos : self._pos + 1]

    def _take(self) -> str:
        char = self.text[self._pos : self._pos + 1]
        self._pos += len(char)
        return char

    def _accept(self, valid: str) -> bool:
        char = self._peek()
        if char and char in valid:
            self._pos += 1
            return True
        return False

    def _emit(self, kind: str) -> Token:
        token = Token(kind, self._start, self.text[self._start : self._pos])
        self._start = self._pos
        return token

    def _fail(self, text: str) -> Unreadable:
        return Unreadable(self._start, text)

    def _skip(self) -> bool:
        """Leave out spaces and comments; whether there were any."""
        begin = self._pos
        while char := self._peek():
            if char in _SPACES:
                self._pos += 1
            elif char == "#":
                while self._peek() and self._peek() not in "\r\n":
                    self._pos += 1
            else:
                break
        self._start = self._pos
        return self._pos > begin

    def _statement(self) -> Token | None:
        self._skip()
        char = self._take()
        if not char:
            if self._depth:
                raise self._fail("unclosed left parenthesis")
            if self._bracket:
                raise self._fail("unclosed left bracket")
            return self._emit("eof")
        if char in _SIMPLE:
            return self._emit(_SIMPLE[char])
        if char in "=!<>":
            return self._comparison(char)
        if is_digit(char) or (char == "." and is_digit(self._peek())):
            self._pos -= 1
            return self._number()
        if char in "\"'`":
            return self._string(char)
        if char in "()":
            return self._paren(char)
        if char in "{[]":
            return self._opening(char)
        if is_alpha(char) or char == ":":
            return self._name(char)
        raise self._fail(f"unexpected character: {quote_rune(char)}")

    def _comparison(self, char: str) -> Token:
        follow = self._peek()
        if char == "=":
            if follow == "~":
                raise self._fail("unexpected character after '=': '~'")
            return self._emit("==" if self._accept("=") else "=")
        if char == "!":
            self._take()
            if follow != "=":
                raise self._fail(f"unexpected character after '!': {quote_rune(follow)}")
            return self._emit("!=")
        return self._emit(char + follow if self._accept("=/") else char)

    def _paren(self, char: str) -> Token:
        token = self._emit(char)
        self._depth += 1 if char == "(" else -1
        if self._depth < 0:
            raise self._fail("unexpected right parenthesis ')'")
        return token

    def _opening(self, char: str) -> Token:
        if char == "{":
            self._state = self._in_braces
            return self._emit(char)
        if char == "]":
            if not self._bracket:
                raise self._fail("unexpected right bracket ']'")
            self._bracket = False
            return self._emit(char)
        if self._bracket:
            raise self._fail("unexpected left bracket '['")
        self._bracket, self._colon, self._duration = True, False, False
        self._state = self._in_brackets
        return self._emit(char)

    def _name(self, char: str) -> Token:
        if self._bracket:
            return self._name_in_brackets(char)
        while _is_word(self._peek()) or self._peek() == ":":
            self._pos += 1
        word = self.text[self._start : self._pos]
        kind = word.lower()
        if kind in ("fill", "fill_left", "fill_right") and not self.text[self._pos :].lstrip(_SPACES).startswith("("):
            return self._emit("identifier")
        if kind in ("inf", "nan"):
            return self._emit("number")
        return self._emit(kind if kind in WORDS else "metric identifier" if ":" in word else "identifier")

    def _name_in_brackets(self, char: str) -> Token:
        if char == ":":
            if self._colon:
                raise self._fail("unexpected colon ':'")
            self._colon = True
            return self._emit(":")
        token = self._keyword()
        if token is None:
            raise self._fail(f"unexpected character: {quote_rune(char)}, expected ':'")
        return token

    def _keyword(self) -> Token | None:
        """`step`, `range`, `max_of`, `min_of` within brackets."""
        if self.text[self._start].lower() not in "srm":
            return None
        while is_alpha(self._peek()):
            self._pos += 1
        word = self.text[self._start : self._pos].lower()
        return self._emit(word) if word in _IN_BRACKETS else None

    def _in_braces(self) -> Token | None:
        self._skip()
        char = self._take()
        if not char:
            raise self._fail("unexpected end of input inside braces")
        if is_alpha(char):
            while _is_word(self._peek()):
                self._pos += 1
            return self._emit("identifier")
        if char == ",":
            return self._emit(",")
        if char in "\"'`":
            return self._string(char)
        if char == "=":
            return self._emit("=~" if self._accept("~") else "=")
        if char == "!":
            follow = self._take()
            if follow not in ("~", "="):
                raise self._fail(f"unexpected character after '!' inside braces: {quote_rune(follow)}")
            return self._emit(char + follow)
        if char == "{":
            raise self._fail("unexpected left brace '{'")
        if char == "}":
            self._state = self._statement
            return self._emit("}")
        raise self._fail(f"unexpected character inside braces: {quote_rune(char)}")

    def _in_brackets(self) -> Token | None:
        while self._peek() and self._peek() in _SPACES:
            self._pos += 1
        self._start = self._pos
        char = self._take()
        if not char:
            raise self._fail("unexpected end of input in duration expression")
        if char == "]":
            self._bracket = self._colon = False
            self._state = self._statement
            return self._emit("]")
        if char == ":":
            token = self._emit(":")
            if not self._duration:
                raise self._fail("unexpected colon before duration in duration expression")
            if self._colon:
                raise self._fail("unexpected repeated colon in duration expression")
            self._colon = True
            return token
        if char in "()":
            return self._paren(char)
        if char in "+-*/%^,":
            return self._emit(char)
        if is_digit(char) or (char == "." and is_digit(self._peek())):
            self._pos -= 1
            self._duration = True
            self._state = self._statement  # a number ends the expression for the scanner, not for the parser
            return self._number()
        token_or_none = self._keyword()
        if token_or_none is None:
            raise self._fail(f"unexpected character in duration expression: {quote_rune(char)}")
        self._duration = True
        return token_or_none

    def _string(self, mark: str) -> Token:
        while True:
            char = self._take()
            if char == mark:
                return self._emit("string")
            if not char or (char == "\n" and mark != "`"):
                raise self._fail("unterminated raw string" if mark == "`" else "unterminated quoted string")
            if char == "\ufffd":
                raise self._fail("invalid UTF-8 rune")
            if char == "\\" and mark != "`":
                self._escape(mark)

    def _escape(self, mark: str) -> None:
        char = self._take()
        if char and (char in "abfnrtv\\" or char == mark):
            return
        if not char:
            raise self._fail("escape sequence not terminated")
        if char in "01234567":
            count, base, most = 3, 8, 255
        elif char in "xuU":
            count, base, most = {"x": 2, "u": 4, "U": 8}[char], 16, 255 if char == "x" else 0x10FFFF
            char = self._take()
        else:
            raise self._fail(f"unknown escape sequence {name_rune(char)}")
        code = 0
        for left in range(count, 0, -1):
            digit = int(char, 16) if char and char in "0123456789abcdefABCDEF" else 16
            if digit >= base:
                text = f"illegal character {name_rune(char)} in escape sequence"
                raise self._fail(text if char else "escape sequence not terminated")
            code = code * base + digit
            char = self._take() if left > 1 else ""
        if code > most or 0xD800 <= code < 0xE000:
            raise self._fail("escape sequence is an invalid Unicode code point")

    def _number(self) -> Token:
        if self._scan_number():
            return self._emit("number")
        if self._scan_duration():
            return self._emit("duration")
        raise self._fail(f"bad number or duration syntax: {quote(self.text[self._start : self._pos])}")

    def _scan_duration(self) -> bool:
        if not self._accept("smhdwy"):
            return False
        self._accept("s")
        while self._accept(_DIGITS):
            while self._accept(_DIGITS):
                pass
            if not self._accept("smhdw"):
                return False
            self._accept("s")
        if _is_word(self._peek()):
            self._pos += 1
            return False
        return True

    def _scan_number(self) -> bool:
        digits = _DIGITS
        if self._accept("0") and self._accept("xX"):
            self._accept("_")
            digits += "abcdefABCDEF"
        self._accept(".")
        self._accept(digits)
        dot = exponent = False
        while self._peek() and self._peek() in digits + "._eE":
            if (dot and self._accept(".")) or (exponent and self._accept("eE")):
                return False
            if self._accept("."):
                dot = True
                if self._accept("_.") or len(digits) > 10:
                    return False
            elif self._accept("eE"):
                exponent = True
                self._accept("+-")
                if self._accept("._eE") or not self._peek():
                    return False
            elif self._accept("_"):
                if self._accept("._eE") or not self._peek():
                    return False
            else:
                while self._accept(digits):
                    pass
        return not _is_word(self._peek())
