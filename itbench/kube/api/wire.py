"""The headers that every answer carries, and none that tells what serves it; `server` makes requests of this class."""

import asyncio
from hashlib import sha256
from typing import Any

from aiohttp import hdrs, web
from multidict import CIMultiDict

from itbench.kube.api.flows import Flow
from itbench.kube.api.paths import Target

AUDIT = "Audit-Id"
SCHEMA, LEVEL = "X-Kubernetes-Pf-Flowschema-Uid", "X-Kubernetes-Pf-Prioritylevel-Uid"
MAX_BODY_BYTES = 3 * 1024 * 1024
NOSNIFF = {"X-Content-Type-Options": "nosniff"}
"""What plain texts and refusals carry besides."""


class WireRequest(web.BaseRequest):
    """A request that notes what its answer will say of it.

    Attributes:
        audit_id: as the client sent it, or drawn by the server.
        flow: of API Priority and Fairness; None for connections and for those who are not let in.
        refused: whether the authorizer said no.
        plain: whether its headers are known to impersonate nobody.
        asks: what it asks for, where that is known already: target and verb.
    """

    audit_id: str = ""
    flow: Flow | None = None
    refused: bool = False
    plain: bool = False
    asks: tuple[Target, str] | None = None

    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        """aiohttp calls this when it has set its own headers, before it sends them."""
        response.headers.pop(hdrs.SERVER, None)
        self.complete(response.headers)

    def complete(self, headers: CIMultiDict[str]) -> None:
        """Add what every answer carries."""
        headers.setdefault(hdrs.CACHE_CONTROL, "no-cache, private")
        headers.update(self.own())

    def own(self) -> dict[str, str]:
        """The headers that say what the server made of this request."""
        found = {AUDIT: self.audit_id} if self.audit_id else {}
        if self.flow is not None:
            found[SCHEMA] = self.flow.schema_uid
            found[LEVEL] = self.flow.level_uid
        return found | NOSNIFF if self.refused else found


def audit_id(plane: str, count: int) -> str:
    """A uid for one request of a plane."""
    raw = sha256(f"audit\x1f{plane}\x1f{count}".encode()).hexdigest()
    return f"{raw[:8]}-{raw[8:12]}-4{raw[13:16]}-a{raw[17:20]}-{raw[20:32]}"


def make_request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> WireRequest:
    """What aiohttp's server calls for each request."""
    loop = asyncio.get_running_loop()
    return WireRequest(message, payload, protocol, writer, task, loop, client_max_size=MAX_BODY_BYTES)
