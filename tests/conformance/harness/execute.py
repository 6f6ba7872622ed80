"""Runs the steps of one topic against one cluster, one after the other, and gives their answers after normalisation."""

import json
import os
import re
import shlex
import subprocess
import sysconfig
import time
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client, config

from harness import clients, normal
from harness.corpus import Step

PATIENCE_S = 60.0
Answer = dict[str, Any]


def kubectl() -> str:
    """The kubectl that came with the package: its version is pinned, and the recorded texts are in its words."""
    return str(Path(sysconfig.get_path("scripts")) / "kubectl")


class Site:
    """One topic on one cluster: a namespace, a scratch folder, values kept from earlier answers."""

    def __init__(self, topic: str, kubeconfig: Path, scratch: Path) -> None:
        self.namespace = f"c-{topic}"
        self.scratch = scratch
        self.kept: dict[str, str] = {"BARE": str(_bare(kubeconfig, scratch))}
        self.known = normal.Known()
        self.api = config.new_client_from_config(str(kubeconfig))
        self.environment = {
            "PATH": os.defpath,
            "HOME": str(scratch),
            "KUBECONFIG": str(kubeconfig),
            "KUBECACHEDIR": str(kubeconfig.parent / "kubectl-cache"),
            "NO_PROXY": "*",
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "KUBECTL_EXTERNAL_DIFF": "diff -u -N -I ^---.* -I ^+++.*",
        }

    def open(self) -> None:
        """Make the namespace and wait until pods may be created in it."""
        core = client.CoreV1Api(self.api)
        end = time.monotonic() + PATIENCE_S
        while any(item.metadata.name == self.namespace for item in core.list_namespace().items):
            if time.monotonic() > end:
                raise TimeoutError(f"namespace {self.namespace}: still there after {PATIENCE_S} s")
            time.sleep(0.2)
        core.create_namespace({"metadata": {"name": self.namespace}})
        while time.monotonic() < end:
            accounts = core.list_namespaced_service_account(self.namespace).items
            if accounts and core.list_namespaced_config_map(self.namespace).items:
                return
            time.sleep(0.05)
        raise TimeoutError(f"namespace {self.namespace}: no ServiceAccount and root certificate after {PATIENCE_S} s")

    def close(self) -> None:
        """Ask for the namespace to go, and let go of connections."""
        client.CoreV1Api(self.api).delete_namespace(self.namespace)
        self.api.close()
        self.api.rest_client.pool_manager.clear()

    def fill(self, value: Any) -> Any:
        """A value of the corpus with the namespace and kept values put in."""
        if isinstance(value, dict):
            return {self.fill(key): self.fill(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.fill(item) for item in value]
        if not isinstance(value, str):
            return value
        for name, kept in self.kept.items():
            value = value.replace(f"${name}", kept)
        return re.sub(r"\bNS\b", self.namespace, value)


def _bare(kubeconfig: Path, scratch: Path) -> Path:
    """A kubeconfig of the same server without anybody's credentials."""
    document = yaml.safe_load(kubeconfig.read_text())
    document["users"] = [{"name": user["name"], "user": {}} for user in document["users"]]
    path = scratch / "bare.kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path


def answers(steps: list[Step], kubeconfig: Path, scratch: Path) -> dict[str, Answer]:
    """The answer of every step of a topic, by the step's name."""
    site = Site(steps[0].topic, kubeconfig, scratch)
    site.open()
    try:
        return {step.name: _settled(site, step) for step in steps}
    finally:
        site.close()


def _settled(site: Site, step: Step) -> Answer:
    pattern = step.raw.get("until")
    end = time.monotonic() + PATIENCE_S
    before = site.known
    while True:
        site.known = before.answer()
        answer = _one(site, step)
        if pattern is None or re.search(pattern, yaml.dump(answer, width=10**6), re.S):
            return answer
        if time.monotonic() > end:
            return {**answer, "until": f"not within {PATIENCE_S:.0f} s"}
        time.sleep(0.15)


def _one(site: Site, step: Step) -> Answer:
    for name, content in step.raw.get("files", {}).items():
        path = site.scratch / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(site.fill(content))
    if "run" in step.raw:
        return _run(site, step)
    if "http" in step.raw:
        return _http(site, step)
    value = getattr(clients, step.raw["client"])(site.api, site.namespace)
    return {"out": normal.document(value, site.known)}


def _run(site: Site, step: Step) -> Answer:
    words = [kubectl(), "--namespace", site.namespace, *shlex.split(site.fill(step.raw["run"]))]
    given = step.raw.get("in", "")
    if not isinstance(given, str):
        documents = given if isinstance(given, list) else [given]
        given = "\n---\n".join(json.dumps(document) for document in documents)
    done = subprocess.run(
        words,
        check=False,
        input=site.fill(given),
        capture_output=True,
        text=True,
        timeout=120,
        env=site.environment,
        cwd=site.scratch,
    )
    if step.raw.get("quiet"):
        return {"code": done.returncode}
    return {
        key: value
        for key, value in (
            ("code", done.returncode),
            ("out", _output(site, done.stdout, step)),
            ("err", normal.text(done.stderr, site.known, sort=step.raw.get("sort", False))),
        )
        if value
    }


def _output(site: Site, value: str, step: Step) -> Any:
    if value.startswith("{"):
        try:
            return normal.document(json.loads(value), site.known, managed=step.raw.get("managed", False))
        except ValueError:
            pass
    return normal.text(value, site.known, sort=step.raw.get("sort", False))


def _http(site: Site, step: Step) -> Answer:
    method, path = site.fill(step.raw["http"]).split(" ", 1)
    body = site.fill(step.raw.get("body"))
    settings = site.api.configuration
    headers = {"Accept": "application/json"}
    if body is not None:
        headers["Content-Type"] = step.raw.get("type", "application/json")
    for mark, header in ((" as=", "Impersonate-User"), (" accept=", "Accept")):
        if mark in path:
            path, headers[header] = path.split(mark)
    headers |= {auth["key"]: auth["value"] for auth in settings.auth_settings().values() if auth["in"] == "header"}
    data = body if body is None or isinstance(body, str) else json.dumps(body)
    reply = site.api.rest_client.pool_manager.request(
        method, settings.host + path, body=data, headers=headers, timeout=60
    )
    documents = _parsed(reply.data.decode(errors="replace"))
    for name, field in step.raw.get("save", {}).items():
        site.kept[name] = str(_pick(documents[0], field))
    if step.topic == "patches":
        documents = [_without_controllers(document) for document in documents]
    shown = [normal.document(document, site.known, managed=step.raw.get("managed", False)) for document in documents]
    return {"status": reply.status, "body": shown[0] if len(shown) == 1 else shown}


def _without_controllers(value: Any) -> Any:
    """An object without what controllers write into it in their own time."""
    if isinstance(value, dict) and value.get("kind") == "Deployment":
        value.pop("status", None)
        (value["metadata"].get("annotations") or {}).pop("deployment.kubernetes.io/revision", None)
        if value["metadata"].get("annotations") == {}:
            del value["metadata"]["annotations"]
    return value


def _parsed(value: str) -> list[Any]:
    try:
        return [json.loads(value)]
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in value.splitlines()]
    except ValueError:
        return [value]


def _pick(value: Any, field: str) -> Any:
    for key in field.split("."):
        value = value[int(key)] if isinstance(value, list) else value[key]
    return value
