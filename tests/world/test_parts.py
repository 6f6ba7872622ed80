"""Small parts of the world: images, plain data, addresses, scripts of any shape, texts."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from itbench.core.documents.app import Address, Log
from itbench.world.images import Registry, parse_image, pull_error
from itbench.world.kubelet.state import ContainerState, PodState, ProbeState, Run, Terminated
from itbench.world.plain import pack, unpack
from itbench.world.settings import locate
from itbench.world.shell.syntax import SyntaxFault, parse
from itbench.world.text import fill, log_line


@pytest.mark.parametrize(
    ("text", "full", "short"),
    [
        ("nginx", "docker.io/library/nginx:latest", "nginx"),
        ("istio/reviews:1.2", "docker.io/istio/reviews:1.2", "istio/reviews"),
        ("ghcr.io/open/demo:2.2.0-cart", "ghcr.io/open/demo:2.2.0-cart", "ghcr.io/open/demo"),
        ("localhost:5000/x@sha256:ab", "localhost:5000/x:latest", "localhost:5000/x"),
    ],
)
def test_image_names_are_read_as_container_runtimes_read_them(text: str, full: str, short: str) -> None:
    reference = parse_image(text)
    assert reference is not None
    assert (reference.full, reference.short) == (full, short)


@pytest.mark.parametrize("text", ["", "UPPER/case", "nginx:", "a b", "nginx:bad tag"])
def test_invalid_image_names_are_told_apart(text: str) -> None:
    assert parse_image(text) is None
    assert "invalid reference format" in pull_error(text)


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("nginx:1.27-alpine", True),
        ("busybox", True),
        ("python:3.12-slim", True),
        ("nginx:oops", False),
        ("quay.io/who/knows:1", False),
    ],
)
def test_base_images_are_known_with_plausible_tags_only(text: str, known: bool) -> None:
    assert (Registry(None).find(text) is not None) is known


def test_the_same_reference_is_always_the_same_image() -> None:
    first, second = (Registry(None).find("nginx:1.27") for _ in range(2))
    assert first is not None and second is not None
    assert (first.ident, first.size_bytes) == (second.ident, second.size_bytes)


@given(
    st.text(max_size=8),
    st.lists(st.tuples(st.floats(0, 1e6), st.text(max_size=5)), max_size=3),
    st.dictionaries(st.text(max_size=4), st.none() | st.text(max_size=4), max_size=3),
    st.booleans(),
)
def test_pod_state_survives_being_made_plain(
    name: str, lines: list[tuple[float, str]], overlay: dict[str, str | None], ready: bool
) -> None:
    container = ContainerState(name, "main", overlay=overlay, ready=ready, runs=[Run(1.0, 2.0, lines)])
    container.probes["readinessProbe"] = ProbeState(passed=2)
    container.ended = Terminated(1, "Error", 1.0, 2.0)
    pod = PodState("u", "ns", name, "node-1", containers={name: container}, conditions={"Ready": ("True", 3.0)})
    assert unpack(PodState, pack(pod)) == pod


def test_only_plain_values_can_be_packed() -> None:
    @dataclass
    class Holder:
        thing: object = field(default_factory=object)

    with pytest.raises(TypeError, match="not plain data: object"):
        pack(Holder())


@pytest.mark.parametrize(
    ("text", "match", "expected"),
    [
        ("checkout:8080", None, ("checkout", 8080)),
        ("http://quote:8090/path", None, ("quote", 8090)),
        ("https://api.example.org", None, ("api.example.org", 443)),
        ("Host=postgresql;Username=x", "Host=(?P<host>[^;]+)", ("postgresql", 5432)),
        ("postgres://u:p@db:6543/shop", "@(?P<host>[^:/?]+)(:(?P<port>\\\\d+))?", ("db", 6543)),
        ("kafka-1:9092,kafka-2:9092", None, ("kafka-1", 9092)),
        ("", None, ("", 5432)),
        ("host:notaport", None, ("host", 5432)),
    ],
)
def test_addresses_are_found_in_what_operators_write(text: str, match: str | None, expected: tuple[str, int]) -> None:
    pattern = match.replace("\\\\", "\\") if match else None
    address = Address.model_validate({"env": "A", "match": pattern, "port": 5432})
    assert locate(address, {"A": text}) == expected


@given(st.text(alphabet="ab '\"$(){}|&;<>!`\\\n=x12-#*[]", max_size=30))
def test_any_text_is_a_script_or_a_syntax_error(script: str) -> None:
    try:
        assert parse(script).kind == "list"
    except SyntaxFault as fault:
        assert "syntax error" in str(fault)


def test_holes_are_filled_and_other_braces_stay() -> None:
    assert fill('{"a": "{name}", {x}}', name="n") == '{"a": "n", {x}}'
    log = Log(line='{"time":"{seconds}","msg":"{message}"}')
    assert log_line(log, 61.0, 'say "x"') == '{"time":"2026-01-12T08:01:01Z","msg":"say \\"x\\""}'
