"""Writes a syntax tree as PromQL again: on one line, or indented as `/api/v1/format_query` does; or as JSON."""

from collections.abc import Callable, Iterable
from typing import Any

from itbench.telemetry.labels import NAME
from itbench.telemetry.promql import tree
from itbench.telemetry.promql.gotext import label_name, quote, show_duration, show_f, shown

MAX_LINE = 100


def _names(labels: Iterable[str]) -> str:
    return ", ".join(map(label_name, labels))


def _number(node: tree.Number) -> str:
    if not node.duration:
        return show_f(node.value)
    return ("-" if node.value < 0 else "") + show_duration(round(abs(node.value) * 1e9))


def _length(node: tree.Length) -> str:
    """A duration in brackets or after `offset`: numbers become durations."""
    if isinstance(node, tree.Span):
        return text(node)
    return ("-" if node.value < 0 else "") + show_duration(round(abs(node.value) * 1e9))


def _span(node: tree.Span) -> str:
    left = text(node.left) if node.left is not None else ""
    right = text(node.right) if node.right is not None else ""
    if node.op in ("step", "range"):
        shown = f"{node.op}()"
    elif node.op in ("min_of", "max_of"):
        shown = f"{node.op}({left}, {right})"
    elif node.left is None:
        shown = ("-" if node.op == "-" else "") + right
    else:
        shown = f"{left} {node.op} {right}"
    return f"({shown})" if node.wrapped else shown


def _at(node: tree.Timed) -> str:
    if node.at_ms is not None:
        return f" @ {node.at_ms / 1000.0:.3f}"
    return f" @ {node.anchor}()" if node.anchor else ""


def _offset(node: tree.Timed) -> str:
    return f" offset {_length(node.offset)}" if node.offset is not None else ""


def _braces(node: tree.Selector) -> str:
    shown = [
        f"{label_name(each.name)}{each.op}{quote(each.value)}"
        for each in node.matchers
        if not (each.name == NAME and each.op == "=" and each.value == node.name != "")
    ]
    return node.name + ("{" + ",".join(sorted(shown)) + "}" if shown else "")


def _extension(node: tree.Selector) -> str:
    return f" {node.extended}" if node.extended else ""


def _selector(node: tree.Selector) -> str:
    return _braces(node) + _at(node) + _extension(node) + _offset(node)


def _range(node: tree.Range) -> str:
    inner = node.selector
    return f"{_braces(inner)}[{_length(node.length)}]{_extension(inner)}{_at(inner)}{_offset(inner)}"


def _suffix(node: tree.Subquery) -> str:
    step = _length(node.step) if node.step is not None else ""
    return f"[{_length(node.length)}:{step}]{_at(node)}{_offset(node)}"


def _clause(node: tree.Aggregate) -> str:
    if node.without:
        return f"{node.op} without ({_names(node.labels)}) "
    return f"{node.op} by ({_names(node.labels)}) " if node.labels else node.op


def _aggregate(node: tree.Aggregate) -> str:
    param = text(node.param) + ", " if node.param is not None else ""
    return f"{_clause(node)}({param}{text(node.expr)})"


def _operator(node: tree.Binary) -> str:
    shown = node.op + (" bool" if node.return_bool else "")
    if node.labels or node.on or node.group:
        shown += f" {'on' if node.on else 'ignoring'} ({_names(node.labels)})"
    if node.group:
        shown += f" group_{node.group} ({_names(node.include)})"
    return shown


_TEXTS: dict[type, Callable[[Any], str]] = {
    tree.Number: _number,
    tree.Text: lambda node: quote(node.value),
    tree.Span: _span,
    tree.Selector: _selector,
    tree.Range: _range,
    tree.Subquery: lambda node: text(node.expr) + _suffix(node),
    tree.Paren: lambda node: f"({text(node.expr)})",
    tree.Unary: lambda node: node.op + text(node.expr),
    tree.Binary: lambda node: f"{text(node.left)} {_operator(node)} {text(node.right)}",
    tree.Call: lambda node: f"{node.name}({', '.join(map(text, node.args))})",
    tree.Aggregate: _aggregate,
}


def text(node: tree.Node) -> str:
    """The node on one line."""
    return _TEXTS[type(node)](node)


def _card(node: tree.Binary) -> str:
    if node.op in ("and", "or", "unless"):
        return "many-to-many"
    return {"left": "many-to-one", "right": "one-to-many"}.get(node.group, "one-to-one")


def _matching_json(node: tree.Binary) -> dict[str, Any] | None:
    if "scalar" in (node.left.type, node.right.type):
        return None
    return {
        "card": _card(node), "labels": node.labels, "on": node.on, "include": node.include,
        "fillValues": {"lhs": None, "rhs": None},
    }  # fmt: skip


