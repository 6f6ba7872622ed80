"""Child process: CEL over a set of Kubernetes objects, with one function per kind: `deployment("ns", "name")`, `node("name")`.

Asked by `itbench.engines.cel.over_objects`. Message: `{objects: {resource: [object]}, expressions: [text]}`.
"""

from functools import lru_cache
from typing import Any

from cel_expr_python import cel

from itbench.engines.child import serve

_NAMESPACED = [cel.Type.STRING, cel.Type.STRING]
_CLUSTER = [cel.Type.STRING]


def _kind(resource: str) -> str:
    plural = resource.split(".", 1)[0]
    for ending, singular in (("ies", "y"), ("sses", "ss"), ("s", "")):
        if plural.endswith(ending):
            return plural.removesuffix(ending) + singular
    return plural


def _functions(objects: dict[str, list[dict[str, Any]]]) -> list[Any]:
    declared = []
    for resource, items in objects.items():
        kind, plural = _kind(resource), resource.split(".", 1)[0]
        found = {(item["metadata"].get("namespace", ""), item["metadata"]["name"]): item for item in items}
        namespaced = cel.Overload(
            f"{kind}_namespace_name",
            cel.Type.DYN,
            _NAMESPACED,
            False,
            lambda ns, name, found=found: found.get((ns, name)),
        )
        cluster = cel.Overload(
            f"{kind}_name", cel.Type.DYN, _CLUSTER, False, lambda name, found=found: found.get(("", name))
        )
        listed = cel.Overload(f"{plural}_all", cel.Type.DYN, [], False, lambda items=items: items)
        declared += [cel.FunctionDecl(kind, [namespaced, cluster]), cel.FunctionDecl(plural, [listed])]
    return declared


@lru_cache(maxsize=4)
def _empty(resources: tuple[str, ...]) -> Any:
    extension = cel.CelExtension("objects", _functions({resource: [] for resource in resources}))
    return cel.NewEnv(variables={}, extensions=[extension])


def compile_over(expression: str, resources: tuple[str, ...]) -> str:
    """Why an expression does not compile to a yes or no, in one line; empty when it does."""
    try:
        kind = _empty(resources).compile(expression).return_type()
    except Exception as error:  # the binding raises RuntimeError for every kind of fault
        text = str(error).splitlines()[0]
        return (
            text.removeprefix("INVALID_ARGUMENT: ").removeprefix("ERROR: <input>:").removesuffix(" (in container '')")
        )
    return "" if kind in (cel.Type.BOOL, cel.Type.DYN) else f"gives {kind.name()}, not true or false"


def answer(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Each expression's value, or its error: `[{value: ...} | {error: text}]`."""
    environment = cel.NewEnv(variables={}, extensions=[cel.CelExtension("objects", _functions(message["objects"]))])
    return [_evaluate(environment, expression) for expression in message["expressions"]]


def _evaluate(environment: Any, expression: str) -> dict[str, Any]:
    try:
        value = environment.compile(expression).eval(data={})
    except Exception as error:  # compile errors and the iteration cap
        return {"error": str(error).splitlines()[0]}
    if value.type() == cel.Type.ERROR:
        return {"error": str(value.plain_value())}
    return {"value": value.plain_value()}


if __name__ == "__main__":
    serve(answer)
