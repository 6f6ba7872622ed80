"""The clients that people have: official Python, kubernetes.core of Ansible, every kubectl found, a dashboard's watches."""

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException

GCLOUD = Path("/usr/lib/google-cloud-sdk/bin")
"""Where one kubectl of each minor lies on machines with Google's tools."""
DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "nginx:1", "ports": [{"containerPort": 80}]}]},
        },
    },
}


@pytest.fixture
def api(site: Any, tmp_path: Path) -> Any:
    """The official client, logged in as the administrator."""
    path = tmp_path / "python.kubeconfig"
    path.write_text(site.server.kubeconfig("admin"))
    found = config.new_client_from_config(str(path))
    yield found
    found.close()


async def test_the_official_client_typed(api: Any) -> None:
    """Create, read, patch, scale, evict, list in chunks and delete with models; errors carry the Status."""

    def work() -> None:
        apps, core = client.AppsV1Api(api), client.CoreV1Api(api)
        made = apps.create_namespaced_deployment("default", DEPLOYMENT)
        assert made.spec.strategy.rolling_update.max_surge == "25%"
        apps.patch_namespaced_deployment_scale("web", "default", {"spec": {"replicas": 3}})
        assert apps.read_namespaced_deployment_scale("web", "default").spec.replicas == 3
        pods = core.list_namespaced_pod("default", label_selector="app=web")
        assert [pod.status.phase for pod in pods.items] == ["Running"] * 3
        first = core.list_namespaced_pod("default", limit=2)
        rest = core.list_namespaced_pod("default", limit=2, _continue=first.metadata._continue)
        assert len({pod.metadata.name for pod in [*first.items, *rest.items]}) == 3
        name = pods.items[0].metadata.name
        eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name=name, namespace="default"))
        core.create_namespaced_pod_eviction(name, "default", eviction)
        assert name not in [pod.metadata.name for pod in core.list_namespaced_pod("default").items]
        with pytest.raises(ApiException) as error:
            core.read_namespaced_pod("nope", "default")
        assert (error.value.status, json.loads(error.value.body)["reason"]) == (404, "NotFound")
        apps.delete_namespaced_deployment("web", "default")
        assert client.VersionApi(api).get_code().git_version.startswith("v1.34")

    await asyncio.to_thread(work)


async def test_the_official_client_dynamic(api: Any) -> None:
    """Discovery, server-side apply with a conflict, merge patch, a label selector."""

    def work() -> None:
        found = dynamic.DynamicClient(api)
        maps = found.resources.get(api_version="v1", kind="ConfigMap")
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "d", "labels": {"x": "y"}}}
        mine = {**body, "data": {"a": "1"}}
        maps.server_side_apply(body=mine, name="d", namespace="default", field_manager="one")
        with pytest.raises(dynamic.exceptions.ConflictError):
            theirs = {**body, "data": {"a": "2"}}
            maps.server_side_apply(body=theirs, name="d", namespace="default", field_manager="two")
        patch = {"data": {"b": "2"}}
        maps.patch(body=patch, name="d", namespace="default", content_type="application/merge-patch+json")
        (one,) = maps.get(namespace="default", label_selector="x=y").items
        assert one.data.to_dict() == {"a": "1", "b": "2"}

    await asyncio.to_thread(work)


async def test_the_official_client_watches(api: Any, site: Any) -> None:
    """From a list on: what is added, changed and deleted, in order; too old a position is a 410."""
    core = client.CoreV1Api(api)

    def follow(since: str) -> list[tuple[str, str]]:
        rows = []
        watcher = watch.Watch()
        for event in watcher.stream(core.list_namespaced_config_map, "default", resource_version=since):
            rows.append((event["type"], event["object"].metadata.name))
            if len(rows) == 3:
                watcher.stop()
        return rows

    revision = (await asyncio.to_thread(core.list_namespaced_config_map, "default")).metadata.resource_version
    following = asyncio.create_task(asyncio.to_thread(follow, revision))
    maps = "/api/v1/namespaces/default/configmaps"
    await site.http("POST", maps, {"metadata": {"name": "w"}})
    await site.http("PUT", f"{maps}/w", {"metadata": {"name": "w"}, "data": {"a": "1"}})
    await site.http("DELETE", f"{maps}/w")
    assert await asyncio.wait_for(following, 30) == [("ADDED", "w"), ("MODIFIED", "w"), ("DELETED", "w")]