def _length_json(node: tree.Length | None) -> dict[str, Any] | None:
    if node is None:
        return None
    if isinstance(node, tree.Number):
        return {"type": "numberLiteral", "val": show_f(node.value), "duration": node.duration}
    sides = {"lhs": _length_json(node.left), "rhs": _length_json(node.right)}
    return {"type": "durationExpr", "op": node.op, **sides, "wrapped": node.wrapped}


def _lengths_json(**lengths: tree.Length | None) -> dict[str, Any]:
    """Each length in milliseconds, and as an expression where it is one."""
    found: dict[str, Any] = {}
    for name, each in lengths.items():
        known = isinstance(each, tree.Number)
        found[name] = int(round(each.value * 1e9) / 1e6) if isinstance(each, tree.Number) else 0
        found[name + "Expr"] = None if known else _length_json(each)
    return found


def _timed_json(node: tree.Timed) -> dict[str, Any]:
    return {**_lengths_json(offset=node.offset), "timestamp": node.at_ms, "startOrEnd": node.anchor or None}


def _selector_json(node: tree.Selector) -> dict[str, Any]:
    matchers = [{"name": each.name, "value": each.value, "type": each.op} for each in node.matchers]
    modifiers = {"anchored": node.extended == "anchored", "smoothed": node.extended == "smoothed"}
    return {"name": node.name, "matchers": matchers, **_timed_json(node), **modifiers}


def _call_json(node: tree.Call) -> dict[str, Any]:
    signature = node.function
    shown = {"name": node.name, "argTypes": signature.args, "variadic": signature.variadic}
    return {"func": {**shown, "returnType": signature.returns}, "args": [as_json(each) for each in node.args]}


def _aggregate_json(node: tree.Aggregate) -> dict[str, Any]:
    param = as_json(node.param) if node.param is not None else None
    return {"op": node.op, "expr": as_json(node.expr), "param": param, "grouping": node.labels, "without": node.without}


def _binary_json(node: tree.Binary) -> dict[str, Any]:
    sides = {"lhs": as_json(node.left), "rhs": as_json(node.right)}
    return {"op": node.op, **sides, "matching": _matching_json(node), "bool": node.return_bool}


_JSON: dict[type, tuple[str, Callable[[Any], dict[str, Any]]]] = {
    tree.Number: ("numberLiteral", lambda node: {"val": show_f(node.value)}),
    tree.Text: ("stringLiteral", lambda node: {"val": shown(node.value)}),
    tree.Selector: ("vectorSelector", _selector_json),
    tree.Range: ("matrixSelector", lambda node: _selector_json(node.selector) | _lengths_json(range=node.length)),
    tree.Subquery: (
        "subquery",
        lambda node: (
            {"expr": as_json(node.expr), **_timed_json(node)} | _lengths_json(range=node.length, step=node.step)
        ),
    ),
    tree.Paren: ("parenExpr", lambda node: {"expr": as_json(node.expr)}),
    tree.Unary: ("unaryExpr", lambda node: {"op": node.op, "expr": as_json(node.expr)}),
    tree.Binary: ("binaryExpr", _binary_json),
    tree.Call: ("call", _call_json),
    tree.Aggregate: ("aggregation", _aggregate_json),
}


def as_json(node: tree.Node) -> dict[str, Any]:
    """The node as `/api/v1/parse_query` shows it."""
    kind, rest = _JSON[type(node)]
    return {"type": kind, **rest(node)}


def pretty(node: tree.Node, level: int = 0) -> str:
    """The node over several lines where one would be longer than 100 characters."""
    indent = "  " * level
    shown = text(node)
    if isinstance(node, tree.Unary):
        return indent + node.op + pretty(node.expr, level).strip()
    short = len(shown.encode()) <= MAX_LINE
    if isinstance(node, tree.Subquery):
        return shown if short else pretty(node.expr, level) + _suffix(node)
    if short or isinstance(node, tree.Selector | tree.Range | tree.Number | tree.Text):
        return indent + shown
    if isinstance(node, tree.Paren):
        return f"{indent}(\n{pretty(node.expr, level + 1)}\n{indent})"
    if isinstance(node, tree.Binary):
        left, right = pretty(node.left, level + 1), pretty(node.right, level + 1)
        return f"{left}\n{indent}{_operator(node)}\n{right}"
    if isinstance(node, tree.Aggregate):
        param = pretty(node.param, level + 1) + ",\n" if node.param is not None else ""
        return f"{indent}{_clause(node)}(\n{param}{pretty(node.expr, level + 1)}\n{indent})"
    assert isinstance(node, tree.Call), type(node)
    args = ",\n".join(pretty(each, level + 1) for each in node.args)
    return f"{indent}{node.name}(\n{args}\n{indent})"
