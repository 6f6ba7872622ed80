"""kr8s and a kopf operator work unmodified."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

OPERATOR = """
import kopf


@kopf.on.startup()
def settings(settings, **_):
    settings.posting.enabled = True
    settings.scanning.disabled = True


@kopf.on.create("configmaps", labels={"watched": "yes"})
def created(spec, name, patch, **_):
    patch.metadata.labels["seen"] = "yes"
    return {"by": name}


@kopf.on.update("configmaps", labels={"watched": "yes"}, field="data.n")
def changed(old, new, patch, **_):
    patch.metadata.labels["was"] = str(old)
"""
DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "nginx:1"}]},
        },
    },
}
KR8S = """
import asyncio, sys, kr8s
from kr8s.asyncio.objects import Deployment

async def main(path, body):
    api = await kr8s.asyncio.api(kubeconfig=path)
    assert (await api.version())["gitVersion"].startswith("v1.34")
    web = await Deployment(body, api=api)
    await web.create()
    await web.wait("condition=Available", timeout=60)
    await web.scale(3)
    await web.refresh()
    assert web.replicas == 3, web.raw
    pods = [pod async for pod in api.get("pods", namespace="default", label_selector="app=web")]
    assert len(pods) == 3, pods
    said = await pods[0].exec(["echo", "hi"], container="c")
    assert said.stdout == b"hi\\n", said
    await web.label({"a": "b"})
    assert (await Deployment.get("web", namespace="default", api=api)).labels["a"] == "b"
    await web.delete()
    print("done")

asyncio.run(main(sys.argv[1], __BODY__))
"""


async def _run(*argv: str, cwd: Path, **more: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    env = {**os.environ, "HOME": str(cwd), "PYTHONDONTWRITEBYTECODE": "1", **more}
    null = asyncio.subprocess.DEVNULL
    return await asyncio.create_subprocess_exec(
        sys.executable, *argv, cwd=cwd, env=env, stdin=null, stdout=pipe, stderr=asyncio.subprocess.STDOUT
    )


async def test_kr8s_works_a_deployment(site: Any, tmp_path: Path) -> None:
    """Create, wait, scale, list by label, exec, label, delete."""
    (tmp_path / "kubeconfig").write_text(site.server.kubeconfig("admin"))
    (tmp_path / "work.py").write_text(KR8S.replace("__BODY__", repr(DEPLOYMENT)))
    process = await _run("work.py", str(tmp_path / "kubeconfig"), cwd=tmp_path)
    said, _ = await process.communicate()
    assert (process.returncode, said.decode().splitlines()[-1:]) == (0, ["done"]), said.decode()[-3000:]


async def test_a_kopf_operator_sees_what_is_created_and_changed(site: Any, tmp_path: Path) -> None:
    """Its handlers run, its patches and its own annotations stay."""
    config = tmp_path / "kubeconfig"
    config.write_text(site.server.kubeconfig("admin"))
    (tmp_path / "robot.py").write_text(OPERATOR)
    os_env = {"KUBECONFIG": str(config)}
    process = await _run("-m", "kopf", "run", "-A", "--standalone", "robot.py", cwd=tmp_path, **os_env)
    try:
        maps = "/api/v1/namespaces/default/configmaps"
        body = {"metadata": {"name": "m", "labels": {"watched": "yes"}}, "data": {"n": "1"}}
        await site.http("POST", maps, body)
        await _until(site, f"{maps}/m", "seen", "yes")
        await site.http(
            "PATCH", f"{maps}/m", {"data": {"n": "2"}}, headers={"Content-Type": "application/merge-patch+json"}
        )
        found = await _until(site, f"{maps}/m", "was", "1")
        assert any(key.startswith("kopf.zalando.org/") for key in found["metadata"]["annotations"])
    finally:
        process.terminate()
        await process.communicate()


async def _until(site: Any, path: str, label: str, value: str) -> dict[str, Any]:
    """The object once it carries a label."""
    async with asyncio.timeout(90):
        while True:
            found: dict[str, Any] = (await site.http("GET", path)).json
            if (found["metadata"].get("labels") or {}).get(label) == value:
                return found
            await asyncio.sleep(0.1)
