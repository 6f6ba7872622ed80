"""Webhooks on real hosts: only those allowed at start are called, the server goes on meanwhile, what changed is judged anew."""

import asyncio
import base64
import ssl
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web

from itbench.kube.api.outside import Weave
from itbench.kube.tls import Identity, self_signed

HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
MAPS = "/api/v1/namespaces/default/configmaps"
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}
Decide = Callable[[dict[str, Any]], Any]


class Host:
    """A real HTTPS server on the loopback that answers reviews."""

    def __init__(self, identity: Identity, port: int) -> None:
        self.identity, self.port = identity, port
        self.decide: Decide = lambda request: {}

    def body(self, url: str = "", bundle: bytes | None = None) -> dict[str, Any]:
        """A configuration that points here."""
        authority = self.identity.certificate if bundle is None else bundle
        config = {"url": url or f"https://127.0.0.1:{self.port}/", "caBundle": base64.b64encode(authority).decode()}
        hook = {"name": "real.example.com", "clientConfig": config, "rules": [RULE], "sideEffects": "None"}
        selector = {"matchLabels": {"kubernetes.io/metadata.name": "default"}}
        more = {"admissionReviewVersions": ["v1"], "timeoutSeconds": 5, "namespaceSelector": selector}
        return {"metadata": {"name": "h"}, "webhooks": [hook | more]}


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    """A host on the loopback."""
    identity = self_signed()

    async def answer(request: web.Request) -> web.Response:
        review = (await request.json())["request"]
        found = here.decide(review)
        if asyncio.iscoroutine(found):
            found = await found
        response = {"uid": review["uid"], "allowed": True, **found}
        body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
        return web.json_response(body)

    app = web.Application()
    app.router.add_post("/", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    context: ssl.SSLContext = identity.context()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    here = Host(identity, runner.addresses[0][1])
    yield here
    await runner.cleanup()


def _allow(site: Any, *hosts: str) -> None:
    door = site.server.door
    door.weave = Weave(hosts, door.clock.served)
    site.plane.registry.services.outside = door.weave


async def test_a_webhook_of_an_allowed_host_decides_and_may_ask_the_server(site: Any, host: Host) -> None:
    """While it decides, the same server answers others: nothing waits for it but the request."""
    _allow(site, "127.0.0.1")

    async def decide(request: dict[str, Any]) -> dict[str, Any]:
        namespaces = (await site.http("GET", "/api/v1/namespaces")).json["items"]
        return {"allowed": False, "status": {"message": f"{len(namespaces)} namespaces, {request['name']}"}}

    assert (await site.http("POST", HOOKS, host.body())).status == 201
    host.decide = decide
    refused = await site.http("POST", MAPS, {"metadata": {"name": "x"}})
    assert refused.json["message"] == 'admission webhook "real.example.com" denied the request: 4 namespaces, x'
    assert not [row for row in threading.enumerate() if row.name == "itbench-verb"]


async def test_an_object_that_changes_while_it_is_judged_is_judged_again(site: Any, host: Host) -> None:
    """No write is lost: the patch that waited is applied to what is there by then."""
    _allow(site, f"127.0.0.1:{host.port}")
    await site.http("POST", MAPS, {"metadata": {"name": "x"}, "data": {"a": "1"}})
    await site.http("POST", HOOKS, host.body())
    asked: list[str] = []
    merge = {"Content-Type": "application/merge-patch+json"}

    async def decide(request: dict[str, Any]) -> dict[str, Any]:
        asked.append(request["object"]["data"].get("b", ""))
        if len(asked) == 1:
            await site.http("PATCH", f"{MAPS}/x", {"data": {"other": "2"}}, headers=merge)
        return {}

    host.decide = decide
    done = await site.http("PATCH", f"{MAPS}/x", {"data": {"b": "3"}}, headers=merge)
    assert done.json["data"] == {"a": "1", "other": "2", "b": "3"}
    assert asked == ["3", "", "3"]


async def test_hosts_that_were_not_allowed_are_not_called(site: Any, host: Host) -> None:
    """Nobody is called: names time out, and on the loopback of the control plane nothing listens."""
    _allow(site, "elsewhere.example.com")
    host.decide = lambda request: pytest.fail("called")
    await site.http("POST", HOOKS, host.body())
    failed = await site.http("POST", MAPS, {"metadata": {"name": "x"}})
    text = (
        f'Post "https://127.0.0.1:{host.port}/?timeout=5s": dial tcp 127.0.0.1:{host.port}: connect: connection refused'
    )
    assert failed.json["message"].endswith(f"failed to call webhook: {text}")


async def test_certificates_and_refusals_read_as_those_of_go(site: Any, host: Host) -> None:
    """Another authority, and a port where nobody listens."""
    _allow(site, "127.0.0.1")
    await site.http("POST", HOOKS, host.body(bundle=self_signed().certificate))
    failed = await site.http("POST", MAPS, {"metadata": {"name": "x"}})
    unknown = "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    assert failed.json["message"].endswith(f'Post "https://127.0.0.1:{host.port}/?timeout=5s": {unknown}')
    await site.http("DELETE", f"{HOOKS}/h")
    await site.http("POST", HOOKS, host.body("https://127.0.0.1:1/"))
    failed = await site.http("POST", MAPS, {"metadata": {"name": "x"}})
    text = 'Post "https://127.0.0.1:1/?timeout=5s": dial tcp 127.0.0.1:1: connect: connection refused'
    assert failed.json["message"].endswith(text)
