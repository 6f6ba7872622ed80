"""Deterministic identifiers: drawn from the seed by kind, namespace and ordinal, never from the host."""

import hashlib
import uuid
from collections.abc import Sequence
from random import Random
from typing import Any

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""The characters that Kubernetes uses for generated names."""


def digest(*parts: object) -> bytes:
    """A stable 32-byte digest of the parts' text forms."""
    return hashlib.sha256("\x1f".join(str(part) for part in parts).encode()).digest()


class Ids:
    """A source of names and uids that depends only on the seed and on what was asked before, per key.

    The state is plain data (`save` / `load`), so a restored world goes on with the same names.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._drawn: dict[str, int] = {}

    def _next(self, key: str) -> bytes:
        ordinal = self._drawn.get(key, 0)
        self._drawn[key] = ordinal + 1
        return digest(self.seed, key, ordinal)

    def uid(self, *key: object) -> str:
        """The next RFC 4122 uid for a key such as (kind, namespace)."""
        return str(uuid.UUID(bytes=self._next("uid/" + "/".join(map(str, key)))[:16], version=4))

    def suffix(self, *key: object, length: int = 5) -> str:
        """The next random-looking name suffix for a key such as (kind, namespace, prefix)."""
        raw = self._next("suffix/" + "/".join(map(str, key)))
        return "".join(ALPHABET[byte % len(ALPHABET)] for byte in raw[:length])

    def rng(self, *key: object) -> Random:
        """A generator that belongs to the key alone; asking twice gives equal generators."""
        return Random(digest(self.seed, "rng", *key))

    def choice(self, options: Sequence[Any], *key: object) -> Any:
        """One of the options, drawn for the key alone."""
        return self.rng(*key).choice(options)

    def save(self) -> dict[str, Any]:
        """State as plain data."""
        return {"seed": self.seed, "drawn": dict(self._drawn)}

    @classmethod
    def load(cls, data: dict[str, Any]) -> "Ids":
        """The inverse of `save`."""
        ids = cls(data["seed"])
        ids._drawn = dict(data["drawn"])
        return ids
