"""Parsing of Go templates into nodes, with the error texts of Go. Called by `templates`, which executes them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from itbench.telemetry.promql.gotext import quote, unquote
from itbench.telemetry.template_functions import FUNCTIONS, TemplateError

_TOKEN = re.compile(
    r"""\s+|"(?:\\.|[^"\\\n])*"|`[^`]*`|\$?\w*(?:\.\w+)+|\$\w*|:=|[|(),=]|'(?:\\.|[^'\\\n])'"""
    r"|-?(?:\d[\w.]*(?:[eE][+-]?\d+)?|\.\d+)|\w+|\.|.",
    re.DOTALL,
)
_INSIDE = re.compile(r'(?:"(?:\\.|[^"\\\n])*"|`[^`]*`|(?!\}\}).)*', re.DOTALL)
_RESERVED = ("if", "else", "end", "range", "with", "define", "template", "block", "break", "continue")


class Word(str):
    """A token; `at` is its first character in the template."""

    at: int

    def __new__(cls, text: str, at: int) -> "Word":
        made = super().__new__(cls, text)
        made.at = at
        return made


@dataclass(frozen=True, slots=True)
class Operand:
    """`constant`, `dot`, `variable`, `pipe` or `function`: what it is called or holds, its fields, and where it stands."""

    kind: str
    value: Any
    fields: tuple[str, ...]
    at: int
    source: str


@dataclass(frozen=True, slots=True)
class Pipe:
    """`$a, $b := command | command`; commands are operands."""

    commands: tuple[tuple[Operand, ...], ...]
    variables: tuple[str, ...] = ()
    declares: bool = False


@dataclass(slots=True)
class Node:
    """`text`, `action`, `if`, `range`, `with`, `template`, `break` or `continue`."""

    kind: str
    text: str = ""
    pipe: Pipe | None = None
    at: int = 0
    body: list["Node"] = field(default_factory=list)
    other: list["Node"] = field(default_factory=list)


def _actions(source: str) -> Iterator[tuple[str, str, int]]:
    """Pieces of a template: (`text` or `action`, what it says, where it begins)."""
    place, trim = 0, False
    while True:
        begin = source.find("{{", place)
        text = source[place:] if begin < 0 else source[place:begin]
        text = text.lstrip(" \t\r\n") if trim else text
        if begin < 0:
            yield "text", text, place
            return
        inner = begin + 2
        if re.match(r"-\s", source[inner:]):
            text, inner = text.rstrip(" \t\r\n"), inner + 2
        yield "text", text, place
        comment = re.match(r"\s*/\*.*?\*/", source[inner:], re.DOTALL)
        end = inner + (comment.end() if comment else len(_INSIDE.match(source, inner)[0]))  # type: ignore[index]
        closing = re.match(r"\s*-?\}\}", source[end:])
        if source[end : end + 2] != "}}" and closing is None:
            odd = re.match(r'[^"`]*(?:"(?:\\.|[^"\\\n])*"[^"`]*|`[^`]*`[^"`]*)*"[^"]*$', source[inner:])
            raise TemplateError("unterminated quoted string" if odd else "unclosed action")
        said = source[inner:end]
        trim = bool(re.search(r"\s-$", said)) or (closing is not None and "-" in closing[0])
        place = source.index("}}", end) + 2
        if not comment:
            yield "action", re.sub(r"\s-$", "", said) if trim else said, inner


