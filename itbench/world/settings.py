"""Reads what operators write: addresses, durations and levers, from env variables and ConfigMaps.

Pure functions; called by wiring (what a call goes to, how long it waits) and by containers that start (what they need).
"""

import re
from collections.abc import Callable, Mapping
from math import inf
from urllib.parse import urlsplit

from itbench.core.documents.app import SCALES, Address, Number, Setting

DEFAULT_PORTS = {
    "http": 80,
    "https": 443,
    "grpc": 80,
    "redis": 6379,
    "postgres": 5432,
    "postgresql": 5432,
    "amqp": 5672,
}
_QUANTITY = re.compile(r"^\s*([+-]?\d+(?:\.\d+)?)\s*(ms|s|m|h|%)?\s*$")
_FACTORS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "%": 1e-2}
_OFF = {"", "off", "none", "unlimited", "false", "disabled", "inf"}

Lookup = Callable[[str, str], str | None]
"""(configmap, key) -> its text, or None."""


def read_number(text: str, unit: str) -> float | None:
    """A written number in model units; None for `off`; raises ValueError for anything else."""
    if text.strip().lower() in _OFF:
        return None
    found = _QUANTITY.match(text)
    if not found:
        raise ValueError(f"not a number: {text!r}")
    value, suffix = float(found[1]), found[2]
    return value * (_FACTORS[suffix] if suffix else SCALES[unit])


def evaluate(number: Number, env: Mapping[str, str], lookup: Lookup, *, off: float = inf) -> float:
    """The value of a setting in model units (seconds, fractions, counts).

    Args:
        number: a plain number, `off`, or a Setting.
        env: the environment of the running container, as resolved at its start.
        lookup: reads a ConfigMap key now.
        off: what `off` stands for.

    Returns:
        The value; the default where the text is missing or cannot be read, as programs with a fallback do.
    """
    if not isinstance(number, Setting):
        return off if number == "off" else float(number)
    text = env.get(number.env) if number.env is not None else lookup(number.configmap or "", number.key or "")
    fallback = off if number.default == "off" else float(number.default) * SCALES[number.unit]
    if text is None:
        return fallback
    try:
        value = read_number(text, number.unit)
    except ValueError:
        return fallback
    return off if value is None else value


def locate(address: Address, env: Mapping[str, str]) -> tuple[str, int]:
    """Host and port that a program dials; an empty host when the variable is missing, port 0 when none is known.

    Args:
        address: where it is written.
        env: variables of the container, and the files that its program read when it started, by path.
    """
    source = address.env or address.file
    text = env.get(source) if source is not None else None
    if text is None or not text.strip():
        text = address.default or ""
    host, port = _split(text.strip(), address.match)
    if address.port_env is not None and env.get(address.port_env, "").isdigit():
        port = int(env[address.port_env])
    return host, port or address.port or 0


def _split(text: str, match: str | None) -> tuple[str, int]:
    if match is not None:
        found = re.search(match, text)
        if found is None:
            return "", 0
        parts = found.groupdict()
        return _host_port(parts.get("host") or "", parts.get("port"))
    if "://" in text:
        parts_of_url = urlsplit(text)
        try:
            port = parts_of_url.port
        except ValueError:
            port = None
        return parts_of_url.hostname or "", port or DEFAULT_PORTS.get(parts_of_url.scheme, 0)
    return _host_port(text.split("/", 1)[0].split(",", 1)[0], None)


def _host_port(text: str, port: str | None) -> tuple[str, int]:
    host, _, tail = text.partition(":")
    number = port or tail
    return host, int(number) if number.isdigit() else 0
