"""The official Python client's streams: exec and port-forward over websockets, closed from either side."""

import asyncio
import gc
import time
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config, stream

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")
"""The client itself leaves its end of finished streams to the garbage collector."""
POD: dict[str, Any] = {
    "metadata": {"name": "p", "namespace": "default"},
    "spec": {"containers": [{"name": "c", "image": "nginx:1"}]},
}


@pytest.fixture
async def core(site: Any, tmp_path: Path) -> Any:
    """The official client and a running pod `p`."""
    path = tmp_path / "python.kubeconfig"
    path.write_text(site.server.kubeconfig("admin"))
    api = config.new_client_from_config(str(path))
    await site.http("POST", "/api/v1/namespaces/default/pods", POD)
    yield client.CoreV1Api(api)
    api.close()
    gc.collect()


async def test_exec_gives_output_errors_and_the_exit_code(core: Any) -> None:
    """Whole output at once, and a session that is read piece by piece."""

    def work() -> tuple[str, str, int]:
        call = core.connect_get_namespaced_pod_exec
        said = stream.stream(call, "p", "default", command=["echo", "hi"], stdout=True, stderr=True)
        session = stream.stream(
            call, "p", "default", command=["fail"], stdout=True, stderr=True, _preload_content=False
        )
        session.run_forever(timeout=30)
        found = said, session.read_stderr(), session.returncode
        session.close()
        return found

    assert await asyncio.to_thread(work) == ("hi\n", "it failed\n", 7)


async def test_exec_takes_input(core: Any) -> None:
    """What is written comes back from `cat`."""

    def work() -> str:
        call = core.connect_get_namespaced_pod_exec
        session = stream.stream(
            call, "p", "default", command=["cat"], stdin=True, stdout=True, stderr=True, _preload_content=False
        )
        session.write_stdin("abc")
        found = ""
        for _ in range(300):
            session.update(timeout=0.1)
            found += session.read_stdout(timeout=0) or ""
            if found == "abc":
                break
        session.close()
        return found

    assert await asyncio.to_thread(work) == "abc"


async def test_a_forwarded_port_goes_both_ways_and_is_let_go_with_its_client(core: Any, site: Any) -> None:
    """Bytes there and back; after the client has closed its end the server holds no connection of it."""
    server = site.server._runner.server

    def work() -> bytes:
        forward = stream.portforward(core.connect_get_namespaced_pod_portforward, "p", "default", ports="80")
        socket = forward.socket(80)
        socket.setblocking(True)
        socket.settimeout(30)
        socket.sendall(b"abc")
        found = socket.recv(16)
        socket.close()
        forward.close()
        return bytes(found)

    before = len(server.connections)
    assert await asyncio.to_thread(work) == b"ABC"
    deadline = time.monotonic() + 30
    while len(server.connections) > before and time.monotonic() < deadline:
        await asyncio.sleep(0.05)
    assert len(server.connections) <= before


async def test_a_refused_port_is_told_on_its_error_channel(core: Any) -> None:
    """The error of one port carries the kubelet's words."""

    def work() -> str:
        forward = stream.portforward(core.connect_get_namespaced_pod_portforward, "p", "default", ports="81")
        for _ in range(300):
            found = forward.error(81)
            if found:
                break
            time.sleep(0.1)
        forward.close()
        return str(found)

    assert "connection refused" in await asyncio.to_thread(work)
