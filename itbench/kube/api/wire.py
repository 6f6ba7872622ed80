"""The headers that every answer carries, and none that tells what serves it; `server` makes requests of this class."""

import asyncio
from typing import Any

from aiohttp import hdrs, web

from itbench.core.ids import digest
from itbench.kube.api.flows import Flow

AUDIT = "Audit-Id"
MAX_BODY_BYTES = 3 * 1024 * 1024
NOSNIFF = {"X-Content-Type-Options": "nosniff"}
"""What plain texts and refusals carry besides."""


class WireRequest(web.BaseRequest):
    """A request that notes what its answer will say of it.

    Attributes:
        audit_id: as the client sent it, or drawn by the server.
        flow: of API Priority and Fairness; None for connections and for those who are not let in.
        refused: whether the authorizer said no.
    """

    audit_id: str = ""
    flow: Flow | None = None
    refused: bool = False

    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        """aiohttp calls this when it has set its own headers, before it sends them."""
        headers = response.headers
        headers.pop(hdrs.SERVER, None)
        headers.setdefault(hdrs.CACHE_CONTROL, "no-cache, private")
        if self.audit_id:
            headers[AUDIT] = self.audit_id
        if self.flow is not None:
            headers["X-Kubernetes-Pf-Flowschema-Uid"] = self.flow.schema_uid
            headers["X-Kubernetes-Pf-Prioritylevel-Uid"] = self.flow.level_uid
        if self.refused:
            headers.update(NOSNIFF)


def audit_id(*key: object) -> str:
    """A uid for one request."""
    raw = digest("audit", *key).hex()
    return f"{raw[:8]}-{raw[8:12]}-4{raw[13:16]}-a{raw[17:20]}-{raw[20:32]}"


def make_request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> WireRequest:
    """What aiohttp's server calls for each request."""
    loop = asyncio.get_running_loop()
    return WireRequest(message, payload, protocol, writer, task, loop, client_max_size=MAX_BODY_BYTES)