def kubectls() -> list[str]:
    """Every kubectl of this machine that has a version in its name; in ITBENCH_KUBECTLS, if that is set."""
    folder = Path(os.environ.get("ITBENCH_KUBECTLS", GCLOUD))
    return [str(path) for path in sorted(folder.glob("kubectl.1.*"))]


@pytest.mark.skipif(not kubectls(), reason="no further kubectl on this machine")
@pytest.mark.parametrize("program", kubectls(), ids=lambda path: path.rsplit("/", 1)[-1])
async def test_every_kubectl_found_works_a_deployment(site: Any, program: str) -> None:
    """apply, get, rollout, exec, logs, patch, explain and delete, whatever dialect the version speaks."""

    async def run(*args: str, **options: Any) -> str:
        code, text = await site.kubectl(*args, program=program, **options)
        assert code == 0, (args, text)
        return str(text)

    manifest = yaml.safe_dump(DEPLOYMENT).encode()
    assert "deployment.apps/web created" in await run("apply", "-f", "-", stdin=manifest)
    assert "successfully rolled out" in await run("rollout", "status", "deploy/web", "--timeout=30s")
    assert "2/2" in await run("get", "deploy", "web")
    pod = (await run("get", "pods", "-o", "name")).split()[0]
    assert await run("exec", pod, "--", "echo", "hi") == "hi\n"
    site.door.lines[pod.removeprefix("pod/")] = [(0.0, "hello")]
    assert await run("logs", pod) == "hello\n"
    await run("patch", "deploy", "web", "-p", '{"metadata":{"labels":{"a":"b"}}}')
    assert "replicas" in await run("explain", "deployment.spec")
    assert "deleted" in await run("delete", "deploy", "web")


async def test_a_dashboard_with_sixty_watches_misses_nothing(site: Any) -> None:
    """Sixty watches at once, all told of a write, while lists as tables go on."""
    headers = {"Authorization": f"Bearer {site.token('admin')}"}
    maps = "/api/v1/namespaces/default/configmaps"
    since = (await site.http("GET", maps)).json["metadata"]["resourceVersion"]
    connector = aiohttp.TCPConnector(ssl=site.session.connector._ssl, limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def follow() -> str:
            url = f"{site.server.url}{maps}?watch=true&resourceVersion={since}&allowWatchBookmarks=true"
            async with session.get(url, headers=headers) as reply:
                async for line in reply.content:
                    event = json.loads(line)
                    if event["type"] == "ADDED":
                        return str(event["object"]["metadata"]["name"])
            return ""

        tasks = [asyncio.create_task(follow()) for _ in range(60)]
        await asyncio.sleep(0.1)
        for _ in range(5):
            table = await site.http(
                "GET", "/api/v1/pods", headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
            )
            assert table.status == 200
        await site.http("POST", maps, {"metadata": {"name": "news"}})
        async with asyncio.timeout(60):
            assert await asyncio.gather(*tasks) == ["news"] * 60


PLAYBOOK = Path(__file__).with_name("modules.yaml")


async def test_the_modules_of_ansible_work(site: Any, tmp_path: Path) -> None:
    """One play with ten modules of kubernetes.core, run by the real ansible-playbook."""
    program = Path(sys.executable).parent / "ansible-playbook"
    if not program.exists():
        program = Path(shutil.which("ansible-playbook") or pytest.skip("no ansible-playbook"))
    shutil.copy(PLAYBOOK, tmp_path / "play.yaml")
    (tmp_path / "web.yaml").write_text(yaml.safe_dump(DEPLOYMENT))
    (tmp_path / "kubeconfig").write_text(site.server.kubeconfig("admin"))
    env = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "K8S_AUTH_KUBECONFIG": str(tmp_path / "kubeconfig"),
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
        "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
        "LC_ALL": "C.UTF-8",
    }
    process = await asyncio.create_subprocess_exec(
        *(str(program), str(tmp_path / "play.yaml")),
        env=env,
        cwd=tmp_path,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()[-4000:]
