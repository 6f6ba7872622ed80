"""CEL as Kubernetes uses it in policies, match conditions and schemas; called by admission and by custom resources.

    check([Rule("object.spec.replicas <= 5")], {"object": "dyn"})           # -> [Outcome(type="bool")] or .error
    evaluate([Rule("self.x > 0", {"self": {...}})], {"self": "dyn"})        # -> [Outcome(value=True)], .error or .fault

Expressions are evaluated in one child process per process, started when first needed: what agents write cannot harm the trial.
"""

import atexit
import json
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from itbench.engines.child import Child

Decide = Callable[[dict[str, Any]], dict[str, Any]]
"""A question to the authorizer (verb, group, resource, ...) -> `{allowed, reason}`."""
_MODULE = "itbench.engines.cel_kubernetes"
_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Rule:
    """One expression, with data of its own where it does not share that of the others."""

    expression: str
    data: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an expression came to.

    Attributes:
        type: static type in cel-go's words, such as `bool` or `list(dyn)`.
        error: why it does not compile, with the place, as cel-go prints it.
        fault: why it failed at run time.
        value: the value as JSON holds it, when neither is set.
    """

    type: str = ""
    value: Any = None
    error: str = ""
    fault: str = ""


@dataclass(slots=True)
class _Shared:
    """The child process of this process."""

    child: Child | None = None
    owner: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, message: dict[str, Any]) -> Any:
        with self.lock:
            if self.child is None or self.owner != os.getpid():
                self.child, self.owner = Child(_MODULE, timeout_s=20.0), os.getpid()
            return self.child.ask(message)

    def close(self) -> None:
        if self.child is not None and self.owner == os.getpid():
            self.child.close()
        self.child = None


_SHARED = _Shared()
close = _SHARED.close
"""End the child process; it comes back when somebody asks again."""
atexit.register(close)


def check(
    rules: Sequence[Rule], variables: dict[str, str], composed: Sequence[tuple[str, str]] = ()
) -> tuple[list[Outcome], list[Outcome]]:
    """Compile only: (outcomes of the composed variables, outcomes of the rules).

    Args:
        variables: name -> `dyn`, `map`, `string`, `int`, `bool` or `double`.
        composed: (name, expression) of each `variables.name`, in order.
    """
    rows = [{"expression": rule.expression} for rule in rules]
    answer = _SHARED.ask({"variables": variables, "composed": [list(row) for row in composed], "rows": rows})
    return _outcomes(answer["composed"]), _outcomes(answer["rows"])


def evaluate(
    rules: Sequence[Rule],
    variables: dict[str, str],
    data: dict[str, Any] | None = None,
    composed: Sequence[tuple[str, str]] = (),
    decide: Decide | None = None,
) -> list[Outcome]:
    """Evaluate expressions over common data, or over their own.

    Args:
        decide: answers what expressions ask the authorizer; without it every such question is a fault.

    Raises:
        EngineCrash: an expression made the engine give up.
    """
    rows = [{"expression": rule.expression} | ({"data": rule.data} if rule.data is not None else {}) for rule in rules]
    message: dict[str, Any] = {"variables": variables, "composed": [list(row) for row in composed], "rows": rows}
    message |= {"data": data or {}, "decisions": {}}
    for _ in range(_ROUNDS):
        answer = _SHARED.ask(message)
        if not answer["asks"] or decide is None:
            break
        for question in answer["asks"]:
            message["decisions"][json.dumps(question, sort_keys=True)] = decide(question)
    return _outcomes(answer["rows"])


def _outcomes(rows: list[dict[str, Any]]) -> list[Outcome]:
    return [Outcome(**row) for row in rows]
