"""Go templates in alert labels and annotations: `if`, `range`, `with`, `define`, variables, pipelines, and queries.

Parsed once into nodes, then executed over the alert's data; what goes wrong becomes the text that Prometheus writes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from itbench.core.errors import UsageError
from itbench.telemetry.promql.gotext import quote
from itbench.telemetry.template_functions import FUNCTIONS, Sample, TemplateError, is_true, kind_of, text_of
from itbench.telemetry.template_syntax import Node, Operand, Pipe, parse_template

MAX_DEPTH = 100
"""Templates that call each other do so at most so deep."""

MAX_ROUNDS = 100_000
"""Numbers that a template counts at most."""

Query = Callable[[str], list[Sample]]


@dataclass(frozen=True, slots=True)
class Scene:
    """What a template can ask about besides its alert.

    Attributes:
        name: of the alert, for messages.
        now: Unix seconds of the evaluation.
        query: evaluates PromQL at that time.
    """

    name: str = ""
    now: float = 0.0
    query: Query | None = None


class _Jump(Exception):
    """`break` or `continue`."""


class _Run:
    """One execution."""

    def __init__(self, defined: Mapping[str, list[Node]], data: Mapping[str, Any], scene: Scene) -> None:
        self._defined, self._scene = defined, scene
        self._variables: list[tuple[str, Any]] = [
            ("$", data), ("$labels", data["Labels"]), ("$externalLabels", data["ExternalLabels"]),
            ("$externalURL", data["ExternalURL"]), ("$value", data["Value"]),
        ]  # fmt: skip
        self._pieces: list[str] = []
        self._depth = 0

    def text(self, nodes: list[Node], dot: Any) -> str:
        self._walk(nodes, dot)
        return "".join(self._pieces)

    def _walk(self, nodes: list[Node], dot: Any) -> None:
        known = len(self._variables)
        for node in nodes:
            if node.kind == "text":
                self._pieces.append(node.text)
            elif node.kind in ("break", "continue"):
                raise _Jump(node.kind)
            else:
                getattr(self, f"_{node.kind}")(node, dot)
        del self._variables[known:]

    def _action(self, node: Node, dot: Any) -> None:
        assert node.pipe is not None
        value = self._value(node.pipe, dot)
        if not node.pipe.variables:
            self._pieces.append(text_of(value))

    def _if(self, node: Node, dot: Any) -> None:
        self._choose(node, dot, keep=True)

    def _with(self, node: Node, dot: Any) -> None:
        self._choose(node, dot, keep=False)

    def _choose(self, node: Node, dot: Any, *, keep: bool) -> None:
        assert node.pipe is not None
        known = len(self._variables)
        value = self._value(node.pipe, dot)
        if is_true(value):
            self._walk(node.body, dot if keep else value)
        else:
            self._walk(node.other, dot)
        del self._variables[known:]

    def _range(self, node: Node, dot: Any) -> None:
        assert node.pipe is not None
        known = len(self._variables)
        value = self._commands(node.pipe, dot)
        pairs = self._pairs(value)
        names = node.pipe.variables
        for key, each in pairs:
            self._variables += [*zip(names, (key, each) if len(names) == 2 else (each,), strict=False)]
            try:
                self._walk(node.body, each)
            except _Jump as jump:
                if str(jump) == "break":
                    break
            finally:
                del self._variables[known:]
        if not pairs:
            self._walk(node.other, dot)

    @staticmethod
    def _pairs(value: Any) -> list[tuple[Any, Any]]:
        if isinstance(value, Mapping):
            return [(key, value[key]) for key in sorted(value)]
        if isinstance(value, list):
            return list(enumerate(value))
        if isinstance(value, int) and not isinstance(value, bool):
            if value > MAX_ROUNDS:
                raise TemplateError(f"range can't iterate over more than {MAX_ROUNDS} numbers")
            return [(each, each) for each in range(value)]
        if value is None:
            return []
        raise TemplateError(f"range can't iterate over {text_of(value)}")

    def _template(self, node: Node, dot: Any) -> None:
        body = self._defined.get(node.text)
        if body is None:
            problem = f"template {quote(node.text)} not defined"
            raise TemplateError(problem, node.at, f"{{{{template {quote(node.text)}}}}}")
        if self._depth >= MAX_DEPTH:
            raise TemplateError("exceeded maximum template depth (100000)")
        inner = self._value(node.pipe, dot) if node.pipe is not None else None
        outside, self._variables = self._variables, [("$", inner)]
        self._depth += 1
        self._walk(body, inner)
        self._depth -= 1
        self._variables = outside

    def _value(self, pipe: Pipe, dot: Any) -> Any:
        value = self._commands(pipe, dot)
        for name in pipe.variables[:1]:
            if pipe.declares:
                self._variables.append((name, value))
            else:
                place = max(place for place, (known, _) in enumerate(self._variables) if known == name)
                self._variables[place] = name, value
        return value

    def _commands(self, pipe: Pipe, dot: Any) -> Any:
        last: list[Any] = []
        for operands in pipe.commands:
            last = [self._command(operands, dot, last)]
        return last[0]

    def _command(self, operands: tuple[Operand, ...], dot: Any, last: list[Any]) -> Any:
        head, rest = operands[0], operands[1:]
        if head.kind == "function":
            return self._call(head, rest, dot, last)
        if rest or last:
            raise TemplateError(f"can't give argument to non-function {head.source}", head.at, head.source)
        if head.kind == "constant" and head.value is None:
            raise TemplateError("nil is not a command", head.at, "nil")
        return self._operand(head, dot)

    def _operand(self, operand: Operand, dot: Any) -> Any:
        if operand.kind == "constant":
            return operand.value
        if operand.kind == "function":
            return self._call(operand, (), dot, [])
        if operand.kind == "variable":
            value = next(value for name, value in reversed(self._variables) if name == operand.value)
        else:
            value = dot if operand.kind == "dot" else self._commands(operand.value, dot)
        try:
            return self._fields(value, operand.fields)
        except TemplateError as error:
            raise TemplateError(str(error), operand.at, operand.source) from error

    @staticmethod
    def _fields(value: Any, fields: tuple[str, ...]) -> Any:
        for name in fields:
            if isinstance(value, Sample) and name in ("Labels", "Value"):
                value = value.labels if name == "Labels" else value.value
            elif isinstance(value, _Root) and name not in value:
                raise TemplateError(f"can't evaluate field {name} in type {_ROOT}")
            elif isinstance(value, Mapping):
                value = value.get(name, "")
            elif value is None:
                raise TemplateError(f"nil data; no entry for key {quote(name)}")
            else:
                raise TemplateError(f"can't evaluate field {name} in type {kind_of(value)}")
        return value

    def _call(self, function: Operand, operands: tuple[Operand, ...], dot: Any, last: list[Any]) -> Any:
        name = function.value
        if name in ("and", "or"):
            value: Any = None
            for value in [*(self._operand(each, dot) for each in operands), *last]:
                if is_true(value) == (name == "or"):
                    break
            return value
        arguments = [*(self._operand(each, dot) for each in operands), *last]
        try:
            if name == "query":
                return self._scene.query(*arguments) if self._scene.query is not None else []
            if name == "now":
                return self._scene.now
            return "" if name == "externalURL" else FUNCTIONS[name](*arguments)
        except (TypeError, AttributeError, UsageError, TemplateError) as error:
            shown = " ".join([name, *(each.source for each in operands)])
            raise TemplateError(f"error calling {name}: {error}", function.at, shown) from error


class _Root(dict[str, Any]):
    """What a template is given: unlike a map, it has no other fields."""


_ROOT = "struct { Labels map[string]string; ExternalLabels map[string]string; ExternalURL string; Value interface {} }"
_BEFORE = 112
"""Characters that Prometheus puts before each template, to define `$labels` and so on."""


def check(template: str, name: str) -> None:
    """Raises UsageError, in the words of Prometheus, for a template of this alert that cannot be parsed."""
    try:
        parse_template(template)
    except TemplateError as error:
        raise UsageError(f"template: __alert_{name}:1: {error}") from error


def _located(template: str, name: str, error: TemplateError) -> str:
    """Where an execution failed: `name:line:column: executing "name" at <context>: `."""
    if error.at is None:
        return f"{name}: "
    line = template.count("\n", 0, error.at) + 1
    column = len(template[template.rfind("\n", 0, error.at) + 1 : error.at].encode()) + (_BEFORE if line == 1 else 0)
    return f'{name}:{line}:{column}: executing "{name}" at <{error.context}>: '


def expand(
    template: str,
    labels: Mapping[str, str],
    value: float,
    external: Mapping[str, str] | None = None,
    scene: Scene | None = None,
) -> str:
    """The text of a template.

    Args:
        template: Go template text.
        labels: of the sample that made the alert.
        value: of that sample.
        external: external labels of the server.
        scene: what else it can ask about.

    Returns:
        The expanded text, or `<error expanding template: ...>` as Prometheus writes it.
    """
    if "{{" not in template:
        return template
    scene = scene or Scene()
    name = f"__alert_{scene.name}"
    try:
        nodes, defined = parse_template(template)
    except TemplateError as error:
        return f"<error expanding template: error parsing template {name}: template: {name}:1: {error}>"
    data = _Root(Labels=labels, ExternalLabels=dict(external or {}), ExternalURL="", Value=value)
    try:
        return _Run(defined, data, scene).text(nodes, data)
    except TemplateError as error:
        problem = f"{_located(template, name, error)}{error}"
    except (_Jump, RecursionError) as other:
        problem = f"{name}: {other}"
    return f"<error expanding template: error executing template {name}: template: {problem}>"


__all__ = ["Sample", "Scene", "TemplateError", "check", "expand"]
