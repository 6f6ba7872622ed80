"""Real clients against the door: kubectl and our own remote client."""

import asyncio
import re
import time
from pathlib import Path
from typing import Any

import pytest

from itbench.core.errors import EnvironmentFault
from itbench.kube.client import ApiError
from itbench.kube.remote import RemoteClient
from itbench.kube.tls import kubeconfig

MANIFEST = b"""
apiVersion: v1
kind: ConfigMap
metadata: {name: c1}
data: {a: "1"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: "nginx:1"}]}}
"""


async def test_kubectl_works_a_deployment_from_apply_to_delete(site: Any) -> None:
    """apply, rollout, scale, exec, logs, top, delete with the kubectl that ships beside Python."""
    run = site.kubectl
    assert await run("apply", "-f", "-", stdin=MANIFEST) == (0, "configmap/c1 created\ndeployment.apps/web created\n")
    assert (await run("apply", "-f", "-", stdin=MANIFEST))[
        1
    ] == "configmap/c1 unchanged\ndeployment.apps/web unchanged\n"
    code, text = await run("rollout", "status", "deploy/web", "--timeout=10s")
    assert (code, "successfully rolled out" in text) == (0, True)
    pods = (await run("get", "pods", "-l", "app=web", "-o", "name"))[1].split()
    assert len(pods) == 2
    assert await run("exec", pods[0], "--", "echo", "hi") == (0, "hi\n")
    code, text = await run("exec", pods[0], "--", "fail")
    assert (code, text) == (7, "it failed\ncommand terminated with exit code 7\n")
    site.door.lines[pods[0].removeprefix("pod/")] = [(0.0, "hello")]
    assert await run("logs", pods[0]) == (0, "hello\n")
    assert "node-1" in (await run("top", "nodes"))[1]
    assert await run("delete", "deploy", "web") == (0, 'deployment.apps "web" deleted from default namespace\n')


async def test_kubectl_sends_typed_commands_in_protobuf(site: Any) -> None:
    """create, can-i and whoami of newer kubectls have protobuf bodies."""
    assert await site.kubectl("create", "configmap", "k", "--from-literal=a=b") == (0, "configmap/k created\n")
    assert site.plane.store.get("configmaps", "default", "k").object["data"] == {"a": "b"}
    assert await site.kubectl("auth", "can-i", "delete", "pods") == (0, "yes\n")
    assert await site.kubectl("auth", "can-i", "delete", "pods", user="eve") == (1, "no\n")
    assert "eve" in (await site.kubectl("auth", "whoami", user="eve"))[1]


async def test_kubectl_reports_errors_as_from_a_real_server(site: Any) -> None:
    """Missing objects and types, and denied requests."""
    assert await site.kubectl("get", "pod", "x") == (1, 'Error from server (NotFound): pods "x" not found\n')
    code, text = await site.kubectl("get", "foo")
    assert (code, text) == (1, 'error: the server doesn\'t have a resource type "foo"\n')
    code, text = await site.kubectl("get", "pods", user="eve")
    assert re.match(r'Error from server \(Forbidden\): pods is forbidden: User "eve" cannot list', text), text


async def test_kubectl_forwards_ports(site: Any) -> None:
    """port-forward tunnels SPDY in a websocket."""
    await site.kubectl("run", "web", "--image=nginx")
    config = site.folder / "admin.kubeconfig"
    process = await asyncio.create_subprocess_exec(
        site.program,
        "port-forward",
        "pod/web",
        ":80",
        env={"KUBECONFIG": str(config), "HOME": str(site.folder)},
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        line = (await asyncio.wait_for(process.stdout.readline(), 10)).decode()
        port = int(re.search(r":(\d+) ->", line).group(1))  # type: ignore[union-attr]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"get\n")
        assert await asyncio.wait_for(reader.readline(), 5) == b"GET\n"
        writer.close()
        await writer.wait_closed()
    finally:
        process.terminate()
        await process.wait()


@pytest.fixture
async def remote(site: Any, tmp_path: Path) -> Any:
    """A remote client of the served plane."""
    path = tmp_path / "config"
    path.write_text(site.server.kubeconfig("admin"))
    client = await asyncio.to_thread(RemoteClient, str(path))
    yield client
    await asyncio.to_thread(client.close)


async def test_the_remote_client_speaks_the_client_protocol(remote: RemoteClient) -> None:
    """create, get, list, update, the four patches, delete; errors are ApiErrors with their Status."""

    def work() -> None:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "r", "namespace": "default"}}
        made = remote.create("configmaps", body)
        assert remote.get("configmaps", "r", "default")["metadata"]["uid"] == made["metadata"]["uid"]
        remote.update("configmaps", {**made, "data": {"a": "1"}})
        remote.patch("configmaps", "r", "default", {"data": {"b": "2"}})
        remote.patch("configmaps", "r", "default", [{"op": "add", "path": "/data/c", "value": "3"}], kind="json")
        applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "r"}, "data": {"d": "4"}}
        remote.patch("configmaps", "r", "default", applied, kind="apply")
        found = remote.list("configmaps", "default", fields="metadata.name=r")
        assert [(o["kind"], o["data"]) for o in found] == [("ConfigMap", {"a": "1", "b": "2", "c": "3", "d": "4"})]
        remote.delete("configmaps", "r", "default")
        with pytest.raises(ApiError, match="not found") as error:
            remote.get("configmaps", "r", "default")
        assert (error.value.code, error.value.reason) == (404, "NotFound")
        with pytest.raises(ApiError, match="could not find"):
            remote.list("nosuch.example.com")

    await asyncio.to_thread(work)


async def test_the_remote_client_follows_changes(remote: RemoteClient, site: Any) -> None:
    """The state as ADDED, then changes with what was before, in order of revision."""

    def take(since: int, count: int) -> tuple[list[Any], int]:
        rows: list[Any] = []
        for _ in range(100):
            found, since = remote.changes(since, ["configmaps"])
            rows += found
            if len(rows) >= count:
                break
            time.sleep(0.05)
        return rows, since

    first, revision = await asyncio.to_thread(take, -1, 1)
    assert {change.type for change in first} == {"ADDED"}
    maps = "/api/v1/namespaces/default/configmaps"
    await site.http("POST", maps, {"metadata": {"name": "f"}})
    await site.http("PUT", f"{maps}/f", {"metadata": {"name": "f"}, "data": {"a": "1"}})
    await site.http("DELETE", f"{maps}/f")
    rows, _ = await asyncio.to_thread(take, revision, 3)
    assert [(c.type, c.previous is not None) for c in rows] == [("ADDED", False), ("MODIFIED", True), ("DELETED", True)]
    assert rows == sorted(rows, key=lambda c: c.revision)


def test_a_cluster_that_does_not_answer_is_an_environment_fault(tmp_path: Path) -> None:
    """Neither a missing kubeconfig nor a dead address is a traceback of another library."""
    with pytest.raises(EnvironmentFault, match="kubeconfig"):
        RemoteClient(str(tmp_path / "none"))
    path = tmp_path / "dead"
    path.write_text(kubeconfig("http://127.0.0.1:9", authority=b"", user="u", token="t"))
    client = RemoteClient(str(path))
    with pytest.raises(EnvironmentFault, match="does not answer"):
        client.get("pods", "x", "default")
    client.close()
