"""Logs, exec, attach, port-forward and proxies through the node door, in each dialect."""

import asyncio
import ssl
import struct
import zlib
from typing import Any

import aiohttp
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from itbench.kube.api.spdy import DICTIONARY, Spdy

PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
async def pod(site: Any) -> str:
    """A running pod `web` with one container."""
    spec = {"containers": [{"name": "c", "image": "nginx", "ports": [{"containerPort": 80}]}]}
    answer = await site.http("POST", PODS, {"metadata": {"name": "web"}, "spec": spec})
    assert answer.status == 201
    return "web"


# -- logs ------------------------------------------------------------------------------------------------------------------


async def test_logs_are_cut_and_stamped_as_asked(site: Any, pod: str) -> None:
    """tailLines, limitBytes, timestamps and sinceSeconds."""
    site.plane.run(100.0)
    site.door.lines[pod] = [(10.0, "one"), (95.0, "two")]
    path = f"{PODS}/{pod}/log"
    assert (await site.http("GET", path)).body == b"one\ntwo\n"
    assert (await site.http("GET", f"{path}?tailLines=1")).body == b"two\n"
    assert (await site.http("GET", f"{path}?limitBytes=5")).body == b"one\nt"
    assert (await site.http("GET", f"{path}?sinceSeconds=10")).body == b"two\n"
    assert (await site.http("GET", f"{path}?sinceTime=2026-01-12T08:01:00Z")).body == b"two\n"
    stamped = (await site.http("GET", f"{path}?timestamps=true&tailLines=1")).body
    assert stamped == b"2026-01-12T08:01:35.000000000Z two\n"


async def test_logs_of_the_wrong_container_are_refused(site: Any, pod: str) -> None:
    """The 400s of the real server: unknown container, several to choose from."""
    wrong = await site.http("GET", f"{PODS}/{pod}/log?container=x")
    assert (wrong.status, wrong.json["message"]) == (400, "container x is not valid for pod web")
    two = {"containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "x"}]}
    await site.http("POST", PODS, {"metadata": {"name": "duo"}, "spec": two})
    which = await site.http("GET", f"{PODS}/duo/log")
    assert which.json["message"] == "a container name must be specified for pod duo, choose one of: [a b]"
    assert (await site.http("GET", f"{PODS}/nosuch/log")).status == 404


async def test_a_follow_streams_new_lines_and_ends_with_the_pod(site: Any, pod: str) -> None:
    """Lines written later arrive once each, equal seconds included; the stream ends when the pod is gone."""
    lines = site.door.lines[pod] = [(1.0, "one")]
    headers = {"Authorization": f"Bearer {site.token('admin')}"}
    async with site.session.get(f"{site.server.url}{PODS}/{pod}/log?follow=true", headers=headers) as response:
        assert await response.content.readline() == b"one\n"
        lines += [(1.0, "two"), (3.0, "three")]
        assert await response.content.readline() == b"two\n"
        assert await response.content.readline() == b"three\n"
        lines.append((3.0, "four"))
        assert await response.content.readline() == b"four\n"
        await site.http("DELETE", f"{PODS}/{pod}?gracePeriodSeconds=0")
        assert await asyncio.wait_for(response.content.read(), 5) == b""


# -- exec ------------------------------------------------------------------------------------------------------------------


async def _exec(site: Any, pod: str, query: str, protocol: str = "v5.channel.k8s.io") -> Any:
    headers = {"Authorization": f"Bearer {site.token('admin')}"}
    url = f"{site.server.url}{PODS}/{pod}/exec?{query}"
    return await site.session.ws_connect(url, headers=headers, protocols=(protocol,))


@pytest.mark.parametrize("protocol", ["v5.channel.k8s.io", "v4.channel.k8s.io"])
async def test_exec_sends_output_and_success(site: Any, pod: str, protocol: str) -> None:
    """stdout on channel 1, then the Status on channel 3."""
    socket = await _exec(site, pod, "command=echo&command=hi&stdout=1&stderr=1", protocol)
    assert (await socket.receive()).data == b"\x01hi\n"
    status = (await socket.receive()).data
    assert (status[0], orjson.loads(status[1:])["status"]) == (3, "Success")
    assert (await socket.receive()).type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)


async def test_exec_tells_the_exit_code(site: Any, pod: str) -> None:
    """A failing command is a NonZeroExitCode with its number as a cause."""
    socket = await _exec(site, pod, "command=fail&stdout=1&stderr=1")
    assert (await socket.receive()).data == b"\x02it failed\n"
    status = orjson.loads((await socket.receive()).data[1:])
    assert status["reason"] == "NonZeroExitCode"
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "7"}]
    await socket.close()


