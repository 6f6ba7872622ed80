"""What Redis-like stores answer, on a terminal and in a pipe."""

import pytest

from itbench.world.estate import World
from itbench.world.stores import Facts, answer, items, plain

FACTS = Facts("valkey", "9.0.1", 90061.5, 5.0, "10.244.1.9", 6379, ("10.244.1.4", "127.0.0.1"), {"maxmemory": "64mb"})


MEMORY = "maxmemory\n64mb\nmaxmemory-policy\nnoeviction"
WRONG = "ERR wrong number of arguments for 'get' command"
UNKNOWN = "ERR unknown command 'foo', with args beginning with: 'bar'"


def ask(line: str, data: dict[str, str] | None = None) -> str:
    return answer({"b": "2", "a": "1"} if data is None else data, line.split(), FACTS)


@pytest.mark.parametrize(
    ("line", "typed", "piped"),
    [
        ("ping", "PONG", "PONG"),
        ("PING hello", '"hello"', "hello"),
        ("get a", '"1"', "1"),
        ("get none", "(nil)", ""),
        ("dbsize", "(integer) 2", "2"),
        ("keys *", '1) "a"\n2) "b"', "a\nb"),
        ("keys x*", "(empty array)", ""),
        ("ttl a", "(integer) -1", "-1"),
        ("ttl none", "(integer) -2", "-2"),
        ("type a", "string", "string"),
        ("type none", "none", "none"),
        ("config get maxm*y", '1) "maxmemory"\n2) "64mb"\n3) "maxmemory-policy"\n4) "noeviction"', MEMORY),
        ("config get nosuch", "(empty array)", ""),
        ("get", f"(error) {WRONG}", WRONG),
        ("foo bar", f"(error) {UNKNOWN}", UNKNOWN),
    ],
)
def test_replies_are_typed_on_a_terminal_and_plain_in_a_pipe(line: str, typed: str, piped: str) -> None:
    reply = ask(line)
    assert reply == typed
    assert plain(reply) == piped


def test_arrays_are_told_from_texts() -> None:
    assert items('1) "a"\n2) "b"') == ["a", "b"]
    assert items("(empty array)") == []
    assert items('1) "a"\nb') is None
    assert plain("(empty array)") == plain("(nil)") == ""


def test_info_prints_the_sections_asked_for_and_no_empty_database() -> None:
    assert ask("info clients") == (
        "# Clients\r\nconnected_clients:2\r\ncluster_connections:0\r\nmaxclients:10000\r\nblocked_clients:0\r\n"
    )
    assert ask("INFO KEYSPACE") == "# Keyspace\r\ndb0:keys=2,expires=0,avg_ttl=0\r\n"
    assert ask("info keyspace", {}) == "# Keyspace\r\n"
    assert ask("info nosuch") == ""
    every = ask("info")
    assert [line[2:] for line in every.splitlines() if line.startswith("# ")] == [
        "Server",
        "Clients",
        "Memory",
        "Replication",
        "Keyspace",
    ]
    assert "valkey_version:9.0.1\r\nredis_mode" in every
    assert "uptime_in_seconds:90061\r\nuptime_in_days:1\r\n" in every


def test_clients_are_those_who_hold_a_connection() -> None:
    rows = ask("client list").splitlines()
    assert [row.split()[1].split(":")[0] for row in rows] == ["addr=10.244.1.4", "addr=127.0.0.1"]
    assert "cmd=client|list" in rows[1]


@pytest.mark.parametrize(
    ("tty", "script", "expected"),
    [
        (False, "redis-cli set k v; redis-cli dbsize; redis-cli --no-raw dbsize", "OK\n1\n(integer) 1\n"),
        (True, "redis-cli get k; redis-cli get k | cat", "(nil)\r\n\r\n"),
        (
            False,
            "redis-cli info clients | grep connected; redis-cli info server | grep redis_version",
            "connected_clients:1\nredis_version:8.0.3\n",
        ),
    ],
)
def test_the_client_in_a_pod_knows_whether_it_writes_to_a_terminal(
    world: World, tty: bool, script: str, expected: str
) -> None:
    kubectl = world.planes["main"].client("kubectl", "system:admin")
    meta, spec = {"name": "store", "namespace": "toy"}, {"containers": [{"name": "main", "image": "redis:8.0.3"}]}
    kubectl.create("pods", {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}, "toy")
    world.advance(world.now + 30)
    session = world.door().exec("toy", "store", "", ["sh", "-c", script], tty=tty)
    found = "".join(data.decode() for _, data in session.read())
    assert found.replace("\r", "") == expected.replace("\r", "")
