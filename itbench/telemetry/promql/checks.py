"""Type checks of a syntax tree: the first fault in the order in which Prometheus looks is the one that is reported."""

from itbench.telemetry.labels import NAME
from itbench.telemetry.promql import tree
from itbench.telemetry.promql.cursor import fault
from itbench.telemetry.promql.gotext import quote
from itbench.telemetry.promql.values import QueryError

COMPARISONS = frozenset(("==", "!=", "<=", "<", ">=", ">"))
SETS = frozenset(("and", "or", "unless"))
_SCALAR_PARAMETER = frozenset(("topk", "bottomk", "quantile"))


def _shown(kind: str) -> str:
    return tree.SHOWN.get(kind, kind)


class Checker:
    """Checks the nodes of one query; every check raises QueryError of kind `bad_data`."""

    def __init__(self, query: str) -> None:
        self._query = query

    def check(self, node: tree.Node) -> str:
        """The type of a node that is in order, with all below it."""
        if isinstance(node, tree.Aggregate):
            self._aggregate(node)
        elif isinstance(node, tree.Binary):
            self._binary(node)
        elif isinstance(node, tree.Call):
            self._call(node)
        elif isinstance(node, tree.Selector):
            self._selector(node)
        elif isinstance(node, tree.Unary):
            self._unary(node)
        elif isinstance(node, tree.Subquery):
            kind = self.check(node.expr)
            if kind != "vector":
                raise self._fault(node.start, f"subquery is only allowed on instant vector, got {kind} instead")
        else:
            for child in node.children():
                self.check(child)
        return node.type

    def _fault(self, place: int, text: str) -> QueryError:
        return fault(self._query, place, text)

    def _expect(self, node: tree.Node, wanted: str, context: str) -> None:
        kind = self.check(node)
        if kind != wanted:
            raise self._fault(node.start, f"expected type {_shown(wanted)} in {context}, got {_shown(kind)}")

    def _aggregate(self, node: tree.Aggregate) -> None:
        self._expect(node.expr, "vector", "aggregation expression")
        if node.param is not None:
            wanted = "scalar" if node.op in _SCALAR_PARAMETER else "string"
            self._expect(node.param, wanted, "aggregation parameter")

    def _operator(self, node: tree.Binary) -> int:
        """Where the operator stands."""
        place = node.left.end
        while place < len(self._query) and self._query[place] in " \t\r\n":
            place += 1
        return place

    def _binary(self, node: tree.Binary) -> None:
        left, right = self.check(node.left), self.check(node.right)
        if node.return_bool and node.op not in COMPARISONS:
            raise self._fault(self._operator(node), "bool modifier can only be used on comparison operators")
        if node.op in COMPARISONS and not node.return_bool and left == right == "scalar":
            raise self._fault(self._operator(node), "comparisons between scalars must use BOOL modifier")
        twice = [label for label in node.labels if node.on and label in node.include]
        if twice:
            problem = f"label {quote(twice[0])} must not occur in ON and GROUP clause at once"
            raise self._fault(self._operator(node), problem)
        for side, kind in ((node.left, left), (node.right, right)):
            if kind not in ("scalar", "vector"):
                raise self._fault(side.start, "binary expression must contain only scalar and instant vector types")
        if left != "vector" or right != "vector":
            self._with_scalar(node)
        elif node.op in SETS and node.group:
            raise self._fault(node.start, f"no grouping allowed for {quote(node.op)} operation")

    def _with_scalar(self, node: tree.Binary) -> None:
        if node.labels:
            raise self._fault(node.start, "vector matching only allowed between instant vectors")
        if node.op in SETS:
            raise self._fault(node.start, f"set operator {quote(node.op)} not allowed in binary scalar expression")
        node.on, node.group, node.include = False, "", ()

    def _call(self, node: tree.Call) -> None:
        function, count = node.function, len(node.args)
        most, name = len(function.args), quote(node.name)
        if function.variadic == 0 and count != most:
            raise self._fault(node.start, f"expected {most} argument(s) in call to {name}, got {count}")
        if function.variadic and count < most - 1:
            raise self._fault(node.start, f"expected at least {most - 1} argument(s) in call to {name}, got {count}")
        if 0 < function.variadic < count - (most - 1):
            allowed = most - 1 + function.variadic
            raise self._fault(node.start, f"expected at most {allowed} argument(s) in call to {name}, got {count}")
        for place, arg in enumerate(node.args):
            self._expect(arg, function.args[min(place, most - 1)], f"call to function {name}")

    def _unary(self, node: tree.Unary) -> None:
        kind = self.check(node.expr)
        if kind not in ("scalar", "vector"):
            problem = "unary expression only allowed on expressions of type scalar or instant vector"
            raise self._fault(node.start, f"{problem}, got {quote(_shown(kind))}")

    def _selector(self, node: tree.Selector) -> None:
        if node.name:
            for matcher in node.matchers[:-1]:
                if matcher.name == NAME:
                    problem = f"metric name must not be set twice: {quote(node.name)} or {quote(matcher.value)}"
                    raise self._fault(node.start, problem)
        elif not any(not matcher.accepts("") for matcher in node.matchers):
            raise self._fault(node.start, "vector selector must contain at least one non-empty matcher")