async def test_exec_passes_input_until_its_end(site: Any, pod: str) -> None:
    """stdin on channel 0 reaches the command; the v5 close of channel 0 ends it."""
    socket = await _exec(site, pod, "command=cat&stdin=1&stdout=1")
    await socket.send_bytes(b"\x00hello")
    assert (await socket.receive()).data == b"\x01hello"
    await socket.send_bytes(b"\xff\x00")
    assert orjson.loads((await socket.receive()).data[1:])["status"] == "Success"
    await socket.close()


async def test_what_the_kubelet_refuses_is_told_after_the_upgrade(site: Any, pod: str) -> None:
    """On a websocket the refusal is a Status on channel 3, where kubectl and the Python client look for it."""
    socket = await _exec(site, pod, "command=lost&stdout=1")
    status = orjson.loads((await socket.receive()).data[1:])
    text = 'Internal error occurred: unable to upgrade connection: container not found ("c")'
    assert (status["reason"], status["message"]) == ("InternalError", text)
    await socket.close()


async def test_exec_without_upgrade_or_channels_is_a_bad_request(site: Any, pod: str) -> None:
    """What the real server refuses, and an audit record with the command for what it runs."""
    assert (await site.http("GET", f"{PODS}/{pod}/exec?command=ls")).status == 400
    assert (await site.http("GET", f"{PODS}/{pod}/exec?stdout=1")).status == 400
    plain = await site.http("GET", f"{PODS}/{pod}/exec?command=echo&stdout=1")
    assert (plain.status, plain.json["message"]) == (400, "Upgrade request required")


# -- port-forward ----------------------------------------------------------------------------------------------------------


async def test_ports_are_forwarded_over_websocket_channels(site: Any, pod: str) -> None:
    """The Python client's dialect: channel 2i data, 2i + 1 error, both begin with the port."""
    headers = {"Authorization": f"Bearer {site.token('admin')}"}
    url = f"{site.server.url}{PODS}/{pod}/portforward?ports=80,81"
    socket = await site.session.ws_connect(url, headers=headers, protocols=("v4.channel.k8s.io",))
    frames = sorted([(await socket.receive()).data for _ in range(5)])
    ports = [bytes([c]) + struct.pack("<H", p) for c, p in ((0, 80), (1, 80), (2, 81), (3, 81))]
    assert frames == sorted([*ports, b"\x03connection refused"])
    await socket.send_bytes(b"\x00get\n")
    assert (await socket.receive()).data == b"\x00GET\n"
    await socket.close()


# -- SPDY ------------------------------------------------------------------------------------------------------------------


