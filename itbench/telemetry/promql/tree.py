"""The syntax tree of PromQL, with the place of each node in the query; `grammar` makes it, `engine` and `printer` read it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from itbench.telemetry.labels import NAME, Matcher
from itbench.telemetry.promql.functions import FUNCTIONS, Function

Type = Literal["scalar", "vector", "matrix", "string"]
SHOWN = {"vector": "instant vector", "matrix": "range vector"}
"""Types as messages name them, where they are named otherwise."""


@dataclass(slots=True, kw_only=True)
class Node:
    """A part of a query.

    Attributes:
        start, end: its first character, and the one after its last.
    """

    start: int = 0
    end: int = 0

    @property
    def type(self) -> Type:
        """What it evaluates to."""
        return "vector"

    def children(self) -> Iterator["Node"]:
        """The nodes directly below."""
        return iter(())


@dataclass(slots=True)
class Number(Node):
    """A number, or a duration in seconds (`duration`)."""

    value: float
    duration: bool = False

    @property
    def type(self) -> Type:
        """A scalar."""
        return "scalar"


@dataclass(slots=True)
class Text(Node):
    """A string."""

    value: str

    @property
    def type(self) -> Type:
        """A string."""
        return "string"


@dataclass(slots=True)
class Span(Node):
    """Arithmetic with durations; `op` is an operator, `step`, `range`, `min_of` or `max_of`.

    Attributes:
        left: None where the operator is unary.
        wrapped: it stood in parentheses.
    """

    op: str
    left: "Number | Span | None" = None
    right: "Number | Span | None" = None
    wrapped: bool = False


Length = Number | Span
"""A duration: seconds that are known, or that depend on the step or range of the query."""


@dataclass(slots=True)
class Timed(Node):
    """What `offset` and `@` may follow.

    Attributes:
        offset: None where there is none.
        at_ms: Unix milliseconds of `@`.
        anchor: `start` or `end` of `@ start()` and `@ end()`.
    """

    offset: Length | None = field(default=None, kw_only=True)
    at_ms: int | None = field(default=None, kw_only=True)
    anchor: str = field(default="", kw_only=True)


@dataclass(slots=True)
class Selector(Timed):
    """An instant vector selector.

    Attributes:
        name: of the metric where it stands before the braces.
        matchers: all of them, that of the name last.
        extended: `anchored` or `smoothed`.
    """

    name: str
    matchers: list[Matcher]
    extended: str = ""


@dataclass(slots=True)
class Range(Node):
    """A range selector; `offset` and `@` are kept in the selector."""

    selector: Selector
    length: Length

    @property
    def type(self) -> Type:
        """A range."""
        return "matrix"

    def children(self) -> Iterator[Node]:
        """The selector."""
        yield self.selector


@dataclass(slots=True)
class Subquery(Timed):
    """An expression evaluated at many moments; `step` is None where the default applies."""

    expr: Node
    length: Length
    step: Length | None = None

    @property
    def type(self) -> Type:
        """A range."""
        return "matrix"

    def children(self) -> Iterator[Node]:
        """The expression."""
        yield self.expr


@dataclass(slots=True)
class Paren(Node):
    """Parentheses."""

    expr: Node

    @property
    def type(self) -> Type:
        """That of what is inside."""
        return self.expr.type

    def children(self) -> Iterator[Node]:
        """The expression."""
        yield self.expr


@dataclass(slots=True)
class Unary(Node):
    """A sign before an expression that is not a number."""

    op: str
    expr: Node

    @property
    def type(self) -> Type:
        """That of the expression."""
        return self.expr.type

    def children(self) -> Iterator[Node]:
        """The expression."""
        yield self.expr


@dataclass(slots=True)
class Binary(Node):
    """A binary operation.

    Attributes:
        on: `labels` are the ones to compare (else the ones to ignore).
        group: `left` or `right`: the side with several elements per match.
        include: labels that the many side takes from the one side.
    """

    op: str
    left: Node
    right: Node
    return_bool: bool = False
    on: bool = False
    labels: tuple[str, ...] = ()
    group: str = ""
    include: tuple[str, ...] = ()

    @property
    def type(self) -> Type:
        """A scalar only if both sides are."""
        return "scalar" if self.left.type == "scalar" == self.right.type else "vector"

    def children(self) -> Iterator[Node]:
        """Both sides."""
        yield self.left
        yield self.right


@dataclass(slots=True)
class Call(Node):
    """A function call."""

    name: str
    args: list[Node]

    @property
    def function(self) -> Function:
        """The signature."""
        return FUNCTIONS[self.name]

    @property
    def type(self) -> Type:
        """What the function returns."""
        return self.function.returns

    def children(self) -> Iterator[Node]:
        """The arguments."""
        return iter(self.args)


@dataclass(slots=True)
class Aggregate(Node):
    """An aggregation; `param` is the first of two arguments."""

    op: str
    expr: Node
    param: Node | None = None
    labels: tuple[str, ...] = ()
    without: bool = False

    def children(self) -> Iterator[Node]:
        """Expression and parameter."""
        yield self.expr
        if self.param is not None:
            yield self.param


def bare(node: Node) -> Node:
    """The node without parentheses around it."""
    while isinstance(node, Paren):
        node = node.expr
    return node


def modifier_of(node: Node) -> str:
    """`anchored` or `smoothed` of a range, else empty."""
    inner = bare(node)
    return inner.selector.extended if isinstance(inner, Range) else ""


def walk(node: Node) -> Iterator[Node]:
    """The node and all nodes below it."""
    yield node
    for child in node.children():
        yield from walk(child)


def metric_name(selector: Selector) -> str:
    """The metric that a selector names, empty where it names none."""
    return next((each.value for each in selector.matchers if each.name == NAME and each.op == "="), "")
