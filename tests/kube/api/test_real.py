"""Refusals and small answers, word for word those of a real API server. Needs ITBENCH_REAL (the folder of `cluster.py`)."""

import asyncio
import base64
import json
import os
import re
import ssl
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

pytestmark = [pytest.mark.real, pytest.mark.skipif("ITBENCH_REAL" not in os.environ, reason="ITBENCH_REAL is unset")]
MAPS = "/api/v1/namespaces/default/configmaps"
JSON = "application/json"
MERGE = "application/merge-patch+json"
SERVED = [
    "admissionregistration.k8s.io/v1",
    "apiextensions.k8s.io/v1",
    "apiregistration.k8s.io/v1",
    "apps/v1",
    "authentication.k8s.io/v1",
    "authorization.k8s.io/v1",
    "autoscaling/v1",
    "autoscaling/v2",
    "batch/v1",
    "certificates.k8s.io/v1",
    "coordination.k8s.io/v1",
    "discovery.k8s.io/v1",
    "events.k8s.io/v1",
    "flowcontrol.apiserver.k8s.io/v1",
    "networking.k8s.io/v1",
    "node.k8s.io/v1",
    "policy/v1",
    "rbac.authorization.k8s.io/v1",
    "resource.k8s.io/v1",
    "scheduling.k8s.io/v1",
    "storage.k8s.io/v1",
]
CASES: list[tuple[str, str, str, dict[str, str]]] = [
    ("GET", "/api/v1/nosuch", "", {}),
    ("GET", "/apis/nosuch/v1/x", "", {}),
    ("GET", "/foo", "", {}),
    ("POST", "/version", "", {}),
    ("POST", MAPS, '{"kind":"Pod","apiVersion":"v1"}', {"Content-Type": JSON}),
    ("POST", MAPS, "{}", {"Content-Type": JSON}),
    ("POST", MAPS, "{}", {"Content-Type": "text/plain"}),
    ("PATCH", f"{MAPS}/x", "{}", {"Content-Type": JSON}),
    ("PATCH", f"{MAPS}/x", "{}", {"Content-Type": MERGE}),
    ("POST", f"{MAPS}/x", "{}", {"Content-Type": JSON}),
    ("PUT", MAPS, "{}", {"Content-Type": JSON}),
    ("PUT", f"{MAPS}/x", '{"metadata":{"name":"x"}}', {"Content-Type": JSON}),
    ("PUT", f"{MAPS}/x", '{"metadata":{"name":"z"}}', {"Content-Type": JSON}),
    ("GET", MAPS, "", {"Accept": "text/html"}),
    ("GET", f"{MAPS}?watch=1&resourceVersion=x", "", {}),
    ("GET", f"{MAPS}?watch=1&timeoutSeconds=x", "", {}),
    ("GET", f"{MAPS}?limit=x", "", {}),
    ("GET", f"{MAPS}?fieldSelector=foo%3Dbar", "", {}),
    ("GET", f"{MAPS}?labelSelector=a%3Db%3Dc", "", {}),
    ("POST", f"{MAPS}?dryRun=Some", '{"metadata":{"name":"y"}}', {"Content-Type": JSON}),
    ("POST", f"{MAPS}?fieldValidation=Odd", '{"metadata":{"name":"y"}}', {"Content-Type": JSON}),
    ("DELETE", f"{MAPS}/x", '{"propagationPolicy":"Odd"}', {"Content-Type": JSON}),
    ("DELETE", f"{MAPS}/nosuch", "", {}),
    ("GET", "/api/v1/namespaces/default/pods/x/log", "", {}),
    ("GET", "/api/v1/namespaces/default/pods/x/nosuch", "", {}),
    ("DELETE", "/api/v1/namespaces/default/pods/x/log", "", {}),
    ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", '{"spec":{}}', {"Content-Type": JSON}),
    ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "", {}),
    ("POST", "/api/v1/namespaces/default/serviceaccounts/nosuch/token", '{"spec":{}}', {"Content-Type": JSON}),
    ("GET", "/healthz", "", {}),
    *(
        ("GET", f"/{name}{rest}", "", {})
        for name in ("healthz", "livez", "readyz")
        for rest in ("?verbose", "/etcd", "/x")
    ),
    ("GET", "/readyz?verbose&exclude=etcd&exclude=log", "", {}),
    ("GET", "/apis/apps", "", {}),
    ("GET", "/api", "", {}),
    ("GET", "/api/v1", "", {}),
    *(("GET", f"/apis/{group}", "", {}) for group in SERVED),
    ("GET", "/version", "", {}),
    ("GET", "/api/v1/namespaces/nosuch", "", {}),
    ("POST", "/api/v1/namespaces/nosuch/configmaps", '{"metadata":{"name":"y"}}', {"Content-Type": JSON}),
    ("POST", "/api/v1/configmaps", '{"metadata":{"name":"y"}}', {"Content-Type": JSON}),
]


@pytest.fixture
def real(bare_plane: Path) -> Path:
    """The kubeconfig of a real API server."""
    return bare_plane / "kubeconfig"


def _session(path: Path, folder: Path) -> tuple[aiohttp.ClientSession, str]:
    config = yaml.safe_load(path.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]

    def pem(owner: dict[str, str], key: str) -> bytes:
        data = owner.get(f"{key}-data")
        return base64.b64decode(data) if data else Path(owner[key]).read_bytes()

    context = ssl.create_default_context(cadata=pem(cluster, "certificate-authority").decode())
    chain = folder / "client.pem"
    chain.write_bytes(pem(user, "client-certificate") + pem(user, "client-key"))
    context.load_cert_chain(chain)
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)), cluster["server"]


FREE = {"audit-id", "date", "content-length", "transfer-encoding", "connection"}
"""Headers whose values, or whose being there, depend on the moment and on how the bytes are sent."""


def _headers(found: Any) -> dict[str, str]:
    """Headers by lower-case name; of uids only that they are there."""
    rows = {name.lower(): value for name, value in found.items()}
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", rows["audit-id"])
    return {name: "uid" if name.endswith("-uid") else rows[name] for name in sorted(rows) if name not in FREE}


def _plain(code: int, headers: dict[str, str], body: bytes) -> tuple[int, dict[str, str], str]:
    """An answer without what differs from server to server."""
    text = re.sub(r'"(serverAddress|gitCommit|buildDate|goVersion)":\s*"[^"]*"', r'"\1":"X"', body.decode())
    return code, headers, text.strip()


async def test_answers_are_those_of_a_real_server(site: Any, real: Path, tmp_path: Path) -> None:
    """Code, headers and body are equal for every case."""
    session, url = _session(real, tmp_path)
    different = []
    async with session:
        for method, path, body, headers in CASES:
            async with session.request(method, url + path, data=body or None, headers=headers) as answer:
                theirs = _plain(answer.status, _headers(answer.headers), await answer.read())
            reply = await site.http(method, path, body.encode() if body else None, headers=headers)
            ours = _plain(reply.status, _headers(reply.headers), reply.body)
            if ours != theirs:
                different.append({"case": f"{method} {path} {body}", "real": theirs, "ours": ours})
            await asyncio.sleep(0)
    assert different == [], json.dumps(different, indent=1)