class _Parser:
    """Makes nodes of one template."""

    def __init__(self, source: str) -> None:
        self._pieces = _actions(source)
        self._stop: list[Word] = []
        self.defined: dict[str, list[Node]] = {}
        self._known: list[str] = ["$", "$labels", "$externalLabels", "$externalURL", "$value"]

    def parse(self) -> list[Node]:
        nodes, stop = self._list()
        if stop:
            raise TemplateError(f"unexpected {{{{{stop}}}}}")
        return nodes

    def _list(self) -> tuple[list[Node], str]:
        """Nodes up to `end` or `else`, which is returned too; empty at the end of the text."""
        nodes: list[Node] = []
        for kind, said, at in self._pieces:
            if kind == "text":
                nodes.append(Node("text", said))
                continue
            tokens = _words(said, at)
            if tokens and tokens[0] in ("end", "else"):
                self._stop = tokens
                return nodes, " ".join(tokens)
            node = self._node(tokens)
            if node is not None:
                nodes.append(node)
        return nodes, ""

    def _node(self, tokens: list[Word]) -> Node | None:
        word = str(tokens[0]) if tokens else ""
        if word in ("if", "range", "with"):
            return self._branch(word, tokens[1:])
        if word in ("break", "continue"):
            return Node(word)
        if word in ("define", "block", "template"):
            return self._template(word, tokens[1:])
        return Node("action", pipe=self._pipe(tokens, "command"))

    def _template(self, word: str, tokens: list[Word]) -> Node | None:
        if not tokens or tokens[0][0] not in '"`':
            raise TemplateError(f"unexpected {quote(tokens[0]) if tokens else 'end'} in {word} clause")
        name = unquote(tokens[0])
        pipe = self._pipe(tokens[1:], word) if len(tokens) > 1 else None
        if word != "template":
            self.defined[name] = self._ended(*self._list())
        return None if word == "define" else Node("template", name, pipe, at=tokens[0].at)

    @staticmethod
    def _ended(body: list[Node], stop: str) -> list[Node]:
        if stop != "end":
            raise TemplateError("unexpected EOF" if not stop else f"unexpected {{{{{stop}}}}}")
        return body

    def _branch(self, word: str, tokens: list[Word]) -> Node:
        known = len(self._known)
        node = Node(word, pipe=self._pipe(tokens, word))
        node.body, stop = self._list()
        if stop.startswith("else"):
            rest = self._stop[1:]
            if rest and rest[0] in ("if", "with"):
                node.other = [self._branch(str(rest[0]), rest[1:])]
                del self._known[known:]
                return node
            node.other, stop = self._list()
        self._ended([], stop)
        del self._known[known:]
        return node

    def _pipe(self, tokens: list[Word], word: str) -> Pipe:
        variables: list[str] = []
        declares = False
        width = 4 if word == "range" and tokens[1:2] == [","] else 2
        if tokens[width - 1 : width] in ([":="], ["="]) and tokens[0].startswith("$"):
            variables, declares = [str(each) for each in tokens[0 : width - 1 : 2]], tokens[width - 1] == ":="
            tokens = tokens[width:]
        if not tokens:
            raise TemplateError(f"missing value for {word}")
        commands = tuple(self._commands(tokens))
        if tokens:
            raise TemplateError(f"unexpected {quote(tokens[0])} in {word}")
        self._known += variables if declares else []
        return Pipe(commands, tuple(variables), declares)

    def _commands(self, tokens: list[Word]) -> Iterator[tuple[Operand, ...]]:
        while True:
            operands = []
            while tokens and tokens[0] not in ("|", ")"):
                operands.append(self._operand(tokens))
            if not operands:
                raise TemplateError("missing value for command")
            yield tuple(operands)
            if not tokens or tokens[0] != "|":
                return
            tokens.pop(0)

    def _operand(self, tokens: list[Word]) -> Operand:
        token = tokens.pop(0)
        text, at = str(token), token.at
        if token == "(":
            inner = Pipe(tuple(self._commands(tokens)))
            if not tokens or tokens.pop(0) != ")":
                raise TemplateError("unclosed left paren")
            fields = tokens.pop(0)[1:].split(".") if tokens and _FIELDS.fullmatch(tokens[0]) else []
            shown = " | ".join(" ".join(each.source for each in command) for command in inner.commands)
            return Operand("pipe", inner, tuple(fields), at, f"({shown})")
        if text[0] == "$":
            name, *names = text.split(".")
            if name not in self._known:
                raise TemplateError(f"undefined variable {quote(name)}")
            return Operand("variable", name, tuple(names), at + (len(name) if names else 0), text)
        if text == "." or _FIELDS.fullmatch(text):
            return Operand("dot", None, tuple(each for each in text.split(".") if each), at, text)
        if re.fullmatch(r"\w+", text) and not text[0].isdigit() and text not in ("true", "false", "nil", *_RESERVED):
            if text not in FUNCTIONS and text not in CONTEXTUAL:
                raise TemplateError(f"function {quote(text)} not defined")
            return Operand("function", text, (), at, text)
        return Operand("constant", _constant(text), (), at, text)


_FIELDS = re.compile(r"(?:\.\w+)+")


def _words(said: str, at: int) -> list[Word]:
    return [Word(match[0], at + match.start()) for match in _TOKEN.finditer(said) if not match[0].isspace()]


def _constant(text: str) -> Any:
    if text[0] in '"`' and len(text) > 1:
        return unquote(text)
    if text[0] == "'" and len(text) > 2:
        return ord(unquote(text))
    if text in ("true", "false", "nil"):
        return {"true": True, "false": False, "nil": None}[text]
    if re.fullmatch(r"-?[\d.].*", text):
        return _number(text)
    raise TemplateError("unterminated quoted string" if text[0] in "\"'" else f"unexpected {quote(text)} in operand")


CONTEXTUAL = ("query", "now", "externalURL", "and", "or")
"""Functions that need the scene, or do not look at all of their arguments."""


def _number(text: str) -> int | float:
    try:
        return int(text, 0) if not set(text) & set(".eEpP") or text[:2].lower() == "0x" else float(text)
    except ValueError as error:
        raise TemplateError(f"bad number syntax: {quote(text)}") from error


@lru_cache(maxsize=1024)
def parse_template(source: str) -> tuple[list[Node], dict[str, list[Node]]]:
    """The nodes of a template, and those of the templates that it defines.

    Raises:
        TemplateError: it cannot be parsed.
    """
    parser = _Parser(source)
    return parser.parse(), parser.defined
