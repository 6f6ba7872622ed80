"""Nonsense at the HTTP door: whatever comes in is answered, in time, and never by the answer for our own mistakes."""

import asyncio
import contextlib
import gc
import logging
import struct
import zlib
from collections.abc import Callable, Coroutine, Iterator
from random import Random
from typing import Any
from urllib.parse import quote

import aiohttp
import orjson
import pytest
from fuzz import NONSENSE, Maker
from hypothesis import given, settings
from hypothesis import strategies as st

from itbench.core.ids import Ids
from itbench.kube.api import serve
from itbench.kube.api.spdy import DICTIONARY, Spdy
from itbench.kube.door import StandingPacer
from itbench.kube.plane import ControlPlane

FUZZ = settings(max_examples=60, deadline=None, derandomize=True)
MAPS = "/api/v1/namespaces/default/configmaps"
PATIENCE_S = 30.0
"""Wall seconds after which a request counts as hanging."""
OURS = b"Internal error occurred:"
PATCHES = ("json-patch+json", "merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml")
seeds = st.integers(0, 2**32)


class Target:
    """A served plane that notes every error of its own."""

    def __init__(self, run: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        self.run = run
        self.errors: list[str] = []

    async def start(self) -> None:
        self.plane = ControlPlane(ids=Ids(5))
        self.server = await serve(self.plane, StandingPacer(), tls=False)
        token = self.server.token("admin", ("system:masters",))
        self.session = aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"})

    async def close(self) -> None:
        await self.session.close()
        await self.server.close()

    async def _ask(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
        from yarl import URL

        url = URL(self.server.url + path, encoded=True)
        async with asyncio.timeout(PATIENCE_S), self.session.request(method, url, data=body, headers=headers) as reply:
            return reply.status, await reply.content.read(65536)

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
        """One request: (code, beginning of the answer); fails on an answer for our own mistakes."""
        names = {key.replace("_", "-"): value for key, value in headers.items()}
        self.errors.clear()
        code, text = self.run(self._ask(method, path, body, names))
        assert OURS not in text and b"Traceback" not in text and self.errors == [], (method, path, body, self.errors)
        assert code != 500 or b'"Status"' in text, (method, path, body)
        return code, text

    def check_alive(self) -> None:
        """Everything that is stored can still be listed, in all forms."""
        for resource in ("configmaps", "pods", "events", "leases.coordination.k8s.io"):
            found = self.plane.registry.table.named(resource)
            base = f"/apis/{found.group}" if found.group else "/api"
            for accept in ("application/json", "application/json;as=Table;v=v1;g=meta.k8s.io", "application/yaml"):
                code, _ = self.ask("GET", f"{base}/{found.version}/{found.plural}", Accept=accept)
                assert code == 200


class _Noted(logging.Handler):
    def __init__(self, target: Target) -> None:
        super().__init__(logging.ERROR)
        self._target = target

    def emit(self, record: logging.LogRecord) -> None:
        self._target.errors.append(self.format(record))


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    """One server for all examples of this module."""
    gc.collect()  # what earlier tests of this process left unclosed is told to the same loggers when it is collected
    with asyncio.Runner() as runner:
        target = Target(runner.run)
        noted = _Noted(target)
        loggers = [logging.getLogger(name) for name in ("itbench.kube.api", "aiohttp.server", "asyncio")]
        for logger in loggers:
            logger.addHandler(noted)
        runner.run(target.start())
        yield target
        runner.run(target.close())
        for logger in loggers:
            logger.removeHandler(noted)


def mutate(rng: Random, value: Any, depth: int = 0) -> Any:
    """A copy with one value, anywhere, replaced by nonsense."""
    if depth and (not isinstance(value, dict | list) or not value or rng.random() < 0.2):
        return rng.choice(NONSENSE)
    if isinstance(value, dict):
        key = rng.choice(list(value))
        return {**value, key: mutate(rng, value[key], depth + 1)}
    at = rng.randrange(len(value))
    return [*value[:at], mutate(rng, value[at], depth + 1), *value[at + 1 :]]


def path_of(resource: Any) -> str:
    base = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    return base + ("/namespaces/default/" if resource.namespaced else "/") + resource.plural


@FUZZ
@given(seeds)
def test_objects_of_every_kind_with_wrong_values_are_answered(target: Target, seed: int) -> None:
    """POST, PUT, every PATCH and status of any kind, right or wrong in any field; controllers and lists survive it."""
    rng = Random(seed)
    resources = [row for row in target.plane.registry.table if "create" in row.verbs]
    resource = rng.choice(resources)
    maker, name = Maker(rng, wrong=rng.choice((0.0, 0.005, 0.05)), full=rng.choice((0.1, 0.4))), f"x{seed}"
    body, path = maker.object(resource, name, "default"), path_of(resource)
    target.ask("POST", path, orjson.dumps(body), Content_Type="application/json")
    changed = orjson.dumps(mutate(rng, body))
    target.ask("PUT", f"{path}/{name}", changed, Content_Type="application/json")
    for subresource in resource.subresources:
        if "update" in subresource.verbs and subresource.name != "proxy":
            target.ask("PUT", f"{path}/{name}/{subresource.name}", changed, Content_Type="application/json")
    for kind in PATCHES:
        content = orjson.dumps(mutate(rng, body))
        target.ask("PATCH", f"{path}/{name}?fieldManager=f", content, Content_Type=f"application/{kind}")
    target.plane.run(target.plane.now + 1.0)
    for accept in ("application/json", "application/json;as=Table;v=v1;g=meta.k8s.io"):
        assert target.ask("GET", path, Accept=accept)[0] in (200, 405)
    target.ask("DELETE", f"{path}/{name}", changed if rng.random() < 0.3 else None, Content_Type="application/json")
    assert target.plane.defects == []


OPERATIONS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "x", None, 1]),
            "path": st.sampled_from(
                ["", "/", "/data", "/data/a", "/metadata/name", "/x/0/-", "/metadata", "a", None, 5]
            ),
            "from": st.sampled_from(["", "/data", "/metadata", "/x", None, []]),
            "value": st.sampled_from(NONSENSE),
        },
    )
    | st.sampled_from(NONSENSE),
    max_size=6,
)


