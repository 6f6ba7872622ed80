"""Parses shell scripts into trees: quoting, expansions, pipes, redirects, lists, if, while, until, for, groups.

Pure; called by the interpreter. What a real shell would refuse raises `SyntaxFault` with its text.
"""

from dataclasses import dataclass, field

KEYWORDS = {"if", "then", "else", "elif", "fi", "while", "until", "do", "done", "for", "in", "{", "}", "!"}
OPERATORS = ("&&", "||", ";;", ">>", "2>&1", "1>&2", ">&2", "&>", "2>>", "2>", "<", ">", "|", ";", "&", "(", ")", "\n")


class SyntaxFault(Exception):
    """The script is not valid shell."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a word: literal text, a variable, or a command to substitute."""

    kind: str
    text: str
    quoted: bool = False
    default: "str | None" = None


@dataclass(frozen=True, slots=True)
class Word:
    """Pieces that stick together."""

    pieces: tuple[Piece, ...]

    @property
    def plain(self) -> str | None:
        """The text of an unquoted literal word (keywords are), else None."""
        if len(self.pieces) == 1 and self.pieces[0].kind == "text" and not self.pieces[0].quoted:
            return self.pieces[0].text
        return None


@dataclass(frozen=True, slots=True)
class Redirect:
    """`op` is one of < > >> 2> 2>> &> 2>&1 1>&2."""

    op: str
    target: Word | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """A tree: `kind` is simple, pipe, and, or, list, if, while, until, for, group, not, background."""

    kind: str
    words: tuple[Word, ...] = ()
    assigns: tuple[tuple[str, Word], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    parts: "tuple[Node, ...]" = ()
    name: str = ""


Token = str | Word


@dataclass(slots=True)
class _Lexer:
    text: str
    at: int = 0
    tokens: list[Token] = field(default_factory=list)

    def run(self) -> list[Token]:
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in " \t\r" or self.text.startswith("\\\n", self.at):
                self.at += 1 if char != "\\" else 2
            elif char == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                operator = self._operator()
                self.tokens.append(operator or self._word())
        return self.tokens

    def _operator(self) -> str:
        for operator in sorted(OPERATORS, key=len, reverse=True):
            if self.text.startswith(operator, self.at):
                self.at += len(operator)
                return operator
        return ""

    def _word(self) -> Word:
        pieces: list[Piece] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in " \t\r\n;|&()<>":
                break
            if char == "'":
                pieces.append(Piece("text", self._until("'"), quoted=True))
            elif char == '"':
                pieces += self._double()
            elif char == "$" or char == "`":
                pieces.append(self._expansion(quoted=False))
            elif char == "\\":
                pieces.append(Piece("text", self.text[self.at + 1 : self.at + 2], quoted=True))
                self.at += 2
            else:
                start = self.at
                while self.at < len(self.text) and self.text[self.at] not in " \t\r\n;|&()<>'\"$`\\":
                    self.at += 1
                pieces.append(Piece("text", self.text[start : self.at]))
        return Word(tuple(pieces))

    def _until(self, end: str) -> str:
        stop = self.text.find(end, self.at + 1)
        if stop < 0:
            raise SyntaxFault("syntax error: unterminated quoted string")
        found = self.text[self.at + 1 : stop]
        self.at = stop + 1
        return found

    def _double(self) -> list[Piece]:
        self.at += 1
        pieces: list[Piece] = [Piece("text", "", quoted=True)]
        literal = ""
        while True:
            if self.at >= len(self.text):
                raise SyntaxFault("syntax error: unterminated quoted string")
            char = self.text[self.at]
            if char == '"':
                self.at += 1
                break
            if char == "\\" and self.text[self.at + 1 : self.at + 2] in ('"', "\\", "$", "`", "\n"):
                literal += self.text[self.at + 1].replace("\n", "")
                self.at += 2
            elif char in "$`":
                if literal:
                    pieces.append(Piece("text", literal, quoted=True))
                    literal = ""
                pieces.append(self._expansion(quoted=True))
            else:
                literal += char
                self.at += 1
        if literal:
            pieces.append(Piece("text", literal, quoted=True))
        return pieces

    def _expansion(self, *, quoted: bool) -> Piece:
        if self.text[self.at] == "`":
            return Piece("command", self._until("`"), quoted)
        following = self.text[self.at + 1 : self.at + 2]
        if self.text.startswith("$((", self.at):
            inner = self._nested("(", ")")
            if inner.endswith(")"):
                return Piece("sum", inner[1:-1], quoted)
            return Piece("command", inner, quoted)
        if following == "(":
            return Piece("command", self._nested("(", ")"), quoted)
        if following == "{":
            inner = self._nested("{", "}")
            name, mark, default = inner.partition(":-")
            return Piece("variable", name, quoted, default if mark else None)
        self.at += 1
        start = self.at
        if following and following in "?$#@*0123456789":
            self.at += 1
        else:
            while self.at < len(self.text) and (self.text[self.at].isalnum() or self.text[self.at] == "_"):
                self.at += 1
        name = self.text[start : self.at]
        return Piece("variable", name, quoted) if name else Piece("text", "$", quoted=True)

    def _nested(self, opening: str, closing: str) -> str:
        depth, start = 0, self.at + 2
        at = self.at + 1
        while at < len(self.text):
            if self.text[at] == opening:
                depth += 1
            elif self.text[at] == closing:
                depth -= 1
                if depth == 0:
                    self.at = at + 1
                    return self.text[start:at]
            at += 1
        raise SyntaxFault("syntax error: unexpected end of file")


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self.tokens, self.at = tokens, 0

    def peek(self) -> Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def keyword(self) -> str:
        token = self.peek()
        if isinstance(token, Word) and token.plain in KEYWORDS:
            return str(token.plain)
        return ""

    def take(self) -> Token | None:
        token = self.peek()
        self.at += 1
        return token

    def skip_lines(self) -> None:
        while self.peek() == "\n":
            self.at += 1

    def expect(self, word: str) -> None:
        self.skip_lines()
        if self.keyword() != word and self.peek() != word:
            raise SyntaxFault(f'syntax error: unexpected {_shown(self.peek())} (expecting "{word}")')
        self.at += 1

    def commands(self, *stops: str) -> Node:
        parts: list[Node] = []
        while True:
            while self.peek() in ("\n", ";"):
                self.at += 1
            token = self.peek()
            if token is None or (self.keyword() and self.keyword() in stops) or (token == ")" and ")" in stops):
                break
            node = self.and_or()
            if self.peek() == "&":
                self.at += 1
                node = Node("background", parts=(node,))
            parts.append(node)
            if self.peek() not in ("\n", ";", None) and self.keyword() not in stops and self.peek() not in stops:
                if parts[-1].kind == "background":
                    continue
                raise SyntaxFault(f"syntax error: unexpected {_shown(self.peek())}")
        return Node("list", parts=tuple(parts))

    def and_or(self) -> Node:
        left = self.pipeline()
        while self.peek() in ("&&", "||"):
            kind = "and" if self.take() == "&&" else "or"
            self.skip_lines()
            left = Node(kind, parts=(left, self.pipeline()))
        return left

    def pipeline(self) -> Node:
        if self.keyword() == "!":
            self.at += 1
            return Node("not", parts=(self.pipeline(),))
        parts = [self.command()]
        while self.peek() == "|":
            self.at += 1
            self.skip_lines()
            parts.append(self.command())
        return parts[0] if len(parts) == 1 else Node("pipe", parts=tuple(parts))

    def command(self) -> Node:
        keyword = self.keyword()
        if keyword == "if":
            node = self.conditional()
        elif keyword in ("while", "until"):
            self.at += 1
            condition = self.commands("do")
            self.expect("do")
            body = self.commands("done")
            self.expect("done")
            node = Node(keyword, parts=(condition, body))
        elif keyword == "for":
            node = self.loop()
        elif keyword == "{" or self.peek() == "(":
            closing = "}" if keyword == "{" else ")"
            self.at += 1
            body = self.commands(closing)
            self.expect(closing)
            node = Node("group", parts=(body,))
        else:
            return self.simple()
        redirects = self.redirects()
        return Node("group", parts=(node,), redirects=redirects) if redirects else node

    def conditional(self) -> Node:
        self.at += 1
        condition = self.commands("then")
        self.expect("then")
        body = self.commands("else", "elif", "fi")
        if self.keyword() == "elif":
            return Node("if", parts=(condition, body, self.conditional()))
        other: tuple[Node, ...] = ()
        if self.keyword() == "else":
            self.at += 1
            other = (self.commands("fi"),)
        self.expect("fi")
        return Node("if", parts=(condition, body, *other))

    def loop(self) -> Node:
        self.at += 1
        name = self.take()
        words: list[Word] = []
        if self.keyword() == "in":
            self.at += 1
            while isinstance(self.peek(), Word) and self.keyword() != "do":
                token = self.take()
                assert isinstance(token, Word)
                words.append(token)
        while self.peek() in (";", "\n"):
            self.at += 1
        self.expect("do")
        body = self.commands("done")
        self.expect("done")
        return Node("for", words=tuple(words), parts=(body,), name=str(name.plain if isinstance(name, Word) else ""))

    def redirects(self) -> tuple[Redirect, ...]:
        found: list[Redirect] = []
        while (redirect := self.redirect()) is not None:
            found.append(redirect)
        return tuple(found)

    def redirect(self) -> Redirect | None:
        token = self.peek()
        if token in ("2>&1", "1>&2", ">&2"):
            self.at += 1
            return Redirect("1>&2" if token == ">&2" else str(token))
        if token in ("<", ">", ">>", "2>", "2>>", "&>"):
            self.at += 1
            target = self.take()
            if not isinstance(target, Word):
                raise SyntaxFault(f"syntax error: unexpected {_shown(target)}")
            return Redirect(str(token), target)
        return None

    def simple(self) -> Node:
        words: list[Word] = []
        assigns: list[tuple[str, Word]] = []
        redirects: list[Redirect] = []
        while True:
            redirect = self.redirect()
            if redirect is not None:
                redirects.append(redirect)
                continue
            token = self.peek()
            if not isinstance(token, Word):
                break
            self.at += 1
            assigned = _assignment(token) if not words else None
            if assigned is not None:
                assigns.append(assigned)
            else:
                words.append(token)
        if not words and not assigns and not redirects:
            raise SyntaxFault(f"syntax error: unexpected {_shown(self.peek())}")
        return Node("simple", words=tuple(words), assigns=tuple(assigns), redirects=tuple(redirects))


def _assignment(word: Word) -> tuple[str, Word] | None:
    first = word.pieces[0] if word.pieces else None
    if first is None or first.kind != "text" or first.quoted or "=" not in first.text:
        return None
    name, _, rest = first.text.partition("=")
    if not name.isidentifier():
        return None
    return name, Word((Piece("text", rest), *word.pieces[1:]))


def _shown(token: Token | None) -> str:
    if token is None:
        return "end of file"
    if token == "\n":
        return "newline"
    return f'"{token if isinstance(token, str) else "".join(piece.text for piece in token.pieces)}"'


def parse(script: str) -> Node:
    """A script as a tree; raises SyntaxFault."""
    parser = _Parser(_Lexer(script).run())
    node = parser.commands()
    if parser.peek() is not None:
        raise SyntaxFault(f"syntax error: unexpected {_shown(parser.peek())}")
    return node
