"""CEL, evaluated in a child process. Called by evaluate (state checks) and policy."""

import contextlib
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from itbench.engines.child import Child

_OBJECTS = "itbench.engines.cel_objects"
_kept: list[Child] = []


def over_objects(objects: dict[str, list[dict[str, Any]]], expressions: list[str]) -> list[dict[str, Any]]:
    """Evaluate expressions over Kubernetes objects.

    Args:
        objects: by resource (`deployments.apps`), as a snapshot holds them.
        expressions: CEL with one function per resource: `deployment("shop", "checkout")` (null when missing), `node("node-1")`,
            and the plural for all: `pods().filter(p, p.metadata.namespace == "shop")`.

    Returns:
        One `{"value": ...}` or `{"error": text}` per expression. Errors are never truthy.
    """
    message = {"objects": objects, "expressions": expressions}
    with contextlib.nullcontext(_kept[-1]) if _kept else Child(_OBJECTS) as child:
        answer: list[dict[str, Any]] = child.ask(message)
        return answer


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """One engine for all that is evaluated inside; it starts at once, while the caller still does something else."""
    with Child(_OBJECTS) as child:
        child.start()
        _kept.append(child)
        try:
            yield
        finally:
            _kept.remove(child)


@lru_cache(maxsize=1024)
def problem(expression: str, resources: tuple[str, ...]) -> str:
    """Why an expression over objects of these resources can never be true: it does not compile, or is no yes or no.

    It is compiled in this process (a millisecond, bounds on size and nesting are the compiler's own) and not evaluated.

    Args:
        expression: as for `over_objects`.
        resources: whose functions there are.

    Returns:
        One line; empty when all is well.
    """
    from itbench.engines.cel_objects import compile_over  # loads the engine, which only state checks need

    return compile_over(expression, resources)