@FUZZ
@given(OPERATIONS)
def test_json_patches_of_any_shape_are_answered(target: Target, operations: Any) -> None:
    """Missing, wrong and contradictory operations change nothing or are refused."""
    target.ask("POST", MAPS, b'{"metadata":{"name":"a"},"data":{"a":"b"}}', Content_Type="application/json")
    body = orjson.dumps(operations)
    code, _ = target.ask("PATCH", f"{MAPS}/a", body, Content_Type="application/json-patch+json")
    assert code in (200, 400, 404, 409, 422)


DEEP = 20_000
BODIES: dict[str, tuple[bytes, str, set[int]]] = {
    "arrays in arrays": (b'{"a":' + b"[" * DEEP + b"]" * DEEP + b"}", "application/json", {400}),
    "objects in objects": (b'{"a":' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"}", "application/json", {400}),
    "just too deep to store": (b'{"data":' + b'{"a":' * 230 + b"1" + b"}" * 230 + b"}", "application/json", {400}),
    "deep YAML": (b"a: " + b"[" * 3000 + b"]" * 3000, "application/yaml", {400}),
    "deep YAML by indent": (b"".join(b" " * n + b"a:\n" for n in range(900)), "application/yaml", {400}),
    "aliases of aliases": (
        b"a: &a [x,x,x,x,x,x,x,x,x]\n"
        + b"".join(b"%c: &%c [%s]\n" % (n, n, b",".join([b"*%c" % (n - 1)] * 9)) for n in range(98, 105)),
        "application/yaml",
        {400},
    ),
    "an anchor in itself": (b"metadata: &a {name: x, labels: *a}", "application/yaml", {400}),
    "a list as a key": (b"metadata: {name: x}\n? [a, b]\n: c", "application/yaml", {400}),
    "keys of other types": (b"metadata: {name: x}\n1: c\ntrue: d\n1.5: e", "application/yaml", {201}),
    "binary, sets and dates": (
        b"metadata: {name: x}\ndata: {a: !!binary aGk=, b: !!set {x}}",
        "application/yaml",
        {400},
    ),
    "infinity": (b"metadata: {name: y}\ndata: {a: .inf}", "application/yaml", {400}),
    "a tag that runs programs": (b"metadata: !!python/object/apply:os.getcwd []", "application/yaml", {400}),
    "no UTF-8": (b'{"metadata":{"name":"\xff"}}', "application/json", {422}),
    "half a surrogate": (b'{"metadata":{"name":"\\ud800"}}', "application/json", {400, 422}),
    "null": (b"null", "application/json", {422}),
    "a number": (b"5", "application/json", {400}),
    "nothing": (b"", "application/json", {400}),
    "not a number": (b'{"a":NaN}', "application/json", {400}),
    "a large exponent": (b'{"metadata":{"name":"z","generation":1e999}}', "application/json", {400}),
    "a large number": (b'{"metadata":{"name":"z","generation":' + b"9" * 400 + b"}}", "application/json", {400}),
    "beyond 64 bits": (b'{"metadata":{"name":"z","generation":18446744073709551617}}', "application/json", {400}),
    "keys twice": (
        b'{"metadata":{"name":"k"},"metadata":{"name":"k"},"data":{"a":"1","a":"2"}}',
        "application/json",
        {201},
    ),
    "an empty envelope": (b"k8s\x00", "application/vnd.kubernetes.protobuf", {400}),
    "a cut envelope": (b"k8s\x00\x0a\x7f\x0a", "application/vnd.kubernetes.protobuf", {400}),
    "no envelope": (b"{}", "application/vnd.kubernetes.protobuf", {400}),
    "plain text": (b"{}", "text/plain", {415}),
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies_that_break_parsers_are_refused(target: Target, name: str) -> None:
    """Depth, aliases, numbers, encodings and envelopes: the codes of a real server, or 400 where it goes deeper than we do."""
    body, kind, codes = BODIES[name]
    assert target.ask("POST", MAPS, body, Content_Type=kind)[0] in codes
    assert target.ask("PATCH", f"{MAPS}/a?fieldManager=f", body, Content_Type="application/apply-patch+yaml")[0] < 500


def test_copies_of_copies_are_stopped(target: Target) -> None:
    """A JSON patch that doubles a value forty times is refused, as is one of more than ten thousand steps."""
    target.ask("POST", MAPS, b'{"metadata":{"name":"a"},"data":{"a":"b"}}', Content_Type="application/json")
    bomb = [{"op": "add", "path": "/data", "value": {"x": "y" * 1000}}]
    bomb += [{"op": "copy", "from": "/data", "path": f"/data/k{n}"} for n in range(40)]
    kind = "application/json-patch+json"
    assert target.ask("PATCH", f"{MAPS}/a", orjson.dumps(bomb), Content_Type=kind)[0] == 422
    many = orjson.dumps([{"op": "test", "path": "/data/a", "value": "b"}] * 10_001)
    assert target.ask("PATCH", f"{MAPS}/a", many, Content_Type=kind)[0] == 413


WORDS = st.text(st.sampled_from("ab1=!,()<> ./\\'\"%\x00\u00e9in~-_"), max_size=14)
PARAMETERS = (
    *(
        "labelSelector",
        "fieldSelector",
        "limit",
        "continue",
        "resourceVersion",
        "resourceVersionMatch",
        "timeoutSeconds",
    ),
    *("dryRun", "fieldManager", "fieldValidation", "force", "pretty", "gracePeriodSeconds", "propagationPolicy", "x"),
    *("tailLines", "sinceTime", "container", "command", "sendInitialEvents", "allowWatchBookmarks", "orphanDependents"),
)


@FUZZ
@given(
    st.dictionaries(
        st.sampled_from(PARAMETERS), WORDS | st.sampled_from(["-1", "1", "9" * 30, "x", "true"]), max_size=3
    )
)
def test_queries_of_any_kind_are_answered(target: Target, query: dict[str, str]) -> None:
    """Selectors, limits, tokens, times and flags, in reads, writes and deletes."""
    text = "?" + "&".join(f"{key}={quote(value)}" for key, value in query.items())
    for method, path in (
        ("GET", MAPS),
        ("GET", "/api/v1/pods"),
        ("DELETE", f"{MAPS}/nope"),
        ("GET", "/api/v1/namespaces/default/pods/x/log"),
    ):
        target.ask(method, path + text)
    body = b'{"metadata":{"name":"q"}}'
    target.ask("POST", MAPS + text, body, Content_Type="application/json")
    target.ask("GET", f"{MAPS}{text}&watch=1&timeoutSeconds=1&resourceVersion=99999999x")


@FUZZ
@given(
    st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]),
    st.lists(
        st.sampled_from(
            [
                "api",
                "apis",
                "v1",
                "apps",
                "namespaces",
                "default",
                "pods",
                "x",
                "log",
                "exec",
                "proxy",
                "..",
                "%2e%2e",
                "%00",
                "%ff",
                "",
                "status",
                "scale",
                "a:b:c",
                "openapi",
                "v3",
                "healthz",
                "nodes",
                "services",
                "a" * 300,
            ]
        ),
        max_size=8,
    ),
    st.sampled_from(
        ["", "application/json", "*/*;q=x", ";;;", "application/json;as=Table;v=v9", "\u00e9", "a/b,application/yaml"]
    ),
)
def test_paths_methods_and_headers_of_any_kind_are_answered(
    target: Target, method: str, parts: list[str], accept: str
) -> None:
    """Anything that HTTP itself lets through."""
    target.ask(method, "/" + "/".join(parts), Accept=accept, Content_Type=accept)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 255), st.binary(max_size=40)), max_size=5),
    st.binary(max_size=30),
)
def test_damaged_spdy_is_a_value_error_and_nothing_else(frames: list[tuple[int, int, bytes]], tail: bytes) -> None:
    """Control frames of any kind and content, and bytes that are no frames."""
    raw = b"".join(struct.pack(">HHI", 0x8003, kind, flags << 24 | len(body)) + body for kind, flags, body in frames)
    with contextlib.suppress(ValueError):
        list(Spdy().feed(raw + tail))


def test_spdy_headers_that_unpack_without_end_are_refused() -> None:
    """A kilobyte that becomes many megabytes."""
    packer = zlib.compressobj(zdict=DICTIONARY)
    block = packer.compress(struct.pack(">I", 1) + b"\x00" * 20_000_000) + packer.flush(zlib.Z_SYNC_FLUSH)
    body = struct.pack(">IIH", 1, 0, 0) + block
    with pytest.raises(ValueError, match="more than"):
        list(Spdy().feed(struct.pack(">HHI", 0x8003, 1, len(body)) + body))


def test_the_server_is_still_sound(target: Target) -> None:
    """After all that, every list works in every form, and a normal write does."""
    target.check_alive()
    body = b'{"metadata":{"name":"last"},"data":{"a":"b"}}'
    assert target.ask("POST", MAPS, body, Content_Type="application/json")[0] == 201
