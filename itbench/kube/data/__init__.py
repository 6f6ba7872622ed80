"""Generated tables of the served version; read by `resources` and `schema`, written by `scripts/gen_kube_tables.py`."""

import lzma
from importlib.resources import files
from typing import Any

import orjson


def read(name: str) -> Any:
    """Decode one generated table such as `discovery` or `schemas`."""
    return orjson.loads(lzma.decompress((files(__name__) / f"{name}.json.xz").read_bytes()))
