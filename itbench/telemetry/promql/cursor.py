"""Where the parser stands in a query, and what it says about a token that does not fit there.

Prometheus names, with a token that does not fit, the innermost construct that knows what should have come; `within` says
which that is.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from itbench.telemetry.promql.lexer import Lexer, Token, Unreadable
from itbench.telemetry.promql.values import QueryError


def line_column(query: str, place: int) -> str:
    """`line:column` of a character as messages show it: columns count bytes."""
    if not query:
        return "unknown position"
    before = query[:place]
    line_start = before.rfind("\n") + 1
    return f"{before.count(chr(10)) + 1}:{len(before[line_start:].encode()) + 1}"


def fault(query: str, place: int, text: str) -> QueryError:
    """An error of the parser."""
    return QueryError(f"{line_column(query, place)}: parse error: {text}", "bad_data")


class Cursor:
    """The tokens of a query with one token of look-ahead.

    Attributes:
        text: the query.
        end: the character after the last token that was taken.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.end = 0
        self._lexer = Lexer(text)
        self._ahead: Token | None = None
        self._contexts: list[tuple[str, str]] = []

    def peek(self) -> Token:
        """The next token."""
        if self._ahead is None:
            try:
                self._ahead = self._lexer.next()
            except Unreadable as problem:
                raise self.fail(problem.place, str(problem)) from problem
        return self._ahead

    def take(self) -> Token:
        """The next token, which is then behind."""
        token = self.peek()
        self._ahead = None
        self.end = token.end
        return token

    def accept(self, *kinds: str) -> Token | None:
        """The next token if it is of one of these kinds; then it is behind."""
        return self.take() if self.peek().kind in kinds else None

    def expect(self, *kinds: str) -> Token:
        """As `accept`; raises QueryError where another token comes."""
        if self.peek().kind not in kinds:
            raise self.unexpected()
        return self.take()

    @contextmanager
    def within(self, context: str, expected: str = "") -> Iterator[None]:
        """What does not fit is reported as not fitting here."""
        self._contexts.append((context, expected))
        try:
            yield
        finally:
            self._contexts.pop()

    def unexpected(self) -> QueryError:
        """The next token does not fit."""
        token = self.peek()
        text = f"unexpected {token.describe()}"
        if self._contexts:
            context, expected = self._contexts[-1]
            text += f" in {context}" + (f", expected {expected}" if expected else "")
        return self.fail(token.start, text)

    def fail(self, place: int, text: str) -> QueryError:
        """An error at a character."""
        return fault(self.text, place, text)
