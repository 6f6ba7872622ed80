"""What a Redis-like store answers, as its command-line client prints it on a terminal. Called by `cluster` for one command.

Keys are those that were set by hand: bulk traffic runs in the flow engine and leaves none. Sections of INFO hold what the model
knows; counters that it does not keep are left out rather than made up.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase

Data = dict[str, str]
MAX_CLIENTS = 10_000
CONFIG = {
    "appendonly": "no",
    "bind": "* -::*",
    "databases": "16",
    "hz": "10",
    "maxclients": str(MAX_CLIENTS),
    "maxmemory": "0",
    "maxmemory-policy": "noeviction",
    "port": "6379",
    "requirepass": "",
    "save": "3600 1 300 100 60 10000",
    "tcp-keepalive": "300",
    "timeout": "0",
}
"""Defaults of the server's configuration; arguments of the process come before them."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the model knows of a store.

    Attributes:
        name: `redis` or `valkey`; version: from the image's tag.
        age_s: since the start; memory_mb: resident.
        address: of the pod; port: where it listens; clients: addresses of those who hold a connection, the asker last.
        config: given as arguments of the process.
    """

    name: str
    version: str
    age_s: float
    memory_mb: float
    address: str
    port: int
    clients: tuple[str, ...]
    config: dict[str, str]


def answer(data: Data, argv: list[str], facts: Facts) -> str:
    """The reply to one command; changes the data."""
    name, rest = argv[0].lower(), argv[1:]
    known = COMMANDS.get(name)
    if known is None:
        shown = "".join(f" '{word}'" for word in rest)
        return f"(error) ERR unknown command '{argv[0]}', with args beginning with:{shown}"
    least, most, handler = known
    if not least <= len(rest) <= most:
        return f"(error) ERR wrong number of arguments for '{name}' command"
    return handler(data, rest, facts)


def listing(rows: list[str]) -> str:
    """An array of strings."""
    return "\n".join(f'{index}) "{row}"' for index, row in enumerate(rows, 1)) or "(empty array)"


def integer(value: int) -> str:
    """A number."""
    return f"(integer) {value}"


def plain(reply: str) -> str:
    """A reply as it is printed where output is no terminal: without quotes, numbering and types."""
    if reply in ("(nil)", "(empty array)"):
        return ""
    for mark in ("(integer) ", "(error) "):
        if reply.startswith(mark):
            return reply[len(mark) :]
    rows = items(reply)
    if rows is not None:
        return "\n".join(rows)
    return reply[1:-1] if len(reply) > 1 and reply[0] == reply[-1] == '"' else reply


def items(reply: str) -> list[str] | None:
    """The strings of an array reply, None when it is none."""
    if reply == "(empty array)":
        return []
    lines = reply.split("\n")
    if not all(line.startswith(f'{index}) "') and line.endswith('"') for index, line in enumerate(lines, 1)):
        return None
    return [line.split(') "', 1)[1][:-1] for line in lines]


# -- commands --------------------------------------------------------------------------------------------------------------


def _ping(_: Data, rest: list[str], __: Facts) -> str:
    return f'"{rest[0]}"' if rest else "PONG"


def _get(data: Data, rest: list[str], _: Facts) -> str:
    return f'"{data[rest[0]]}"' if rest[0] in data else "(nil)"


def _set(data: Data, rest: list[str], _: Facts) -> str:
    if len(rest) > 2:
        return "(error) ERR syntax error"
    data[rest[0]] = rest[1]
    return "OK"


def _delete(data: Data, rest: list[str], _: Facts) -> str:
    return integer(sum(data.pop(key, None) is not None for key in rest))


def _exists(data: Data, rest: list[str], _: Facts) -> str:
    return integer(sum(key in data for key in rest))


def _size(data: Data, _: list[str], __: Facts) -> str:
    return integer(len(data))


def _keys(data: Data, rest: list[str], _: Facts) -> str:
    return listing([key for key in sorted(data) if fnmatchcase(key, rest[0])])


def _type(data: Data, rest: list[str], _: Facts) -> str:
    return "string" if rest[0] in data else "none"


def _ttl(data: Data, rest: list[str], _: Facts) -> str:
    return integer(-1 if rest[0] in data else -2)


def _flush(data: Data, _: list[str], __: Facts) -> str:
    data.clear()
    return "OK"


def _config(_: Data, rest: list[str], facts: Facts) -> str:
    if rest[0].lower() != "get":
        return f"(error) ERR CONFIG {rest[0].upper()} is not allowed here"
    settings = {**CONFIG, **facts.config, "port": str(facts.port)}
    wanted = [word.lower() for word in rest[1:]]
    found = [name for name in sorted(settings) if any(fnmatchcase(name, pattern) for pattern in wanted)]
    return listing([part for name in found for part in (name, settings[name])])


def _client(_: Data, rest: list[str], facts: Facts) -> str:
    sub = rest[0].lower()
    if sub == "id":
        return integer(len(facts.clients))
    if sub != "list":
        return f"(error) ERR unknown subcommand '{rest[0]}'. Try CLIENT HELP."
    rows = []
    for number, address in enumerate(facts.clients, 1):
        last = number == len(facts.clients)
        age = 0 if last else int(facts.age_s)
        rows.append(
            f"id={number} addr={address}:{32768 + 7 * number} laddr={facts.address}:{facts.port} fd={7 + number} name= "
            f"age={age} idle=0 flags=N db=0 sub=0 psub=0 cmd={'client|list' if last else 'NULL'} user=default"
        )
    return "\n".join(rows)


def _info(data: Data, rest: list[str], facts: Facts) -> str:
    wanted = {word.lower() for word in rest} or {"default"}
    everything = wanted & {"default", "all", "everything"}
    sections = [
        f"# {name}\r\n" + "".join(f"{key}:{value}\r\n" for key, value in rows(data, facts).items())
        for name, rows in SECTIONS.items()
        if everything or name.lower() in wanted
    ]
    return "\r\n".join(sections)


def _server(_: Data, facts: Facts) -> dict[str, object]:
    age = int(facts.age_s)
    own = {"server_name": "valkey", "valkey_version": facts.version} if facts.name == "valkey" else {}
    return {
        "redis_version": "7.2.4" if facts.name == "valkey" else facts.version,
        **own,
        "redis_mode": "standalone",
        "os": "Linux 6.8.0-64-generic x86_64",
        "arch_bits": 64,
        "process_id": 1,
        "tcp_port": facts.port,
        "uptime_in_seconds": age,
        "uptime_in_days": age // 86400,
        "config_file": "",
    }


def _clients(_: Data, facts: Facts) -> dict[str, object]:
    return {
        "connected_clients": len(facts.clients),
        "cluster_connections": 0,
        "maxclients": facts.config.get("maxclients", MAX_CLIENTS),
        "blocked_clients": 0,
    }


def _memory(_: Data, facts: Facts) -> dict[str, object]:
    limit = facts.config.get("maxmemory", "0")
    return {
        "used_memory_rss": int(facts.memory_mb * 2**20),
        "used_memory_rss_human": f"{facts.memory_mb:.2f}M",
        "maxmemory": limit,
        "maxmemory_policy": facts.config.get("maxmemory-policy", CONFIG["maxmemory-policy"]),
    }


def _replication(_: Data, __: Facts) -> dict[str, object]:
    return {"role": "master", "connected_slaves": 0}


def _keyspace(data: Data, _: Facts) -> dict[str, object]:
    return {"db0": f"keys={len(data)},expires=0,avg_ttl=0"} if data else {}


SECTIONS: dict[str, Callable[[Data, Facts], dict[str, object]]] = {
    "Server": _server,
    "Clients": _clients,
    "Memory": _memory,
    "Replication": _replication,
    "Keyspace": _keyspace,
}
COMMANDS: dict[str, tuple[int, float, Callable[[Data, list[str], Facts], str]]] = {
    "client": (1, float("inf"), _client),
    "config": (2, float("inf"), _config),
    "dbsize": (0, 0, _size),
    "del": (1, float("inf"), _delete),
    "exists": (1, float("inf"), _exists),
    "flushall": (0, 1, _flush),
    "flushdb": (0, 1, _flush),
    "get": (1, 1, _get),
    "info": (0, float("inf"), _info),
    "keys": (1, 1, _keys),
    "ping": (0, 1, _ping),
    "pttl": (1, 1, _ttl),
    "set": (2, float("inf"), _set),
    "ttl": (1, 1, _ttl),
    "type": (1, 1, _type),
}
"""Command -> least and most arguments, and what answers."""
