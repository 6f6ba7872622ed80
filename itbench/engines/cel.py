"""CEL, evaluated in a child process. Called by evaluate (state checks) and policy."""

from typing import Any

from itbench.engines.child import Child


def over_objects(objects: dict[str, list[dict[str, Any]]], expressions: list[str]) -> list[dict[str, Any]]:
    """Evaluate expressions over Kubernetes objects.

    Args:
        objects: by resource (`deployments.apps`), as a snapshot holds them.
        expressions: CEL with one function per resource: `deployment("shop", "checkout")` (null when missing), `node("node-1")`,
            and the plural for all: `pods().filter(p, p.metadata.namespace == "shop")`.

    Returns:
        One `{"value": ...}` or `{"error": text}` per expression. Errors are never truthy.
    """
    with Child("itbench.engines.cel_objects") as child:
        answer: list[dict[str, Any]] = child.ask({"objects": objects, "expressions": expressions})
        return answer