class SpdyClient:
    """The client's end, as far as the tests need it."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(zdict=DICTIONARY)
        self._in = bytearray()

    def open(self, stream: int, **headers: str) -> bytes:
        block = struct.pack(">I", len(headers))
        for key, value in headers.items():
            for text in (key, value):
                block += struct.pack(">I", len(text)) + text.encode()
        packed = self._deflate.compress(block) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        body = struct.pack(">IIBB", stream, 0, 0, 0) + packed
        return struct.pack(">HHI", 0x8003, 1, len(body)) + body

    @staticmethod
    def data(stream: int, body: bytes, fin: bool = False) -> bytes:
        return struct.pack(">II", stream, fin << 24 | len(body)) + body

    def frames(self, raw: bytes) -> list[tuple[int, bytes, bool]]:
        """(stream, data, fin) of the data frames so far."""
        self._in += raw
        found = []
        while len(self._in) >= 8:
            head, tail = struct.unpack_from(">II", self._in)
            size = tail & 0xFFFFFF
            if len(self._in) < 8 + size:
                break
            if not head >> 31:
                found.append((head, bytes(self._in[8 : 8 + size]), bool(tail >> 24)))
            del self._in[: 8 + size]
        return found


async def _upgrade(site: Any, path: str, protocol: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    context = ssl.create_default_context(cadata=site.server.certificate.decode())
    host, port = site.server.url.removeprefix("https://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
    lines = [
        f"POST {path} HTTP/1.1",
        f"Host: {host}",
        f"Authorization: Bearer {site.token('admin')}",
        "Connection: Upgrade",
        "Upgrade: SPDY/3.1",
        f"X-Stream-Protocol-Version: {protocol}",
        "Content-Length: 0",
    ]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 101 Switching Protocols"), head
    return reader, writer


async def test_exec_over_spdy_as_old_kubectls_do(site: Any, pod: str) -> None:
    """POST with Upgrade: streams by streamtype, status JSON on the error stream."""
    query = "command=cat&stdin=true&stdout=true&stderr=true"
    reader, writer = await _upgrade(site, f"{PODS}/{pod}/exec?{query}", "v4.channel.k8s.io")
    client, got = SpdyClient(), []
    for stream, kind in ((1, "error"), (3, "stdin"), (5, "stdout"), (7, "stderr")):
        writer.write(client.open(stream, streamtype=kind))
    writer.write(client.data(3, b"hello") + client.data(3, b"", fin=True))
    async with asyncio.timeout(5):
        while not any(stream == 1 and data for stream, data, _ in got):
            got += client.frames(await reader.read(4096))
    assert (5, b"hello", False) in got
    assert orjson.loads(next(data for stream, data, _ in got if stream == 1))["status"] == "Success"
    writer.close()
    await writer.wait_closed()


async def test_ports_are_forwarded_over_spdy(site: Any, pod: str) -> None:
    """Pairs of error and data streams by request id; a refused port is told on the error stream."""
    reader, writer = await _upgrade(site, f"{PODS}/{pod}/portforward", "portforward.k8s.io")
    client, got = SpdyClient(), []
    for stream, port, request in ((1, "80", "0"), (5, "81", "1")):
        writer.write(client.open(stream, streamtype="error", port=port, requestid=request))
        writer.write(client.open(stream + 2, streamtype="data", port=port, requestid=request))
    writer.write(client.data(3, b"get\n"))
    async with asyncio.timeout(5):
        while len([1 for _, _, fin in got if fin]) < 4:
            got += client.frames(await reader.read(4096))
    assert (3, b"GET\n", False) in got
    assert (5, b"connection refused", True) in got
    writer.close()
    await writer.wait_closed()


@given(st.lists(st.binary(max_size=200), max_size=6), st.integers(min_value=1, max_value=7))
def test_spdy_frames_survive_any_fragmentation(bodies: list[bytes], step: int) -> None:
    """However the bytes are cut, the same events come out, and received data is credited."""
    client, server = SpdyClient(), Spdy()
    raw = (
        client.open(1, streamtype="data")
        + b"".join(client.data(1, body) for body in bodies)
        + client.data(1, b"", True)
    )
    events = [event for at in range(0, len(raw), step) for event in server.feed(raw[at : at + step])]
    assert events[0].headers == {"streamtype": "data"}
    assert b"".join(event.data for event in events[1:]) == b"".join(bodies)
    assert events[-1].fin
    assert server.take().count(b"\x80\x03\x00\x09") == 2 * sum(bool(body) for body in bodies)


# -- proxies and metrics ---------------------------------------------------------------------------------------------------


async def test_proxies_reach_into_the_world(site: Any, pod: str) -> None:
    """Pods and services by proxy: method, host, port and path arrive; what is refused is a 503 with the reason."""
    answer = await site.http("GET", f"{PODS}/{pod}/proxy/a/b?c=d")
    assert answer.body == b"GET 10.244.0.9:80/a/b?c=d"
    service = {
        "metadata": {"name": "s"},
        "spec": {"ports": [{"port": 8080, "name": "http"}, {"port": 81, "name": "x"}]},
    }
    await site.http("POST", "/api/v1/namespaces/default/services", service)
    named = await site.http("POST", "/api/v1/namespaces/default/services/s:http/proxy/")
    assert named.body == b"POST s.default.svc.cluster.local:8080/"
    refused = await site.http("GET", "/api/v1/namespaces/default/services/http:s:x/proxy/")
    assert refused.status == 503
    assert "connection refused" in refused.json["message"]


async def test_metrics_are_served(site: Any) -> None:
    """Lists with selectors and single objects of metrics.k8s.io."""
    root = "/apis/metrics.k8s.io/v1beta1"
    nodes = (await site.http("GET", f"{root}/nodes")).json
    assert (nodes["kind"], nodes["items"][0]["usage"]["cpu"]) == ("NodeMetricsList", "250m")
    assert (await site.http("GET", f"{root}/pods?labelSelector=app%3Dnosuch")).json["items"] == []
    assert (await site.http("GET", f"{root}/namespaces/default/pods/web")).json["containers"][0]["name"] == "c"
    missing = await site.http("GET", f"{root}/namespaces/default/pods/nosuch")
    assert (missing.status, missing.json["message"]) == (404, 'podmetrics.metrics.k8s.io "default/nosuch" not found')
