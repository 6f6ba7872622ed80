"""Makes objects of any kind from its schema, as right or as wrong as wanted: any field may be set, any value be nonsense."""

from random import Random
from typing import Any

from itbench.kube import schema
from itbench.kube.resources import Resource
from itbench.kube.schema import Node

Obj = dict[str, Any]

NONSENSE: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        10**18,
        2**63 - 1,
        -(2**63),
        1.5,
        1e300,
        "",
        " ",
        "x y/\u00e9",
        "-",
        "\x00",
        "1e999999999",
    ),
    *([], {}, [None], [{}], [[]], [1], [""], {"a": None}, {"": {}}, {"a": [{}]}, {"$patch": "x"}, "9" * 40, "a" * 300),
)
NAMES = (
    "web",
    "a",
    "b-1",
    "http",
    "default",
    "x.example.com",
    "kubernetes.io/hostname",
    "A_b",
    "10.0.0.1",
    "10.0.0.0/24",
)
TEXTS = (
    *NAMES,
    "80",
    "Always",
    "None",
    "true",
    "https://x.example.com/y",
    "nginx:1",
    "*/5 * * * *",
    "object.spec.x > 1",
    "$(A)",
)
TIMES = ("2025-01-01T00:00:00Z", "2025-01-01T00:00:00.000000Z", "2025-13-01T00:00:00Z", "tomorrow")
AMOUNTS = ("1", "100m", "1Gi", "0", "-1", "1e3", "9999999999999999999", "1x", "")


class Maker:
    """Values of schema nodes.

    Args:
        rng: where all choices come from.
        wrong: share of values that are nonsense instead of what the schema says.
        full: share of optional fields that are set.
    """

    def __init__(self, rng: Random, *, wrong: float = 0.01, full: float = 0.35, depth: int = 9) -> None:
        self._rng, self._wrong, self._full, self._depth = rng, wrong, full, depth

    def value(self, node: Node | None, depth: int = 0, key: str = "") -> Any:
        """One value of a node."""
        rng = self._rng
        if rng.random() < self._wrong:
            return rng.choice(NONSENSE)
        if node is None or node.kind in ("any", "shared"):
            return rng.choice(({}, {"a": 1}, "text", 5))
        if node.enum and rng.random() < 0.9:
            return rng.choice([row for row in node.enum if row] or [""])
        maker = getattr(self, f"_{node.kind}")
        return maker(node, depth, key)

    def _struct(self, node: Node, depth: int, key: str) -> Obj:
        share = self._full * (1 - depth / self._depth)
        found = {}
        for name in node.fields():
            if name in node.required or self._rng.random() < share:
                found[name] = self.value(node.child(name), depth + 1, name)
        return found

    def _map(self, node: Node, depth: int, key: str) -> Obj:
        size = self._rng.randint(0, 2)
        return {self._rng.choice(NAMES): self.value(node.values, depth + 1) for _ in range(size)}

    def _list(self, node: Node, depth: int, key: str) -> list[Any]:
        size = 0 if depth > self._depth else self._rng.choice((0, 1, 1, 2))
        return [self.value(node.items, depth + 1) for _ in range(size)]

    def _string(self, node: Node, depth: int, key: str) -> str:
        if key == "name":
            return self._rng.choice(("web", "a", "b-1", "http"))
        return self._rng.choice(TEXTS)

    def _integer(self, node: Node, depth: int, key: str) -> int:
        return self._rng.choice((0, 1, 2, 3, 80, 80, 8080, -1, 70000))

    def _number(self, node: Node, depth: int, key: str) -> float:
        return self._rng.choice((0, 1, 0.5, -2.5))

    def _boolean(self, node: Node, depth: int, key: str) -> bool:
        return self._rng.random() < 0.5

    def _quantity(self, node: Node, depth: int, key: str) -> Any:
        return self._rng.choice((*AMOUNTS, 1, 0.5))

    def _intorstring(self, node: Node, depth: int, key: str) -> Any:
        return self._rng.choice((1, 80, "http", "25%", "101%", -1))

    def _time(self, node: Node, depth: int, key: str) -> str:
        return self._rng.choice((*TIMES, TIMES[0], TIMES[0]))

    def object(self, resource: Resource, name: str, namespace: str) -> Obj:
        """An object of a resource with a proper name; everything else as the schema and chance have it."""
        node = schema.of(resource.api_version, resource.kind)
        found = self._struct(node, 0, "") if node is not None else {}
        for key in ("spec", "status"):
            if node is not None and key not in found and node.child(key) is not None and self._rng.random() < 0.8:
                found[key] = self.value(node.child(key), 1, key)
        meta: Any = found.get("metadata")
        kept = (
            {k: v for k, v in meta.items() if k in ("labels", "annotations", "ownerReferences")}
            if isinstance(meta, dict)
            else {}
        )
        if self._rng.random() < 0.7:
            kept = {k: v for k, v in kept.items() if k != "ownerReferences"}
        meta = {**kept, "name": name} | ({"namespace": namespace} if resource.namespaced else {})
        return {**found, "apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta}
